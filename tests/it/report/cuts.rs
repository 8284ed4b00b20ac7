//! Journals that end anywhere: the run was killed, had been resumed, or was still compiling. Whatever is generated from
//! such a journal has every case that was settled and is not run again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use runner_results::analyse;
use runner_results::journal::{self, Contents, Held, History, JOURNAL_FILE, Journal};
use runner_types::{Case, CaseKey, Event, Outcome, Records, Regime, Unit, Value};

use fixture::{Experiment, Run};

/// Outcome of each case, by its name.
type Outcomes = BTreeMap<String, &'static str>;

/// Two groups of three cases; one case in each is excluded.
fn run() -> (Run, Vec<Case>) {
    let mut run = Run::new(
        &Experiment {
            name: "copy",
            title: "Copies",
            question: "Which is faster?",
            axes: &[("n", false)],
            variants: &["a", "b", "never"],
            baseline: Some(("a", &[])),
            manifest: "[experiment]\nname = \"copy\"\n",
        },
        fixture::h100(),
    );
    let sizes = [1, 2].map(|n| [("n", Value::Int(n))]);
    let cases = sizes.iter().flat_map(|n| ["a", "b", "never"].map(|variant| run.case(variant, n))).collect();
    (run, cases)
}

/// Plans cases, and settles those that do not run.
fn plan(run: &mut Run, todo: &[Case], held: &[Case]) {
    run.events.push(Event::CompileStarted { units: 1 });
    run.events.push(Event::CasesPlanned { todo: todo.to_vec(), held: held.to_vec() });
    for case in todo.iter().filter(|case| case.key.variant == "never") {
        run.settled(case, Outcome::Excluded { why: "it is slow".to_owned() }, None);
    }
}

fn measure_group(run: &mut Run, ordinal: u32, cases: &[Case]) {
    let key = cases[0].group.clone();
    run.events.push(Event::GroupStarted { ordinal, key: key.clone(), cases: 2 });
    for case in cases.iter().filter(|case| case.key.variant != "never") {
        run.checked(case, Vec::new());
        run.measured(case, Regime::Cold, Unit::DeviceNanoseconds, 1000.0, &[]);
        run.settled(case, Outcome::Measured, None);
    }
    run.events.push(Event::GroupFinished { ordinal, key });
}

/// A run, a second one that resumes it and repeats the second group, and a third one that resumes both and is killed
/// while it compiles.
fn resumed_twice() -> Vec<Event> {
    let (mut run, cases) = run();
    let (first, second) = cases.split_at(3);
    plan(&mut run, &cases, &[]);
    measure_group(&mut run, 0, first);
    measure_group(&mut run, 1, second);
    run.finish(true);
    run.start(fixture::h100());
    let excluded = first[2..].iter().chain(second).cloned().collect::<Vec<_>>();
    plan(&mut run, &excluded, &first[..2]);
    measure_group(&mut run, 1, second);
    run.finish(true);
    run.start(fixture::h100());
    run.events.push(Event::CompileStarted { units: 1 });
    run.events
}

/// Expected outcomes, straight from the events: the cases of the last plan, with what was settled since each case was
/// last planned.
fn by_hand(events: &[Event]) -> Outcomes {
    let (mut settled, mut planned) = (BTreeMap::new(), Vec::new());
    for event in events {
        match event {
            Event::CasesPlanned { todo, held } => {
                for case in todo {
                    settled.remove(&case.key.to_string());
                }
                planned = todo.iter().chain(held).map(|case| case.key.to_string()).collect();
            }
            Event::CaseSettled { case, outcome, .. } => {
                settled.insert(case.key.to_string(), outcome.name());
            }
            _ => {}
        }
    }
    let outcome = |name: String| {
        let outcome = settled.get(&name).copied().unwrap_or("not_run");
        (name, outcome)
    };
    planned.into_iter().map(outcome).collect()
}

fn outcomes(records: &Records) -> Outcomes {
    records.cases.iter().map(|record| (record.case.key.to_string(), record.outcome.name())).collect()
}

fn read(journal: &Path) -> History {
    journal::read(journal).and_then(Contents::into_history).unwrap()
}

/// Outcomes after a merge of only this journal.
fn merged(journal: &Path) -> Outcomes {
    let merged = journal::merge(vec![journal::scan(journal).unwrap()]).unwrap().remove(0);
    let groups = merged.of_groups(History::fold).unwrap();
    outcomes(&analyse::records_of_groups(merged.into_run_events(), groups).unwrap())
}

/// Cases that a resumed run keeps.
fn kept(held: &Held, cases: &[Case]) -> Vec<CaseKey> {
    let holds = |case: &&Case| held.holds(&case.key, &fixture::fingerprint());
    cases.iter().filter(holds).map(|case| case.key.clone()).collect()
}

#[test]
fn no_settled_case_is_lost_wherever_a_journal_ends() {
    let dir = tempfile::tempdir().unwrap();
    let events = resumed_twice();
    let (_, cases) = run();
    Journal::create(dir.path()).unwrap().record_all(&events).unwrap();
    let path = dir.path().join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), events.len());
    for count in 1..=lines.len() {
        let expected = by_hand(&events[..count]);
        let whole_lines = lines[..count].concat();
        let half_a_line = lines.get(count).map(|line| [&whole_lines, &line[..line.len() / 2]].concat());
        for text in [Some(whole_lines), half_a_line].into_iter().flatten() {
            let what = format!("{count} lines and {} bytes", text.len());
            fs::write(&path, &text).unwrap();
            let records = analyse::records_of(read(&path)).unwrap();
            assert_eq!(outcomes(&records), expected, "the report after {what}");
            assert_eq!(merged(&path), expected, "the merge after {what}");
            let measured = |case: &&Case| expected.get(&case.key.to_string()) == Some(&"measured");
            let measured: Vec<CaseKey> = cases.iter().filter(measured).map(|case| case.key.clone()).collect();
            assert_eq!(kept(&read(&path).held(), &cases), measured, "the resumption after {what}");
        }
    }
}

#[test]
fn a_resumed_run_that_is_killed_while_it_compiles_leaves_the_report_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let events = resumed_twice();
    let begun = events.iter().rposition(|event| matches!(event, Event::RunStarted { .. })).unwrap();
    fixture::write(dir.path(), &analyse::records(&events[..begun]).unwrap());
    let report = || fs::read_to_string(dir.path().join("report.md")).unwrap();
    let before = report();
    assert_eq!(before.matches("not run").count(), 0);
    Journal::create(dir.path()).unwrap().record_all(&events).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let output = command.args(["report", "--from-journal"]).arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(report() == before);
}
