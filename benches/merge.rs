//! Time to merge the journals of shards: 100 journals with 100,000 simulated rows, repeatedly, and 1000 journals with a
//! million rows once, with peak memory. Excludes the report.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a benchmark panics to fail, and says what it finds")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::{BatchSize, Criterion, criterion_group};
use rayon::prelude::*;
use runner_results::analyse;
use runner_results::journal::{self, History, JOURNAL_FILE, Journal, Merged};
use runner_types::{Case, CaseRecord, Event, Records, RunContext, Shard, Value};

/// Rows per shard.
const ROWS: u64 = 1000;
const GROUP: u64 = 12;

/// The shipped simulator records of `reduce`, repeated in groups of 12 with different sizes.
fn shard(records: &Records, shard: Shard) -> Vec<Event> {
    let counted: Vec<&CaseRecord> = records.cases.iter().filter(|case| case.counters.is_some()).collect();
    let row = |i: u64| -> CaseRecord {
        let ordinal = u64::from(shard.index - 1) * ROWS + i;
        let mut record = counted[(i as usize) % counted.len()].clone();
        let n = Value::Int(1 + (ordinal / GROUP) as i64);
        record.case.ordinal = ordinal;
        record.case.key.axes[0].1 = n.clone();
        record.case.group.0[0].1 = n;
        // Each row of a group is a separate case.
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
        shard: Some(shard),
        files: None,
    };
    let started = Event::RunStarted {
        header: Box::new(records.header.clone()),
        environment: Box::new(records.environment.clone()),
        context,
        cases: u64::from(shard.of) * ROWS,
        groups: (u64::from(shard.of) * ROWS / GROUP) as u32,
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
            lines: Vec::new(),
        }));
        events.push(Event::CaseSettled { case, fingerprint, outcome, work });
    }
    events.push(Event::RunFinished { complete: true, wall_seconds: 1.0 });
    events
}

fn journals(dir: &Path, of: u32) -> Vec<PathBuf> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/reduce/simulated-h100/records.jsonl");
    let records = journal::read_records(Path::new(path)).unwrap();
    let write = |index: u32| -> PathBuf {
        let own = Shard { index, of };
        let folder = dir.join(own.folder());
        Journal::create(&folder).unwrap().record_all(&shard(&records, own)).unwrap();
        folder.join(JOURNAL_FILE)
    };
    (1..=of).map(write).collect()
}

/// Merges the journals, which must yield a single complete part.
fn join(files: &[PathBuf]) -> Merged {
    let scans = files.par_iter().map(|file| journal::scan(file).unwrap()).collect();
    let mut parts = journal::merge(scans).unwrap();
    assert!(parts.len() == 1 && parts[0].missing.is_empty(), "{:?}", parts[0].missing);
    parts.remove(0)
}

fn records(merged: Merged, groups: Vec<History>) -> Records {
    analyse::records_of_groups(merged.into_run_events(), groups).unwrap()
}

fn merging(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let files = journals(dir.path(), 100);
    let out = dir.path().join("out");
    let mut group = c.benchmark_group("100000 rows of 100 journals");
    group.sample_size(10);
    group.bench_function("read and merge", |b| b.iter(|| black_box(join(&files))));
    let mut merged = join(&files);
    group.bench_function("write", |b| b.iter(|| merged.write(&out, History::fold).unwrap().1.len()));
    group.bench_function("records", |b| {
        let folded = || {
            let merged = join(&files);
            let groups = merged.of_groups(History::fold).unwrap();
            (merged, groups)
        };
        b.iter_batched(folded, |(merged, groups)| records(merged, groups).cases.len(), BatchSize::PerIteration);
    });
    group.finish();
}

/// Peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// CPU time of this process, in seconds.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // User and system time are fields 14 and 15. Field 2 is a name in parentheses, which may contain spaces.
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// Merges a million rows once. `MERGE_JOURNALS` sets a different number of journals, with a thousand rows each.
fn million() {
    let dir = tempfile::tempdir().unwrap();
    let count = std::env::var("MERGE_JOURNALS").map_or(1000, |count| count.parse().unwrap());
    let files = journals(dir.path(), count);
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    eprintln!("{count} journals of {ROWS} rows, {} MB; seconds from the start:", bytes >> 20);
    let (started, used) = (Instant::now(), processor_seconds());
    let step = |what: &str| {
        let (passed, used) = (started.elapsed().as_secs_f64(), processor_seconds() - used);
        eprintln!("{what}: {passed:.1}, {used:.1} of processor time; at most {} MB of memory", peak_memory() >> 20);
    };
    let mut merged = join(&files);
    step("read and merged");
    let (_, groups) = merged.write(&dir.path().join("out"), History::fold).unwrap();
    step("written, and the groups read");
    let rows = records(merged, groups).cases.len() as u64;
    step("records");
    assert_eq!(rows, u64::from(count) * ROWS);
}

criterion_group!(benches, merging);

fn main() {
    // Skipped when cargo only tests that the benchmarks run.
    if std::env::args().any(|word| word == "--bench") {
        million();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
