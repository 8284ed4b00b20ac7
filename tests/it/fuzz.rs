//! A short run of the fuzz targets in `fuzz/`, on the stable compiler: with their seeds, and with seeds that were cut,
//! duplicated, mixed and flipped. `RUNNER_FUZZ=100000` sets the number of runs per target.

#[path = "../../fuzz/bodies.rs"]
mod bodies;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

/// Default number of runs per target.
const RUNS: u32 = 60;

/// A run that takes more processor time counts as hung.
const LONGEST: Duration = Duration::from_secs(10);

/// A change to a seed. Positions are fractions of its length.
#[derive(Debug, Clone)]
enum Edit {
    Cut(f64, f64),
    Double(f64, f64),
    Flip(f64, u8),
    Insert(f64, Vec<u8>),
    Mix(usize, f64, f64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = 0.0..1.0_f64;
    let tokens =
        ["\"", "{", "}}", "[", "-1", "1e999", "18446744073709551616", "\0", "\u{feff}", "null", "%", "\n", ";", "é"];
    prop_oneof![
        (place.clone(), place.clone()).prop_map(|(from, to)| Edit::Cut(from, to)),
        (place.clone(), place.clone()).prop_map(|(from, to)| Edit::Double(from, to)),
        (place.clone(), 0..8_u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        (place.clone(), prop::sample::select(tokens.to_vec()))
            .prop_map(|(at, token)| Edit::Insert(at, token.as_bytes().to_vec())),
        (any::<usize>(), place.clone(), place).prop_map(|(other, from, to)| Edit::Mix(other, from, to)),
    ]
}

fn range(bytes: &[u8], from: f64, to: f64) -> std::ops::Range<usize> {
    let offset = |share: f64| (share * bytes.len() as f64) as usize;
    let (from, to) = (offset(from.min(to)), offset(from.max(to)));
    // Short ranges, so that the rest still looks like its format.
    from..to.min(from + 64)
}

fn apply(mut bytes: Vec<u8>, edit: &Edit, seeds: &[Vec<u8>]) -> Vec<u8> {
    match edit {
        Edit::Cut(from, to) => drop(bytes.drain(range(&bytes, *from, *to))),
        Edit::Double(from, to) => {
            let range = range(&bytes, *from, *to);
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.end..range.end, copy);
        }
        Edit::Flip(at, bit) => {
            let at = range(&bytes, *at, 1.0).start;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        Edit::Insert(at, token) => {
            let at = range(&bytes, *at, 1.0).start;
            bytes.splice(at..at, token.iter().copied());
        }
        Edit::Mix(other, from, to) => {
            let other = &seeds[other % seeds.len()];
            let copy = other[range(other, *from, *to)].to_vec();
            let at = range(&bytes, *to, 1.0).start;
            bytes.splice(at..at, copy);
        }
    }
    bytes
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
}

#[track_caller]
fn run(target: &str) {
    let (_, body) = bodies::TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let seeds = seeds(target);
    let once = |bytes: &[u8]| {
        let since = processor_time();
        let ended = catch_unwind(AssertUnwindSafe(|| body(bytes)));
        let shown = || String::from_utf8_lossy(bytes).into_owned();
        assert!(ended.is_ok(), "{target} panics on:\n{}", shown());
        let took = processor_time().saturating_sub(since);
        assert!(took < LONGEST, "{target} takes {took:?} on:\n{}", shown());
    };
    for seed in &seeds {
        once(seed);
    }
    let runs = std::env::var("RUNNER_FUZZ").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    // Makes the same edits each time, unless more runs are requested.
    let mut runner = if runs > RUNS { TestRunner::new(Config::default()) } else { TestRunner::deterministic() };
    let edits = (0..seeds.len(), prop::collection::vec(edit(), 1..6));
    for _ in 0..runs {
        let (seed, edits) = edits.new_tree(&mut runner).unwrap().current();
        once(&edits.iter().fold(seeds[seed].clone(), |bytes, edit| apply(bytes, edit, &seeds)));
    }
}

#[test]
fn manifests_of_any_text_are_valid_or_have_faults() {
    run("manifest");
}

#[test]
fn expressions_of_any_text_have_a_value_or_an_error() {
    run("expressions");
}

#[test]
fn sources_of_any_bytes_are_scanned() {
    run("sources");
}

#[test]
fn modules_of_any_text_are_loaded_or_refused() {
    run("ptx_load");
}

#[test]
fn modules_of_any_text_run_or_trap() {
    run("ptx_run");
}

#[test]
fn journals_of_any_bytes_are_read_or_refused() {
    run("journal");
}

#[test]
fn records_of_any_text_make_a_report_or_are_refused() {
    run("records");
}

#[test]
fn templates_of_any_text_make_a_page_or_an_error() {
    run("template");
}

#[test]
fn tables_of_a_profiler_of_any_text_are_read_or_refused() {
    run("counters_csv");
}

#[test]
fn cubins_of_any_bytes_are_read_or_refused() {
    run("cubin");
}
