//! The journal survives what a run does not, and refuses what it cannot read.

use std::fs;
use std::path::Path;

use runner::journal::{self, JOURNAL_FILE, Journal, PREVIOUS_JOURNAL_FILE, Torn};
use runner::model::{Activity, Counters, Event, Fingerprint, Outcome, Records, Value};

use super::fixture::{self, Run};

fn write(dir: &Path, events: &[Event]) {
    let mut journal = Journal::create(dir).unwrap();
    for event in events {
        journal.record(event).unwrap();
    }
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for run in [fixture::reduce(), fixture::faults(), fixture::simulated()] {
        write(dir.path(), &run.events);
        let contents = journal::read(&dir.path().join(JOURNAL_FILE)).unwrap();
        assert!(contents.events == run.events);
        assert_eq!(contents.torn, None);
    }
}

#[test]
fn every_line_carries_a_version_and_a_time() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &fixture::simulated().events);
    let text = fs::read_to_string(dir.path().join(JOURNAL_FILE)).unwrap();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["v"], 1);
        assert!(line["t"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(line["event"].is_string(), "{line}");
    }
}

#[test]
fn heartbeats_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let case = fixture::reduce().case("neighbored", &[]);
    write(dir.path(), &[Event::CaseActive { case, activity: Activity::Checking, limit: 30.0 }]);
    assert_eq!(fs::read(dir.path().join(JOURNAL_FILE)).unwrap(), b"");
}

#[test]
fn a_line_is_on_the_disk_as_soon_as_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let events = fixture::simulated().events;
    let mut journal = Journal::create(dir.path()).unwrap();
    for (i, event) in events.iter().enumerate() {
        journal.record(event).unwrap();
        assert_eq!(journal::read(&dir.path().join(JOURNAL_FILE)).unwrap().events.len(), i + 1);
    }
}

#[test]
fn wherever_the_last_line_is_cut_the_lines_before_it_are_read_and_the_cut_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let events = fixture::simulated().events;
    write(dir.path(), &events);
    let path = dir.path().join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for cut in last + 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let contents = journal::read(&path).unwrap();
        assert_eq!(contents.events.len(), events.len() - 1, "cut at {cut}");
        assert_eq!(contents.torn, Some(Torn { line: events.len(), offset: last as u64 }));
    }
}

#[test]
fn damage_in_the_middle_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &fixture::simulated().events);
    let path = dir.path().join(JOURNAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = &lines[2][..lines[2].len() / 2];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = journal::read(&path).unwrap_err().to_string();
    assert!(error.contains("journal.jsonl:3: ") && error.contains("--resume"), "{error}");
}

#[test]
fn a_journal_of_a_newer_version_is_refused_even_in_its_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(JOURNAL_FILE);
    fs::write(&path, "{\"v\":2,\"t\":\"2026-01-01T00:00:00Z\",\"happening\":true}\n").unwrap();
    let error = journal::read(&path).unwrap_err().to_string();
    assert!(error.contains("journal.jsonl:1: version 2 is not 1"), "{error}");
}

#[test]
fn continuing_cuts_the_torn_line_off_and_appends_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let events = fixture::simulated().events;
    write(dir.path(), &events);
    let path = dir.path().join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let (mut journal, contents) = Journal::append_to(dir.path()).unwrap();
    assert_eq!(contents.events.len(), events.len() - 1);
    journal.record(events.last().unwrap()).unwrap();
    assert!(journal::read(&path).unwrap().events == events);
}

#[test]
fn continuing_nothing_begins_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents) = Journal::append_to(&dir.path().join("new")).unwrap();
    assert!(contents.events.is_empty());
    assert!(dir.path().join("new").join(JOURNAL_FILE).exists());
}

#[test]
fn a_second_writer_is_told_who_has_the_folder_and_may_have_it_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let first = Journal::create(dir.path()).unwrap();
    for second in [Journal::create(dir.path()).map(drop), Journal::append_to(dir.path()).map(drop)] {
        let error = second.unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        assert!(error.contains("--out"), "{error}");
    }
    drop(first);
    Journal::create(dir.path()).unwrap();
}

#[test]
fn starting_afresh_keeps_the_samples_of_the_run_before() {
    let dir = tempfile::tempdir().unwrap();
    let events = fixture::simulated().events;
    write(dir.path(), &events);
    write(dir.path(), &events[..1]);
    assert!(journal::read(&dir.path().join(PREVIOUS_JOURNAL_FILE)).unwrap().events == events);
    // A run that settled nothing does not push out one that did.
    write(dir.path(), &events[..1]);
    assert!(journal::read(&dir.path().join(PREVIOUS_JOURNAL_FILE)).unwrap().events == events);
}

