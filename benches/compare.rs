//! Time to read, compare and write two reports of 100,000 records.

#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use criterion::{Criterion, criterion_group, criterion_main};
use runner_report::Screen;
use runner_report::comparison::{self, Compared};
use runner_results::analyse::compare::{Options, Pair, compare};
use runner_results::journal;
use runner_types::{CaseRecord, Records, Value};

const RECORDS: usize = 100_000;

/// The shipped records of `reduce` on an H100, repeated with different sizes.
fn records() -> Records {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/reduce/nvidia-h100-80gb-hbm3/records.jsonl");
    let mut records = journal::read_records(Path::new(path)).unwrap();
    let shipped = std::mem::take(&mut records.cases);
    let copy = |i: usize| -> CaseRecord {
        let mut record = shipped[i % shipped.len()].clone();
        record.case.ordinal = i as u64;
        record.case.key.axes[0].1 = Value::Int(i as i64);
        record.case.group.0[0].1 = Value::Int(i as i64);
        record
    };
    records.cases = (0..RECORDS).map(copy).collect();
    records
}

fn reports(c: &mut Criterion) {
    let base = records();
    let mut new = base.clone();
    for record in new.cases.iter_mut().step_by(100) {
        if let Some(result) = &mut record.result {
            result.time.point *= 1.2;
            result.time.low *= 1.2;
            result.time.high *= 1.2;
        }
    }
    let text = journal::records_text(&base).unwrap();
    let mut group = c.benchmark_group("100000 records");
    group.sample_size(10);
    group.bench_function("read one side", |b| {
        b.iter(|| journal::parse_records(black_box(&text), Path::new("records.jsonl")).unwrap());
    });
    let pairs = [Pair { base: &base, new: &new }];
    group.bench_function("compare", |b| b.iter(|| compare(black_box(&pairs), &Options::default())));
    let found = compare(&pairs, &Options::default());
    let names = ["base".to_owned(), "new".to_owned()];
    let places = [names.clone()];
    let compared = Compared { comparison: &found, names: &names, labels: &names, places: &places, faults: &[] };
    let screen = Screen { styled: false, width: Some(100) };
    group.bench_function("terminal", |b| b.iter(|| comparison::terminal(black_box(compared), screen)));
    group.bench_function("Markdown", |b| b.iter(|| comparison::markdown(black_box(compared), None).unwrap()));
    let dir = tempfile::tempdir().unwrap();
    for (side, records) in [("base", &base), ("new", &new)] {
        let text = journal::records_text(records).unwrap();
        fs::create_dir(dir.path().join(side)).unwrap();
        fs::write(dir.path().join(side).join("records.jsonl"), text).unwrap();
    }
    group.bench_function("runner compare", |b| {
        b.iter(|| {
            let mut compare = Command::new(env!("CARGO_BIN_EXE_runner"));
            let status = compare.current_dir(dir.path()).args(["compare", "base", "new"]).output().unwrap().status;
            // Exit code for slowdowns: a thousand rows are slower.
            assert_eq!(status.code(), Some(4));
        });
    });
    group.finish();
}

criterion_group!(benches, reports);
criterion_main!(benches);
