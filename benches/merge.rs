//! How long the journals of 100 shards with 100,000 simulated rows take to merge, without the report.

#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use runner::analyse;
use runner::journal::{self, JOURNAL_FILE, Journal, Part};
use runner::model::{Case, CaseRecord, Event, Records, RunContext, Shard, Value};

const SHARDS: u32 = 100;
/// Rows of a shard.
const ROWS: u64 = 1000;
const GROUP: u64 = 12;

/// The shipped simulated records of `reduce`, again and again, in groups of 12 with sizes of their own.
fn shard(records: &Records, index: u32) -> Vec<Event> {
    let counted: Vec<&CaseRecord> = records.cases.iter().filter(|case| case.counters.is_some()).collect();
    let row = |i: u64| -> CaseRecord {
        let ordinal = u64::from(index - 1) * ROWS + i;
        let mut record = counted[(i as usize) % counted.len()].clone();
        let n = Value::Int(1 + (ordinal / GROUP) as i64);
        record.case.ordinal = ordinal;
        record.case.key.axes[0].1 = n.clone();
        record.case.group.0[0].1 = n;
        // Each row of a group is a case of its own.
        record.case.key.variant = format!("{}{}", record.case.key.variant, i % GROUP);
        record
    };
    let rows: Vec<CaseRecord> = (0..ROWS).map(row).collect();
    let todo: Vec<Case> = rows.iter().map(|row| row.case.clone()).collect();
    let context = RunContext {
        host: "node".to_owned(),
        revision: None,
        started: "2026-01-01T00:00:00Z".to_owned(),
        arguments: Vec::new(),
        device_uuid: None,
        shard: Some(Shard { index, of: SHARDS }),
    };
    let started = Event::RunStarted {
        header: Box::new(records.header.clone()),
        environment: Box::new(records.environment.clone()),
        context,
        cases: u64::from(SHARDS) * ROWS,
        groups: (u64::from(SHARDS) * ROWS / GROUP) as u32,
    };
    let mut events = vec![started, Event::CasesPlanned { todo, held: Vec::new() }];
    for row in rows {
        let CaseRecord { case, fingerprint, hashes, verdict, launches, work, counters, each_counters, outcome, .. } =
            row;
        events.push(Event::CaseChecked {
            case: case.clone(),
            fingerprint: fingerprint.clone(),
            hashes,
            verdict,
            launches,
        });
        events.extend(counters.map(|counters| Event::CaseCounted {
            case: case.clone(),
            counters,
            each: each_counters,
        }));
        events.push(Event::CaseSettled { case, fingerprint, outcome, work });
    }
    events.push(Event::RunFinished { complete: true, wall_seconds: 1.0 });
    events
}

fn merging(c: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/reduce/simulated-h100/records.jsonl");
    let records = journal::read_records(Path::new(path)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let write = |index: u32| -> PathBuf {
        let folder = dir.path().join(format!("{index:03}-of-{SHARDS}"));
        Journal::create(&folder).unwrap().record_all(&shard(&records, index)).unwrap();
        folder.join(JOURNAL_FILE)
    };
    let files: Vec<PathBuf> = (1..=SHARDS).map(write).collect();
    let read = || -> Vec<Part> {
        let part =
            |file: &PathBuf| Part { place: file.display().to_string(), events: journal::read(file).unwrap().events };
        files.iter().map(part).collect()
    };
    let parts = read();
    let mut group = c.benchmark_group("100000 rows of 100 journals");
    group.sample_size(10);
    group.bench_function("read, in one thread", |b| b.iter(|| black_box(read()).len()));
    group.bench_function("merge", |b| b.iter(|| journal::merge(black_box(parts.clone())).unwrap().len()));
    let merged = journal::merge(parts).unwrap().remove(0);
    assert!(merged.missing.is_empty(), "{:?}", merged.missing);
    let out = dir.path().join("out");
    group.bench_function("write", |b| {
        b.iter(|| Journal::create(&out).unwrap().record_all(black_box(&merged.events)).unwrap());
    });
    group.bench_function("records", |b| b.iter(|| analyse::records(black_box(&merged.events)).unwrap().cases.len()));
    group.finish();
}

criterion_group!(benches, merging);
criterion_main!(benches);
