//! The journal survives what ends a run, and refuses what it cannot read.

use std::fs;
use std::path::Path;

use runner_results::journal::{
    self, Contents, Held, History, JOURNAL_FILE, Journal, JournalError, PREVIOUS_JOURNAL_FILE, Torn,
};
use runner_types::{Activity, CountedLine, Counters, Event, Fingerprint, Outcome, Records, Value};

use fixture::Run;

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
        assert!(contents.events().eq(&run.events));
        assert_eq!(contents.torn(), None);
    }
}

#[test]
fn every_line_carries_a_version_and_a_time() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &fixture::simulated().events);
    let text = fs::read_to_string(dir.path().join(JOURNAL_FILE)).unwrap();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["v"], 2);
        assert_eq!(line["sum"].as_str().map(str::len), Some(8), "{line}");
        assert!(humantime::parse_rfc3339(line["t"].as_str().unwrap()).is_ok(), "{line}");
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
        assert_eq!(journal::read(&dir.path().join(JOURNAL_FILE)).unwrap().events().count(), i + 1);
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
        assert_eq!(contents.events().count(), events.len() - 1, "cut at {cut}");
        assert_eq!(contents.torn(), Some(Torn { line: events.len(), offset: last as u64 }));
    }
}

/// Journal of a run with one bit flipped in this line (0-based).
fn damaged(dir: &Path, events: &[Event], line: usize) -> Result<Contents, JournalError> {
    write(dir, events);
    let path = dir.join(JOURNAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[line] = lines[line].replacen("\"t\":\"2", "\"t\":\"3", 1);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    journal::read(&path)
}

fn place_of(run: &Run, wanted: impl Fn(&Event) -> bool) -> usize {
    run.events.iter().position(wanted).unwrap()
}

/// A run that plans its cases before its first group starts, as a real run does.
fn planned() -> Run {
    let mut run = fixture::reduce();
    let settled = |event: &Event| match event {
        Event::CaseSettled { case, .. } => Some(case.clone()),
        _ => None,
    };
    let todo = run.events.iter().filter_map(settled).collect();
    run.events.insert(1, Event::CasesPlanned { todo, held: Vec::new() });
    run
}

#[test]
fn a_damaged_line_costs_the_cases_of_its_group_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let run = planned();
    let place = place_of(&run, |event| matches!(event, Event::CaseMeasured { .. }));
    let Event::CaseMeasured { case: hit, .. } = &run.events[place] else { unreachable!() };
    let contents = damaged(dir.path(), &run.events, place).unwrap();
    assert_eq!(contents.damaged().map(|damaged| damaged.line).collect::<Vec<_>>(), [place + 1]);
    assert!(contents.damaged().all(|damaged| damaged.message.contains("checksum")), "{contents:?}");
    let held = contents.clone().into_history().unwrap().held();
    let before = History::fold(run.events.clone()).held();
    let mut others = 0;
    for event in &run.events {
        let Event::CaseSettled { case, .. } = event else { continue };
        let holds = |held: &Held| held.holds(&case.key, &fixture::fingerprint());
        let expected = holds(&before) && case.group != hit.group;
        assert_eq!(holds(&held), expected, "{}", case.key);
        others += usize::from(expected);
    }
    assert!(others > 0);
    let records = runner_results::analyse::records_of(contents.into_history().unwrap()).unwrap();
    let lost = records.cases.iter().filter(|record| matches!(record.outcome, Outcome::NotRun { .. }));
    assert!(lost.clone().count() > 0 && lost.clone().all(|record| record.case.group == hit.group));
}

