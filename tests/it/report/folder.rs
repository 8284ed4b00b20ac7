//! The folder of a report: one writer at a time, no link is followed, and only the report's own files are removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use runner_results::journal::{FolderLock, Journal, JournalError};
use runner_types::Event;
use tempfile::TempDir;

const CHART: &str = "plots/time-sum-n-16384-cold.svg";

fn report(dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner")).args(["report", "--from-journal"]).arg(dir).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with the journal of a run.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &fixture::sum_matrix().events);
    dir
}

fn record(dir: &Path, events: &[Event]) -> FolderLock {
    let mut journal = Journal::create(dir).unwrap();
    for event in events {
        journal.record(event).unwrap();
    }
    journal.close()
}

#[test]
fn a_link_in_place_of_the_charts_is_not_followed() {
    let (dir, theirs) = (folder(), tempfile::tempdir().unwrap());
    fs::write(theirs.path().join("theirs.svg"), "as it was").unwrap();
    symlink(theirs.path(), dir.path().join("plots")).unwrap();
    // The page refers to the file behind the link, as a hand-written one might.
    fs::write(dir.path().join("report.md"), "![x](plots/theirs.svg)\n").unwrap();
    let output = report(dir.path());
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("plots: it is a symbolic link; remove it"), "{}", said(&output));
    let names: Vec<_> = fs::read_dir(theirs.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["theirs.svg"]);
    assert!(!dir.path().join("records.jsonl").exists(), "nothing is written before the refusal");
}

#[test]
fn a_link_in_place_of_a_page_is_replaced_and_not_written_through() {
    let (dir, theirs) = (folder(), tempfile::tempdir().unwrap());
    let profile = theirs.path().join("profile");
    fs::write(&profile, "as it was").unwrap();
    symlink(&profile, dir.path().join("report.md")).unwrap();
    assert_eq!(report(dir.path()).status.code(), Some(0));
    assert_eq!(fs::read_to_string(profile).unwrap(), "as it was");
    assert!(fs::read_to_string(dir.path().join("report.md")).unwrap().contains("](plots/"));
}

#[test]
fn charts_of_the_report_before_are_removed_and_those_of_the_user_are_kept() {
    let dir = folder();
    assert_eq!(report(dir.path()).status.code(), Some(0));
    assert!(dir.path().join(CHART).is_file());
    fs::write(dir.path().join("plots/mine.svg"), "<svg/>").unwrap();
    // A report of the same experiment with other charts.
    fs::remove_file(dir.path().join("journal.jsonl")).unwrap();
    record(dir.path(), &fixture::simulated().events);
    let output = report(dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!dir.path().join(CHART).exists());
    assert_eq!(fs::read_to_string(dir.path().join("plots/mine.svg")).unwrap(), "<svg/>");
}

#[test]
fn a_report_is_not_written_while_a_run_has_the_folder() {
    let dir = folder();
    let journal = Journal::append_to(dir.path()).unwrap();
    let output = report(dir.path());
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("is in use by process "), "{}", said(&output));
    assert!(!dir.path().join("report.md").exists());
    drop(journal);
    assert_eq!(report(dir.path()).status.code(), Some(0));
}

#[test]
fn the_folder_of_a_closed_journal_is_locked_until_its_report_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let lock = record(dir.path(), &fixture::sum_matrix().events);
    assert!(matches!(FolderLock::take(dir.path()), Err(JournalError::Held { .. })));
    drop(lock);
    assert!(FolderLock::take(dir.path()).is_ok());
}

#[test]
fn what_a_killed_process_was_writing_is_removed() {
    let dir = folder();
    fs::create_dir(dir.path().join("plots")).unwrap();
    let left = [".writing-a1b2c3", "plots/.writing-d4e5f6"].map(|name| dir.path().join(name));
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    assert_eq!(report(dir.path()).status.code(), Some(0));
    assert!(left.iter().all(|path| !path.exists()));
}

#[test]
fn a_check_refuses_pipes_and_files_that_are_too_long_at_once() {
    let dir = folder();
    assert_eq!(report(dir.path()).status.code(), Some(0));
    let page = dir.path().join("report.md");
    let check =
        || Command::new(env!("CARGO_BIN_EXE_runner")).args(["report", "--check"]).arg(dir.path()).output().unwrap();
    let refused = |expected: &str| {
        let output = check();
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    };
    // The file is sparse, so it takes no space on the disk.
    fs::File::create(&page).unwrap().set_len((1 << 30) + 1).unwrap();
    refused("report.md: it has more than 1024 MB; raise the limit with RUNNER_LONGEST_FILE=MB");
    fs::remove_file(&page).unwrap();
    assert!(Command::new("mkfifo").arg(&page).status().unwrap().success());
    refused("a pipe");
}

#[test]
fn a_pipe_in_place_of_a_file_of_the_report_is_refused_at_once() {
    for name in ["journal.jsonl", "journal.lock", "records.jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join(name);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        if name == "journal.lock" {
            fs::write(dir.path().join("records.jsonl"), "").unwrap();
        }
        let output = Command::new(env!("CARGO_BIN_EXE_runner")).arg("report").arg(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
        assert!(said(&output).contains("a pipe"), "{name}: {}", said(&output));
    }
}