#[test]
fn only_lasting_answers_under_the_same_fingerprint_are_held() {
    let run = fixture::faults();
    let held = journal::resume_state(&run.events);
    let settled = |e: &Event| match e {
        Event::CaseSettled { case, outcome, .. } => Some((case.key.clone(), outcome.name())),
        _ => None,
    };
    for (key, outcome) in run.events.iter().filter_map(settled) {
        let lasting = ["measured", "unstable", "wrong"].contains(&outcome);
        assert_eq!(held.holds(&key, &fixture::fingerprint()), lasting, "{outcome}");
        assert!(!held.holds(&key, &Fingerprint("another".to_owned())), "{outcome}");
    }
    assert_eq!(held.len(), 3);
}

#[test]
fn a_case_that_is_planned_again_or_fails_later_is_no_longer_held() {
    let mut run = fixture::simulated();
    let Some(Event::CaseSettled { case, .. }) =
        run.events.iter().find(|e| matches!(e, Event::CaseSettled { .. })).cloned()
    else {
        unreachable!("the fixture settles cases")
    };
    let holds = |run: &Run| journal::resume_state(&run.events).holds(&case.key, &fixture::fingerprint());
    assert!(holds(&run));
    let before = run.events.len();
    run.events.push(Event::CasesPlanned { todo: vec![case.clone()], held: Vec::new() });
    assert!(!holds(&run));
    run.events.truncate(before);
    run.settled(&case, Outcome::TimedOut { limit_seconds: 1.0, message: None }, None);
    assert!(!holds(&run));
}

#[test]
fn counters_that_a_profiler_took_after_the_end_are_known_on_resumption() {
    let mut run = fixture::reduce();
    let good = |e: &Event| match e {
        Event::CaseSettled { case, outcome: Outcome::Measured, .. } => Some(case.clone()),
        _ => None,
    };
    let case = run.events.iter().find_map(good).unwrap();
    let lacks = |run: &Run| journal::resume_state(&run.events).lacks_counters(&case.key);
    assert!(lacks(&run));
    let counters = Counters([("inst_executed".to_owned(), 5.0)].into());
    run.events.push(Event::CaseCounted { case: case.clone(), counters: counters.clone(), each: Vec::new() });
    assert!(!lacks(&run));
    let records = runner::analyse::records(&run.events).unwrap();
    let record = records.cases.iter().find(|record| record.case.key == case.key).unwrap();
    assert_eq!(record.counters, Some(counters));
    assert!(record.result.is_some(), "the timing stands");
    run.events.push(Event::CasesPlanned { todo: vec![case.clone()], held: Vec::new() });
    run.settled(&case, Outcome::Measured, None);
    assert!(lacks(&run), "it was run again");
}

#[test]
fn keys_that_differ_in_type_alone_are_different_cases() {
    let mut run = fixture::simulated();
    let number = run.case("neighbored", &[("n", Value::Int(1))]);
    let text = run.case("neighbored", &[("n", Value::Str("1".to_owned()))]);
    run.settled(&number, Outcome::Measured, None);
    let held = journal::resume_state(&run.events);
    assert!(held.holds(&number.key, &fixture::fingerprint()));
    assert!(!held.holds(&text.key, &fixture::fingerprint()));
}

fn stored(run: &Run) -> (Records, String) {
    let records = runner::analyse::records(&run.events).unwrap();
    let text = journal::records_text(&records).unwrap();
    (records, text)
}

#[test]
fn records_are_read_back_as_they_were_less_what_changes_from_run_to_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.jsonl");
    for run in [fixture::reduce(), fixture::sum_matrix(), fixture::faults(), fixture::simulated()] {
        let (mut records, text) = stored(&run);
        fs::write(&path, &text).unwrap();
        records.environment = journal::without_run_facts(&records.environment);
        assert!(journal::read_records(&path).unwrap() == records);
        for word in ["gpu-node-7", "0123abcd", "2026-01-02", "memory_free", "\"rounds\":"] {
            assert!(!text.contains(word), "{word} stands in the records");
        }
    }
}

#[test]
fn records_that_were_cut_or_are_of_another_version_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.jsonl");
    let (_, text) = stored(&fixture::simulated());
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        journal::read_records(&path).unwrap_err().to_string()
    };
    assert!(refused("").contains("does not begin with a header"));
    let (_, headless) = text.split_once('\n').unwrap();
    assert!(refused(headless).contains("does not begin with a header"));
    let cut = refused(&text[..text.len() - 20]);
    assert!(cut.contains("records.jsonl:3: ") && cut.contains("runner report --from-journal"), "{cut}");
    assert!(refused(&text.replacen("\"version\":1", "\"version\":7", 1)).contains("version 7 is not 1"));
    assert!(refused(&format!("{text}{text}")).contains("records.jsonl:4: a second header"));
}
