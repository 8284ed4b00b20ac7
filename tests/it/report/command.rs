//! `runner report`, as a user types it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use runner_results::journal::Journal;
use runner_types::Event;

fn report(dir: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner")).arg("report").arg(dir).args(options).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn journal(dir: &Path) {
    record(dir, &fixture::sum_matrix().events);
}

fn record(dir: &Path, events: &[Event]) {
    let mut journal = Journal::create(dir).unwrap();
    for event in events {
        journal.record(event).unwrap();
    }
}

#[test]
fn a_journal_gives_every_file_and_the_records_alone_give_them_again() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    let output = report(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("sum[bx=32, by=2] is tied for the fastest"));
    let names = ["report.md", "results.csv", "records.jsonl", "environment.json", "plots/time-sum-n-16384-cold.svg"];
    let read = || names.map(|name| fs::read(dir.path().join(name)).unwrap());
    let first = read();
    for name in names.iter().filter(|name| **name != "records.jsonl") {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    fs::remove_file(dir.path().join("journal.jsonl")).unwrap();
    assert_eq!(report(dir.path(), &[]).status.code(), Some(0));
    assert!(read() == first);
}

#[test]
fn the_records_are_preferred_and_the_journal_is_read_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    report(dir.path(), &[]);
    // A journal of the same experiment with another title.
    let mut events = fixture::sum_matrix().events;
    if let Some(Event::RunStarted { header, .. }) = events.first_mut() {
        header.title = "Shapes of blocks".to_owned();
    }
    fs::remove_file(dir.path().join("journal.jsonl")).unwrap();
    record(dir.path(), &events);
    let page = || fs::read_to_string(dir.path().join("report.md")).unwrap();
    report(dir.path(), &[]);
    assert!(page().starts_with("# Block shapes"));
    report(dir.path(), &["--from-journal"]);
    assert!(page().starts_with("# Shapes of blocks"));
}

#[test]
fn records_without_a_line_are_refused_by_every_command_that_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    report(dir.path(), &[]);
    let records = dir.path().join("records.jsonl");
    let whole = fs::read_to_string(&records).unwrap();
    let page = fs::read(dir.path().join("report.md")).unwrap();
    let line = whole.lines().nth(2).unwrap();
    fs::write(&records, whole.replacen(&format!("{line}\n"), "", 1)).unwrap();
    let cases = whole.lines().count() - 2;
    let expected = format!("records.jsonl:{}: it states {cases} case lines, but there are {}", cases + 1, cases - 1);
    let folder = dir.path().to_str().unwrap();
    for words in [&["report", folder][..], &["report", "--check", folder], &["compare", folder, folder]] {
        let output = Command::new(env!("CARGO_BIN_EXE_runner")).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(&expected), "{words:?}: {}", said(&output));
    }
    assert!(fs::read(dir.path().join("report.md")).unwrap() == page, "nothing is written");
}

/// The files are sparse, so they take no space on the disk.
#[test]
fn records_and_journals_that_are_too_long_are_refused_before_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [("records.jsonl", 1 << 30, "1024 MB"), ("journal.jsonl", 8 << 30, "8192 MB")];
    for (name, size, most) in sizes {
        let file = fs::File::create(dir.path().join(name)).unwrap();
        file.set_len(size + 1).unwrap();
        let options: &[&str] = if name == "journal.jsonl" { &["--from-journal"] } else { &[] };
        let output = report(dir.path(), options);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let expected = format!("{name}: it has more than {most}; raise the limit with RUNNER_LONGEST_FILE=MB");
        assert!(said(&output).contains(&expected), "{}", said(&output));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let output = command.arg("report").arg(dir.path()).env("RUNNER_LONGEST_FILE", "1 GB").output().unwrap();
    assert!(said(&output).contains("RUNNER_LONGEST_FILE is `1 GB`, not a number of megabytes"), "{}", said(&output));
}

#[test]
fn records_that_were_edited_by_hand_are_refused_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    report(dir.path(), &[]);
    let records = dir.path().join("records.jsonl");
    let edited = fs::read_to_string(&records).unwrap().replacen("Block shapes", "Shapes of blocks", 1);
    fs::write(&records, edited).unwrap();
    let page = fs::read_to_string(dir.path().join("report.md")).unwrap();
    let output = report(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("records.jsonl:1: ") && said(&output).contains("checksum"), "{}", said(&output));
    assert_eq!(fs::read_to_string(dir.path().join("report.md")).unwrap(), page);
}

#[test]
fn a_torn_journal_is_reported_as_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    let path = dir.path().join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let output = report(dir.path(), &[]);
    assert!(said(&output).contains("is incomplete and was skipped"), "{}", said(&output));
    assert!(fs::read_to_string(dir.path().join("report.md")).unwrap().contains("Incomplete"));
}

