//! Runs that are interrupted, killed or refused: what they leave, and how they are continued.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use runner_types::{Activity, Event, Measurement, Outcome};
use rustix::process::Signal;

use super::bench::{Bench, bench, expect_gone, fixture, text};
use super::left::{Left, is_timed};

/// Number of cells in `long.toml`.
const CELLS: usize = 20;
/// Number of groups in `long.toml`.
const GROUPS: usize = 10;

fn is_group_end(event: &Event) -> bool {
    matches!(event, Event::GroupFinished { .. })
}

fn is_endless_launch(event: &Event) -> bool {
    let Event::CaseActive { case, activity, .. } = event else { return false };
    case.key.variant == "never_ends" && *activity == Activity::Checking
}

/// Measurements of each case, by ordinal.
fn measurements(events: &[Event]) -> BTreeMap<u64, Vec<Measurement>> {
    let mut found: BTreeMap<u64, Vec<Measurement>> = BTreeMap::new();
    for event in events {
        if let Event::CaseMeasured { case, measurement } = event {
            found.entry(case.ordinal).or_default().push(measurement.clone());
        }
    }
    found
}

/// Measurements of the groups that finished.
fn finished(events: &[Event]) -> BTreeMap<u64, Vec<Measurement>> {
    let last = events.iter().rposition(is_group_end).map_or(0, |at| at + 1);
    measurements(&events[..last])
}

/// Continues the run in `out`, which was cut short after `before`, and compares its events with those.
fn expect_continued(bench: &Bench, before: &[Event]) {
    let done = finished(before);
    assert!(!done.is_empty() && done.len() < CELLS, "{} of {CELLS} cells were done", done.len());
    let left = bench.run(&fixture("long.toml"), "out", &["--resume"]);
    left.expect_code(0);
    left.expect_sound(&["slow", "slower"]);
    let records = left.records();
    assert!(records.header.complete && records.cases.len() == CELLS, "{}", left.story());
    assert!(!left.report().contains("Incomplete"), "{}", left.report());

    let events = left.events();
    assert_eq!(&events[..before.len()], before, "the journal was not continued");
    let all = measurements(&events);
    assert_eq!(all.len(), CELLS, "{}", left.story());
    for (ordinal, measured) in &done {
        assert_eq!(measured.len(), 1, "cell {ordinal}");
        assert_eq!(&all[ordinal], measured, "cell {ordinal} was done and measured again");
    }
    let cached = |event: &Event| match event {
        Event::UnitCompiled { cached, .. } => Some(*cached),
        _ => None,
    };
    let compiled: Vec<bool> = events[before.len()..].iter().filter_map(cached).collect();
    assert!(!compiled.is_empty() && compiled.iter().all(|cached| *cached), "{compiled:?}");

    let again = bench.run(&fixture("long.toml"), "out", &["--resume"]);
    again.expect_code(0);
    assert_eq!(measurements(&again.events()), all, "nothing was missing, and something was measured");
    assert_eq!(again.records().cases, records.cases, "{}", again.story());
}

fn not_run(left: &Left) -> Vec<String> {
    let why = |outcome| if let Outcome::NotRun { why, .. } = outcome { Some(why) } else { None };
    left.records().cases.into_iter().filter_map(|record| why(record.outcome)).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn an_interrupted_run_keeps_what_it_did_and_resumes_with_the_rest() {
    let bench = bench();
    let mut run = bench.begin(&fixture("long.toml"), "out", &[]);
    run.until_journal_has(is_group_end);
    let worker = run.worker();
    let asked = Instant::now();
    run.signal(Signal::INT);
    let left = run.end();
    left.expect_code(130);
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?} after Ctrl-C\n{}", asked.elapsed(), left.story());
    expect_gone(worker, Duration::from_secs(5));

    let records = left.records();
    assert!(!records.header.complete, "{}", left.story());
    assert_eq!(records.cases.len(), CELLS, "{}", left.story());
    let why = not_run(&left);
    assert!(!why.is_empty() && why.iter().all(|why| why == "interrupted"), "{why:?}\n{}", left.story());
    assert_eq!(records.cases.iter().filter(|record| is_timed(record)).count(), CELLS - why.len(), "{}", left.story());
    assert!(left.report().contains("Incomplete"), "{}", left.report());
    let events = left.events();
    assert!(matches!(events.last(), Some(Event::RunFinished { complete: false, .. })), "{:?}", events.last());
    expect_continued(&bench, &events);
}

