//! Time to render the report pages of 100,000 records.

#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use criterion::{Criterion, criterion_group, criterion_main};
use runner_report::Screen;
use runner_results::analyse;
use runner_results::journal;
use runner_types::{CaseRecord, Records, Value};

const RECORDS: usize = 100_000;

/// The shipped records of `reduce` on an H100, repeated in groups of 12 with different sizes.
fn records() -> Records {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/reduce/nvidia-h100-80gb-hbm3/records.jsonl");
    let mut records = journal::read_records(Path::new(path)).unwrap();
    let shipped = std::mem::take(&mut records.cases);
    let copy = |i: usize| -> CaseRecord {
        let mut record = shipped[i % shipped.len()].clone();
        let n = Value::Int(1000 + (i / 12) as i64);
        record.case.ordinal = i as u64;
        record.case.key.axes[0].1 = n.clone();
        record.case.group.0[0].1 = n;
        record
    };
    records.cases = (0..RECORDS).map(copy).collect();
    records
}

fn pages(c: &mut Criterion) {
    let records = records();
    let mut group = c.benchmark_group("100000 records");
    group.sample_size(10);
    group.bench_function("summary", |b| b.iter(|| analyse::summary(black_box(&records))));
    group.bench_function("all files of a report", |b| b.iter(|| runner_report::files(black_box(&records)).unwrap()));
    let screen = Screen { styled: false, width: Some(100) };
    group.bench_function("terminal", |b| b.iter(|| runner_report::terminal(black_box(&records), screen)));
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in runner_report::files(&records).unwrap() {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    group.bench_function("runner report", |b| {
        b.iter(|| {
            let mut report = Command::new(env!("CARGO_BIN_EXE_runner"));
            assert!(report.arg("report").arg(dir.path()).output().unwrap().status.success());
        });
    });
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
