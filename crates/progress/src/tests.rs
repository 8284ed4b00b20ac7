use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Progress, Style};
use runner_types::{Activity, Case, CaseKey, Event, GroupKey, Mismatch, Outcome, Phase, Value, Verdict, WorkAmount};

/// A writer that keeps the text for inspection.
#[derive(Debug, Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shown(style: Style, events: &[Event], cases: u64) -> Vec<String> {
    let paper = Paper::default();
    let mut progress = Progress::write_to(style, Box::new(paper.clone()));
    progress.tally.cases = cases;
    for event in events {
        progress.observe(event);
    }
    let written = paper.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8_lossy(&written).lines().map(str::to_owned).collect()
}

fn case(ordinal: u64) -> Case {
    let axes = vec![("n".to_owned(), Value::Int(1024))];
    let key = CaseKey { experiment: "reduce".into(), variant: format!("v{ordinal}"), axes };
    Case { ordinal, key, group: GroupKey(Vec::new()) }
}

fn settled(ordinal: u64, outcome: Outcome) -> Event {
    Event::CaseSettled { case: case(ordinal), fingerprint: None, outcome, work: WorkAmount::default() }
}

fn small_run() -> Vec<Event> {
    let mismatch = Mismatch {
        what: "sum(partial)".into(),
        index: 7,
        expected: "3".into(),
        got: "4".into(),
        error: Some(1.0),
        wrong: 1,
        of: 9,
        allowed: None,
    };
    vec![
        Event::CompileStarted { units: 2 },
        Event::UnitCompiled { key: "a".into(), label: "v0".into(), seconds: 1.26, cached: false, failed: false },
        Event::UnitCompiled { key: "b".into(), label: "v1".into(), seconds: 0.0, cached: true, failed: false },
        Event::GroupStarted { ordinal: 0, key: GroupKey(Vec::new()), cases: 3 },
        Event::CaseActive { case: case(0), activity: Activity::Checking, limit: 1.0 },
        Event::CaseChecked {
            case: case(0),
            fingerprint: None,
            hashes: None,
            verdict: Verdict::Pass,
            launches: Vec::new(),
        },
        settled(0, Outcome::Measured),
        settled(1, Outcome::Wrong { mismatch }),
        settled(2, Outcome::Invalid { limit: "2048 threads per block, the device allows 1024".into() }),
    ]
}

#[test]
fn lines_show_every_case_of_a_small_run() {
    let lines = shown(Style::Lines, &small_run(), 3);
    let expected = [
        "[1/2] compiled: v0 (1.3 s)",
        "[1/3] measured      v0[n = 1024]",
        "[2/3] wrong         v1[n = 1024]: sum(partial): element 7 is 4, expected 3",
        "[3/3] invalid       v2[n = 1024]: 2048 threads per block, the device allows 1024",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn lines_of_a_long_run_are_its_failures_and_a_summary() {
    let mut events: Vec<Event> = (0..999).map(|i| settled(i, Outcome::Measured)).collect();
    events.insert(3, settled(999, Outcome::TimedOut { limit_seconds: 30.0, message: None }));
    let lines = shown(Style::Lines, &events, 1000);
    assert_eq!(lines, ["[4/1000] timed out     v999[n = 1024]: no answer within 30 s", "[1000/1000] 1 failed"]);
}

#[test]
fn quiet_shows_failures_only() {
    let lines = shown(Style::Quiet, &small_run(), 3);
    assert_eq!(lines, ["wrong         v1[n = 1024]: sum(partial): element 7 is 4, expected 3"]);
}

#[test]
fn cases_that_an_interrupt_left_out_are_not_listed() {
    let mut events = vec![settled(0, Outcome::Measured)];
    events.extend((1..40).map(|i| settled(i, Outcome::not_run("interrupted"))));
    assert_eq!(shown(Style::Lines, &events, 40), ["[1/40] measured      v0[n = 1024]"]);
    assert!(shown(Style::Quiet, &events, 40).is_empty());
}

#[test]
fn json_shows_every_event() -> Result<(), serde_json::Error> {
    let mut events = small_run();
    events.push(Event::PhaseSpent { phase: Phase::Check, seconds: 0.25 });
    let lines = shown(Style::Json, &events, 3);
    let read: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
    assert_eq!(read, events);
    Ok(())
}