/// Journal of a run whose lines were changed.
fn changed(dir: &Path, events: &[Event], change: impl FnOnce(&mut Vec<String>)) -> Contents {
    write(dir, events);
    let path = dir.join(JOURNAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    journal::read(&path).unwrap()
}

#[test]
fn a_line_that_is_doubled_dropped_or_moved_costs_its_group_and_is_located() {
    type Change = fn(&mut Vec<String>, usize);
    let dir = tempfile::tempdir().unwrap();
    let run = planned();
    let place = place_of(&run, |event| matches!(event, Event::CaseMeasured { .. }));
    let Event::CaseMeasured { case: hit, .. } = &run.events[place] else { unreachable!() };
    let changes: [(Change, &[usize], &str); 4] = [
        (|lines, at| lines.insert(at, lines[at].clone()), &[1], "is duplicated or out of order"),
        (|lines, at| drop(lines.remove(at)), &[0], "is missing before it"),
        (|lines, at| lines.swap(at, at + 1), &[0, 1], "is duplicated or out of order"),
        (|lines, at| drop(lines.drain(at..at + 2)), &[0], "are missing before it"),
    ];
    for (change, offsets, words) in changes {
        let contents = changed(dir.path(), &run.events, |lines| change(lines, place));
        let found: Vec<usize> = contents.damaged().map(|damaged| damaged.line).collect();
        let expected: Vec<usize> = offsets.iter().map(|offset| place + 1 + offset).collect();
        assert_eq!(found, expected, "{words}");
        assert!(contents.damaged().any(|damaged| damaged.message.contains(words)), "{contents:?}");
        let held = contents.into_history().unwrap().held();
        for event in &run.events {
            let Event::CaseSettled { case, .. } = event else { continue };
            assert!(case.group != hit.group || !held.knows(&case.key), "{} is held", case.key);
        }
        assert!(!held.is_empty(), "other groups are kept");
    }
}

#[test]
fn lines_go_on_counting_after_a_resumption() {
    let dir = tempfile::tempdir().unwrap();
    let events = planned().events;
    write(dir.path(), &events[..5]);
    let (mut journal, contents) = Journal::append_to(dir.path()).unwrap();
    assert_eq!(contents.last(), 5);
    journal.record(&events[5]).unwrap();
    drop(journal);
    let contents = journal::read(&dir.path().join(JOURNAL_FILE)).unwrap();
    assert_eq!((contents.last(), contents.damaged().count()), (6, 0));
}

#[test]
fn what_was_run_again_after_the_damage_counts() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture::reduce();
    let place = place_of(&run, |event| matches!(event, Event::CaseMeasured { .. }));
    let twice: Vec<Event> = run.events.iter().chain(&run.events).cloned().collect();
    let contents = damaged(dir.path(), &twice, place).unwrap();
    let records = |history: History| runner_results::analyse::records_of(history).unwrap().cases;
    assert!(records(contents.into_history().unwrap()) == records(History::fold(twice)));
}

#[test]
fn damage_before_the_first_group_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let run = planned();
    let planned = place_of(&run, |event| matches!(event, Event::CasesPlanned { .. }));
    for line in 0..=planned {
        let error = damaged(dir.path(), &run.events, line).and_then(Contents::into_history).unwrap_err().to_string();
        assert!(
            error.contains(&format!("journal.jsonl:{}: ", line + 1))
                && error.contains("restore it from a copy, or run the experiment again"),
            "{error}"
        );
    }
}

#[test]
fn a_journal_of_a_newer_version_is_refused_even_in_its_last_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &fixture::simulated().events[..1]);
    let path = dir.path().join(JOURNAL_FILE);
    // Start of the SHA-256 hash of the line without its checksum.
    let line = "{\"v\":3,\"t\":\"2026-01-01T00:00:00Z\",\"happening\":true,\"sum\":\"SUM\"}\n";
    fs::write(&path, line.replace("SUM", "2be6573c")).unwrap();
    let error = journal::read(&path).unwrap_err().to_string();
    assert!(error.contains("journal.jsonl:1: version 3, but this runner reads version 2: "), "{error}");
}

#[test]
fn a_line_that_says_another_version_is_damaged_and_its_checksum_is_still_checked() {
    let dir = tempfile::tempdir().unwrap();
    let run = planned();
    let place = place_of(&run, |event| matches!(event, Event::CaseMeasured { .. }));
    let contents = changed(dir.path(), &run.events, |lines| {
        lines[place] = lines[place].replacen("{\"v\":2,", "{\"v\":1,", 1);
    });
    let damaged: Vec<_> = contents.damaged().collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].line, place + 1);
    let message = &damaged[0].message;
    assert!(message.starts_with("its version is 1, but this runner reads version 2; checksum mismatch: "), "{message}");
}

