//! Records and journals that someone edited: they are refused or reported, and never cause a panic.
//!
//! The files are meant for git and for people, so merges and editors change them. A line that parses may still hold
//! values that no run writes.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_report::Screen;
use runner_results::analyse;
use runner_results::journal::{self, Contents, JOURNAL_FILE, Journal};
use runner_types::Event;
use serde_json::{Value, json};

use fixture::Run;

/// Changes every 23rd value. The number is prime, so that all kinds of lines are covered.
const STRIDE: usize = 23;

/// Paths to all values in a line; a container comes before its contents.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| places(inner, &format!("{at}/{key}"), into)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), into));
        }
        _ => {}
    }
}

/// Replacements for a value.
fn instead(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(_) => [json!(0), json!(-1), json!(1e308), json!(u64::MAX), json!(1)].into(),
        Value::String(_) => [json!(""), json!("é|`<b>\n"), json!("f64")].into(),
        Value::Array(items) => {
            let doubled: Vec<Value> = items.iter().chain(items).cloned().collect();
            [json!([]), Value::Array(items.iter().skip(1).cloned().collect()), Value::Array(doubled)].into()
        }
        Value::Bool(is) => [json!(!is)].into(),
        Value::Object(_) | Value::Null => [json!({}), json!(null)].into(),
    }
}

/// Passes every changed text to `read`. Returns the changes that made it panic.
fn panics(text: &str, read: &dyn Fn(&str)) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut count = 0;
    for (number, line) in lines.iter().enumerate() {
        let whole: Value = serde_json::from_str(line).unwrap();
        let mut paths = Vec::new();
        places(&whole, "", &mut paths);
        for path in paths.iter().filter(|path| !path.is_empty() && !path.contains("version")) {
            count += 1;
            // The header decides how cases are parsed, so every value in it is tested.
            if number > 0 && count % STRIDE != 0 {
                continue;
            }
            for new in instead(whole.pointer(path).unwrap_or(&Value::Null)) {
                let mut changed = whole.clone();
                if let Some(place) = changed.pointer_mut(path) {
                    *place = new.clone();
                }
                let changed = changed.to_string();
                let mut all = lines.clone();
                all[number] = &changed;
                let all = all.join("\n") + "\n";
                if catch_unwind(AssertUnwindSafe(|| read(&all))).is_err() {
                    found.push(format!("line {}, {path} = {new}", number + 1));
                }
            }
        }
    }
    found
}

fn runs() -> [Run; 3] {
    [fixture::simulated(), fixture::faults(), fixture::sum_matrix()]
}

fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "{} changes made it panic:\n{}", found.len(), found.join("\n"));
}

#[test]
fn edited_records_are_refused_or_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.jsonl");
    for run in runs() {
        let text = journal::records_text(&analyse::records(&run.events).unwrap()).unwrap();
        assert_none(&panics(&text, &|changed| {
            fs::write(&path, changed).unwrap();
            if let Ok(records) = journal::read_records(&path) {
                let _ = runner_report::files(&records);
                let _ = runner_report::terminal(&records, Screen { styled: false, width: Some(40) });
            }
        }));
    }
}

#[test]
fn an_edited_journal_is_refused_or_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = &dir.path().join(JOURNAL_FILE);
    let run = fixture::faults();
    let mut journal = Journal::create(dir.path()).unwrap();
    run.events.iter().for_each(|event| journal.record(event).unwrap());
    drop(journal);
    let text = fs::read_to_string(path).unwrap();
    assert_none(&panics(&text, &|changed| {
        fs::write(path, changed).unwrap();
        let Ok(history) = journal::read(path).and_then(Contents::into_history) else { return };
        if let Ok(records) = analyse::records_of(history) {
            let _ = runner_report::files(&records);
        }
    }));
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

/// Apart from the name, the journal and the records are as this version writes them, with checksums.
#[test]
fn a_name_that_no_manifest_may_have_is_refused_by_every_command_that_reads_it() {
    for name in ["../../ESCAPED", "/tmp/ESCAPED", "..", "a/b", "a b", ""] {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("some/where/deep");
        let theirs = work.join("theirs");
        let mut events = fixture::sum_matrix().events;
        for event in &mut events {
            if let Event::RunStarted { header, .. } = event {
                name.clone_into(&mut header.experiment);
            }
        }
        Journal::create(&theirs).unwrap().record_all(&events).unwrap();
        let records = journal::records_text(&analyse::records(&events).unwrap()).unwrap();
        fs::write(theirs.join("records.jsonl"), records).unwrap();
        let before = files_below(root.path());
        let commands = ["merge theirs", "report theirs --from-journal", "report theirs", "compare theirs theirs"];
        for words in commands.map(|command| command.split(' ')) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
            let output = command.current_dir(&work).args(words).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{command:?}: {error}");
            assert!(error.contains(&format!("`{name}` is not a valid experiment name")), "{command:?}: {error}");
            let new: Vec<PathBuf> =
                files_below(root.path()).into_iter().filter(|path| !before.contains(path)).collect();
            let is_lock = |path: &PathBuf| path.starts_with(&theirs) && path.extension() == Some("lock".as_ref());
            assert!(new.iter().all(is_lock), "{command:?} wrote {new:?}");
        }
    }
}