#[test]
fn a_folder_without_a_report_is_a_usage_error_and_a_damaged_report_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = report(dir.path(), &[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(said(&nothing).contains("neither records.jsonl nor journal.jsonl"), "{}", said(&nothing));
    fs::write(dir.path().join("records.jsonl"), "{}\n").unwrap();
    let damaged = report(dir.path(), &[]);
    assert_eq!(damaged.status.code(), Some(3));
    assert!(said(&damaged).contains("does not begin with a header"), "{}", said(&damaged));
}

#[test]
fn a_folder_above_reports_suggests_them() {
    let dir = tempfile::tempdir().unwrap();
    journal(&dir.path().join("copy/h100"));
    let copy = dir.path().join("copy");
    let one = report(&copy, &[]);
    assert_eq!(one.status.code(), Some(2));
    let (copy, h100) = (copy.display(), dir.path().join("copy/h100"));
    let expected =
        format!("error: {copy} has neither records.jsonl nor journal.jsonl; did you mean `{}`?\n", h100.display());
    assert_eq!(said(&one), expected);
    journal(&dir.path().join("copy/a100"));
    let both = said(&report(&dir.path().join("copy"), &[]));
    assert!(both.contains("copy/a100` or `") && both.ends_with("copy/h100`?\n"), "{both}");
}

#[test]
fn a_file_of_a_report_suggests_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    report(dir.path(), &[]);
    let page = dir.path().join("report.md");
    let output = report(&page, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).ends_with(&format!("did you mean `{}`?\n", dir.path().display())), "{}", said(&output));
}

#[test]
fn a_check_names_every_file_that_is_not_what_the_records_make_and_writes_nothing() {
    let tree = tempfile::tempdir().unwrap();
    let [changed, same] = ["copy/a100", "copy/h100"].map(|name| tree.path().join(name));
    for dir in [&changed, &same] {
        journal(dir);
        assert_eq!(report(dir, &[]).status.code(), Some(0));
    }
    let ok = report(tree.path(), &["--check"]);
    assert_eq!(ok.status.code(), Some(0), "{}", said(&ok));
    assert_eq!(said(&ok), "2 reports checked: every file matches its records\n");

    let page = fs::read_to_string(changed.join("report.md")).unwrap();
    let third: Vec<&str> = page.lines().take(3).collect();
    fs::write(changed.join("report.md"), page.replacen(third[2], &format!("{} edited", third[2]), 1)).unwrap();
    let chart =
        fs::read_dir(changed.join("plots")).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    fs::remove_file(changed.join("plots").join(&chart)).unwrap();
    fs::write(changed.join("plots/old.svg"), "<svg/>").unwrap();
    let mut csv = fs::read(changed.join("results.csv")).unwrap();
    csv.truncate(csv.len() - 1);
    fs::write(changed.join("results.csv"), &csv).unwrap();

    let output = report(tree.path(), &["--check"]);
    assert_eq!(output.status.code(), Some(1));
    let named = String::from_utf8(output.stdout.clone()).unwrap();
    let shown = |name: &str| changed.join(name).display().to_string();
    let rows = String::from_utf8_lossy(&csv).lines().count();
    for expected in [
        format!(
            "{}:3: differs\n    in the file:  {} edited\n    from records: {}\n",
            shown("report.md"),
            third[2],
            third[2]
        ),
        format!("{}:{rows}: differs\n", shown("results.csv")),
        "\\r (without a line feed)\n".to_owned(),
        format!("{}: missing\n", shown(&format!("plots/{chart}"))),
        format!("{}: not a file of this report\n", shown("plots/old.svg")),
    ] {
        assert!(named.contains(&expected), "{expected}\n{named}");
    }
    assert!(!named.contains("h100") && !named.contains("journal"), "{named}");
    assert!(said(&output).starts_with("2 reports checked, 1 differs from its records"), "{}", said(&output));
    assert!(changed.join("plots/old.svg").exists() && !changed.join("plots").join(&chart).exists());
    assert_eq!(fs::read(changed.join("results.csv")).unwrap(), csv);
}

#[test]
fn the_report_of_a_complete_run_is_not_replaced_by_one_that_lacks_cases() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    assert_eq!(report(dir.path(), &[]).status.code(), Some(0));
    let records = || fs::read(dir.path().join("records.jsonl")).unwrap();
    let whole = records();
    // A second run, killed after two cases.
    let events = fixture::sum_matrix().events;
    let settled = |event: &Event| matches!(event, Event::CaseSettled { .. });
    let second = events.iter().enumerate().filter(|(_, event)| settled(event)).nth(1).unwrap().0;
    fs::remove_file(dir.path().join("journal.jsonl")).unwrap();
    record(dir.path(), &events[..=second]);
    let output = report(dir.path(), &["--from-journal"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("has the report of a complete run, but its journal lacks cases"), "{text}");
    assert!(text.contains("journal.previous.jsonl"), "{text}");
    assert_eq!(records(), whole);
    // Damaged records do not protect the report from an incomplete run.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(dir.path().join("records.jsonl"), damaged).unwrap();
    assert_eq!(report(dir.path(), &["--from-journal"]).status.code(), Some(0));
    assert_ne!(records(), whole);
}