#[test]
fn a_file_with_thousands_of_damaged_lines_is_no_journal() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &planned().events);
    let path = dir.path().join(JOURNAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().count();
    fs::write(&path, text + &"x\n".repeat(3000)).unwrap();
    let error = journal::read(&path).unwrap_err().to_string();
    let expected = format!("journal.jsonl:{}: it and 1000 lines before it cannot be read", lines + 1001);
    assert!(error.contains(&expected), "{error}");
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
    assert_eq!(contents.events().count(), events.len() - 1);
    journal.record(events.last().unwrap()).unwrap();
    assert!(journal::read(&path).unwrap().events().eq(&events));
}

#[test]
fn continuing_nothing_begins_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents) = Journal::append_to(&dir.path().join("new")).unwrap();
    assert_eq!(contents.events().count(), 0);
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
    assert!(journal::read(&dir.path().join(PREVIOUS_JOURNAL_FILE)).unwrap().events().eq(&events));
    // A run that settled nothing does not replace one that did.
    write(dir.path(), &events[..1]);
    assert!(journal::read(&dir.path().join(PREVIOUS_JOURNAL_FILE)).unwrap().events().eq(&events));
}

#[test]
fn only_lasting_answers_under_the_same_fingerprint_are_held() {
    let run = fixture::faults();
    let held = History::fold(run.events.clone()).held();
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
    let holds = |run: &Run| History::fold(run.events.clone()).held().holds(&case.key, &fixture::fingerprint());
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
    let lacks = |run: &Run| History::fold(run.events.clone()).held().lacks_counters(&case.key);
    assert!(lacks(&run));
    let counters = Counters([("inst_executed".into(), 5.0)].into());
    run.events.push(Event::CaseCounted {
        case: case.clone(),
        counters: counters.clone(),
        each: Vec::new(),
        lines: Vec::new(),
    });
    assert!(!lacks(&run));
    let records = runner_results::analyse::records(&run.events).unwrap();
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
    let held = History::fold(run.events.clone()).held();
    assert!(held.holds(&number.key, &fixture::fingerprint()));
    assert!(!held.holds(&text.key, &fixture::fingerprint()));
}

fn stored(run: &Run) -> (Records, String) {
    let records = runner_results::analyse::records(&run.events).unwrap();
    let text = journal::records_text(&records).unwrap();
    (records, text)
}