#[test]
#[ignore = "needs a GPU"]
fn a_killed_run_takes_its_worker_along_and_resumes_from_its_journal() {
    let bench = bench();
    let mut run = bench.begin(&fixture("long.toml"), "out", &[]);
    run.until_journal_has(is_group_end);
    let worker = run.worker();
    run.signal(Signal::KILL);
    let left = run.end();
    assert_eq!(left.status.signal(), Some(Signal::KILL.as_raw()), "{}", left.story());
    expect_gone(worker, Duration::from_secs(15));

    let events = left.events();
    assert!(events.iter().filter(|event| is_group_end(event)).count() < GROUPS, "it was killed too late");
    let out = bench.path("out");
    let args = ["report".to_owned(), "--from-journal".to_owned(), text(&out)];
    let told = bench.start(&args, out).end();
    told.expect_code(0);
    assert!(!told.records().header.complete && !not_run(&told).is_empty(), "{}", told.story());
    assert!(told.report().contains("Incomplete"), "{}", told.report());
    expect_continued(&bench, &events);
}

#[test]
#[ignore = "needs a GPU"]
fn the_first_interrupt_waits_for_the_kernel_and_the_second_does_not() {
    let bench = bench();
    let mut run = bench.begin(&fixture("endless.toml"), "out", &["--progress", "json"]);
    run.until_it_shows(is_endless_launch);
    let worker = run.worker();
    thread::sleep(Duration::from_millis(500));
    run.signal(Signal::INT);
    thread::sleep(Duration::from_secs(1));
    assert!(!run.is_over(), "the launch was not waited for\n{}", run.end().story());
    run.signal(Signal::INT);
    let asked = Instant::now();
    let left = run.end();
    left.expect_code(130);
    assert!(asked.elapsed() < Duration::from_secs(40), "{:?}\n{}", asked.elapsed(), left.story());
    expect_gone(worker, Duration::from_secs(5));
    assert_eq!(not_run(&left), ["interrupted", "interrupted"], "{}", left.story());
    assert!(left.report().contains("Incomplete"), "{}", left.report());
}

#[test]
#[ignore = "needs a GPU"]
fn a_worker_in_an_endless_kernel_does_not_outlive_a_killed_run() {
    let bench = bench();
    let mut run = bench.begin(&fixture("endless.toml"), "out", &["--progress", "json"]);
    run.until_it_shows(is_endless_launch);
    let worker = run.worker();
    thread::sleep(Duration::from_millis(500));
    run.signal(Signal::KILL);
    let left = run.end();
    assert_eq!(left.status.signal(), Some(Signal::KILL.as_raw()), "{}", left.story());
    expect_gone(worker, Duration::from_secs(30));
}

#[test]
#[ignore = "needs a GPU"]
fn a_folder_in_use_is_refused_to_a_second_run() {
    let bench = bench();
    // Enough groups that the other runs start while this one is at work.
    let sizes: Vec<String> = (1000..1080).map(|n| n.to_string()).collect();
    let set = format!("n={}", sizes.join(","));
    let mut first = bench.begin(&fixture("long.toml"), "out", &["--set", &set]);
    first.until_journal_has(|event| matches!(event, Event::GroupStarted { .. }));
    for more in [&[][..], &["--resume"]] {
        let second = bench.run(&fixture("quick.toml"), "out", more);
        second.expect_code(3);
        let holder = format!("is in use by process {}", first.pid());
        assert!(second.stderr.contains(&holder) && second.stderr.contains("--out"), "{}", second.story());
    }
    first.signal(Signal::INT);
    let left = first.end();
    left.expect_code(130);
    assert_eq!(left.records().header.experiment, "long", "{}", left.story());
    let runs = left.events().iter().filter(|event| matches!(event, Event::RunStarted { .. })).count();
    assert_eq!(runs, 1, "another run wrote into the journal\n{}", left.story());
}

#[test]
#[ignore = "needs a GPU"]
fn a_run_that_cannot_begin_says_why_and_leaves_nothing() {
    let bench = bench();
    std::fs::write(bench.path("file"), "").unwrap();
    let quick = fixture("quick.toml");
    let refused = |out: &str, more: &[&str], code: i32, words: &[&str]| {
        let left = bench.run(&quick, out, more);
        left.expect_code(code);
        assert!(words.iter().all(|word| left.stderr.contains(word)), "{words:?}\n{}", left.story());
        assert!(!left.dir.exists(), "{} was created\n{}", left.dir.display(), left.story());
    };
    refused("file/out", &[], 3, &["cannot create the folder", "file/out"]);
    refused("out", &["--device", "99"], 3, &["no device 99", "runner devices"]);
    refused("out", &["--set", "m=1"], 2, &["--set m=1", "there is no axis `m`"]);
    refused("out", &["--filter", "n > 10**6"], 2, &["no case matches --filter"]);
    refused("out", &["--variant", "soun"], 2, &["soun"]);
}