#[test]
fn records_are_read_back_as_they_were_less_what_changes_from_run_to_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.jsonl");
    for run in [fixture::reduce(), fixture::sum_matrix(), fixture::faults(), fixture::simulated()] {
        let (mut records, _) = stored(&run);
        // Not every case has a code hash.
        for hashes in records.cases.iter_mut().step_by(2).filter_map(|record| record.hashes.as_mut()) {
            hashes.code = Some("c0dec0dec0de".to_owned());
        }
        for (record, line) in records.cases.iter_mut().step_by(3).zip(5..) {
            let counters = |counts: [(&'static str, f64); 2]| {
                Counters(counts.into_iter().map(|(name, count)| (name.into(), count)).collect())
            };
            let (file, text) = ("reduce.cu".to_owned(), "a = \"b\";".to_owned());
            let counters =
                [[("branch", 4.0), ("gld_sectors", 7.5)], [("branch", 2.0), ("barriers", 1.0)]].map(counters);
            let lines = counters.into_iter().zip(line..);
            let lines =
                lines.map(|(counters, line)| CountedLine { file: file.clone(), line, text: text.clone(), counters });
            record.lines = lines.collect();
        }
        let text = journal::records_text(&records).unwrap();
        fs::write(&path, &text).unwrap();
        records.environment = journal::without_run_facts(&records.environment);
        assert!(journal::read_records(&path).unwrap() == records);
        for word in ["gpu-node-7", "0123abcd", "2026-01-02", "memory_free", "\"rounds\":"] {
            assert!(!text.contains(word), "the records contain {word}");
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
    assert!(cut.contains("records.jsonl:4: ") && cut.contains("runner report --from-journal"), "{cut}");
    assert!(
        refused(&text.replacen("\"version\":4", "\"version\":7", 1))
            .contains("version 7, but this runner reads version 4: ")
    );
    // Changes a digit of a number in a case's line.
    let flipped = refused(&text.replacen("\"ordinal\":0", "\"ordinal\":7", 1));
    assert!(flipped.contains("records.jsonl:2: checksum mismatch: "), "{flipped}");
    assert!(refused(&format!("{text}{text}")).contains("records.jsonl:4: there are lines after the last one"));
}

/// Joins lines, ending each with a newline.
fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn records_of_which_a_line_is_dropped_doubled_moved_or_cut_off_are_refused_with_its_place() {
    for run in [fixture::reduce(), fixture::regimes(), fixture::faults(), fixture::simulated()] {
        let (_, text) = stored(&run);
        let lines: Vec<&str> = text.lines().collect();
        let mut edits: Vec<(String, Vec<&str>)> = Vec::new();
        for at in 0..lines.len() {
            let edit = |what: &str, change: &dyn Fn(&mut Vec<&str>)| {
                let mut edited = lines.clone();
                change(&mut edited);
                (format!("{what} of line {}", at + 1), edited)
            };
            edits.push(edit("loss", &|lines| {
                lines.remove(at);
            }));
            edits.push(edit("copy", &|lines| lines.insert(at, lines[at])));
            edits.push(edit("copy at the end", &|lines| lines.push(lines[at])));
            edits.push(edit("loss of all before the end", &|lines| drop(lines.drain(at..lines.len() - 1))));
            edits.push(edit("loss from there", &|lines| lines.truncate(at)));
            // The next line, and every seventeenth after it.
            for other in (at + 1..lines.len()).step_by(17) {
                edits.push(edit(&format!("exchange with line {}", other + 1), &|lines| lines.swap(at, other)));
            }
        }
        for (what, edited) in edits.into_iter().filter(|(_, edited)| *edited != lines) {
            let read = journal::parse_records(&joined(&edited), Path::new("records.jsonl"));
            let error = read.expect_err(&what).to_string();
            let has_no_header = edited.first().is_none_or(|first| !first.starts_with("{\"line\":\"header\""));
            let place = if has_no_header { "records.jsonl does not begin" } else { "records.jsonl:" };
            assert!(error.starts_with(place), "{what}: {error}");
        }
    }
}

/// Recomputes the checksum of a line.
pub fn sealed(line: &str) -> String {
    let end = line.rfind(",\"sum\"").unwrap();
    let sum = &runner_types::sha256_hex(format!("{}}}", &line[..end]).as_bytes())[..8];
    format!("{},\"sum\":\"{sum}\"}}", &line[..end])
}

#[test]
fn a_line_of_records_that_was_changed_with_its_checksum_does_not_fit_the_last_line() {
    let (_, text) = stored(&fixture::reduce());
    let lines: Vec<&str> = text.lines().collect();
    let changed = sealed(&lines[1].replacen("\"variant\":\"", "\"variant\":\"x", 1));
    assert_ne!(changed, lines[1]);
    let text = joined(&[&[lines[0], &changed], &lines[2..]].concat());
    let error = journal::parse_records(&text, Path::new("records.jsonl")).unwrap_err().to_string();
    let expected = format!("records.jsonl:{}: the lines before it have changed since they were written", lines.len());
    assert!(error.starts_with(&expected), "{error}");
}

/// Maximum size in bytes of a record with one launch.
const MOST_BYTES: usize = 1000;

#[test]
fn no_committed_record_of_one_launch_is_longer_than_it_may_be() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports");
    let folders = |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let reports = folders(&root).into_iter().filter(|path| path.is_dir()).flat_map(|path| folders(&path));
    let (mut seen, mut long) = (0, Vec::new());
    for path in reports.map(|folder| folder.join("records.jsonl")).filter(|path| path.exists()) {
        let text = fs::read_to_string(&path).unwrap();
        let records = journal::parse_records(&text, &path).unwrap();
        for (record, line) in records.cases.iter().zip(text.lines().skip(1)).filter(|(r, _)| r.launches.len() <= 1) {
            seen += 1;
            if line.len() > MOST_BYTES {
                long.push(format!("{}: {}: {} bytes", path.display(), record.case.key, line.len()));
            }
        }
    }
    assert!(seen > 3000, "{seen}");
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn a_number_that_the_header_does_not_have_is_damage() {
    let (_, text) = stored(&fixture::reduce());
    let (header, rest) = text.split_once('\n').unwrap();
    let cut = header.replacen("\"against\":[", "\"against\":[],\"unused\":[", 1);
    assert_ne!(cut, header);
    let text = format!("{}\n{rest}", sealed(&cut));
    let error = journal::parse_records(&text, Path::new("records.jsonl")).unwrap_err().to_string();
    assert!(error.contains("the header has 0 cases that ratios are against"), "{error}");
}
