//! Attempts at a shard. Each has its own folder and journal.
//!
//! An attempt never writes to another's journal. After the scheduler restarts a task, the first instance may still be
//! running on a node that the scheduler has lost, and file locks do not work on every shared file system. An attempt
//! resumes from a copy of the previous journal; merging keeps one result per group.
//!
//! Each run records the hash of the files that it used: its version. Results count only for the job's current version,
//! which is that of the last submission. A submission accepts finished attempts of other versions whose cases it does not
//! change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::job::subfolders;
use runner_files::atomic::WriteError;
use runner_files::sealed;
use runner_results::journal::{self, Contents, JOURNAL_FILE, JournalError, Run, whole_run};
use runner_types::RunContext;

/// File that marks an attempt whose results no longer apply. It holds the number of submissions at the time, followed
/// by [`RERUN`] if the shard must start over.
const OUTDATED: &str = "outdated";
const RERUN: &str = " rerun";

/// File of an attempt with a further version that its results apply to, besides their own.
const APPLIES: &str = "applies";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outdated {
    /// Number of submissions when the attempt was marked.
    pub submissions: u32,
    /// Whether the user asked for a rerun, though nothing has changed.
    pub is_rerun: bool,
}

/// Whether an attempt at the shard ran every case and its results count for `version`.
pub fn is_done(folder: &Path, version: Option<&str>) -> bool {
    finished_journal(folder, version).is_some()
}

/// Journal of the last attempt that ran every case and whose results count for `version` (for any version if `None`).
pub fn finished_journal(folder: &Path, version: Option<&str>) -> Option<PathBuf> {
    let counts = |journal: &PathBuf| own_run(journal).is_ok_and(|run| counts_for(journal, &run.context, version));
    finished(folder).find(counts)
}

/// Describes damage to the results of the last finished attempt at a shard, if any.
pub fn damage(folder: &Path) -> Option<String> {
    own_run(&finished(folder).next()?).err()
}

/// The last run of an attempt's journal, if all its cases have an outcome. Otherwise, or if it ran another shard,
/// describes the damage.
fn own_run(journal: &Path) -> Result<Run, String> {
    if !is_itself(journal) {
        return Err(format!("{}: it is not a regular file", journal.display()));
    }
    let run = whole_run(journal)?;
    if is_of_folder(journal, &run) {
        return Ok(run);
    }
    let shard = run.context.shard.map(|shard| format!("shard {shard} of ")).unwrap_or_default();
    Err(format!("{}: these are results of {shard}`{}`", journal.display(), run.header.experiment))
}

/// Whether a run belongs to the experiment and the shard of the folder that holds its journal.
fn is_of_folder(journal: &Path, run: &Run) -> bool {
    let folder = run.context.shard.map(|shard| Path::new(&run.header.experiment).join(shard.folder()));
    let attempt = journal.parent();
    folder.is_some_and(|own| attempt.and_then(Path::parent).is_some_and(|folder| folder.ends_with(own)))
}

/// Journals of attempts that ran every case and are not marked as outdated, latest first.
fn finished(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let applies = attempts(folder).into_iter().rev().filter(|attempt| !attempt.join(OUTDATED).exists());
    applies.map(|attempt| attempt.join(JOURNAL_FILE)).filter(|journal| journal::is_complete(journal))
}

/// Journals of attempts that ran every case, latest first, with whether they are marked as outdated. Leaves out those
/// whose shard the user runs again.
pub fn finished_attempts(folder: &Path) -> impl Iterator<Item = (PathBuf, bool)> {
    attempts(folder).into_iter().rev().filter_map(|attempt| {
        let mark = read_mark(&attempt);
        let journal = attempt.join(JOURNAL_FILE);
        let counts = mark.is_none_or(|mark| !mark.is_rerun) && journal::is_complete(&journal);
        (counts && own_run(&journal).is_ok()).then_some((journal, mark.is_some()))
    })
}

/// Whether a report of `version` includes a journal's results; `run` is the journal's last run. Results of a shard that
/// is due for a rerun stay included until there are new ones.
pub fn is_reported(journal: &Path, run: &RunContext, version: Option<&str>) -> bool {
    let mark = journal.parent().and_then(read_mark);
    mark.is_none_or(|mark| mark.is_rerun) && counts_for(journal, run, version)
}

/// Whether a journal's results come from `version` or apply to it; `run` is the journal's last run.
fn counts_for(journal: &Path, run: &RunContext, version: Option<&str>) -> bool {
    version.is_none_or(|version| run.files.as_deref() == Some(version) || is_accepted(journal, version))
}

/// Whether a submission of `version` has accepted the results.
fn is_accepted(journal: &Path, version: &str) -> bool {
    sealed::read(&journal.with_file_name(APPLIES)).is_some_and(|text| text == version.as_bytes())
}

/// Makes the results of a finished attempt count for `version`, too, even if an earlier version had outdated them.
pub fn apply_to(journal: &Path, version: &str) -> Result<(), WriteError> {
    // Without the mark, the results of another version do not count either.
    let _ = fs::remove_file(journal.with_file_name(OUTDATED));
    if is_accepted(journal, version) {
        return Ok(());
    }
    sealed::write(&journal.with_file_name(APPLIES), version.as_bytes())
}

/// Number of cases that the last attempt at a shard has run so far for `version`.
pub fn ran_cases(folder: &Path, version: Option<&str>) -> u64 {
    let Some(last) = attempts(folder).pop().filter(|attempt| !attempt.join(OUTDATED).exists()) else { return 0 };
    // The last line may be incomplete.
    let journal = last.join(JOURNAL_FILE);
    let history = journal::read(&journal).and_then(Contents::into_history).ok();
    let counted =
        history.filter(|history| history.run().is_some_and(|run| counts_for(&journal, &run.context, version)));
    counted.map_or(0, |history| history.ran() as u64)
}

pub fn mark_outdated(journal: &Path, mark: Outdated) -> Result<(), WriteError> {
    let text = mark.submissions.to_string() + if mark.is_rerun { RERUN } else { "" };
    sealed::write(&journal.with_file_name(OUTDATED), text.as_bytes())
}

/// Mark of the last attempt, if its results no longer apply.
pub fn outdated(folder: &Path) -> Option<Outdated> {
    read_mark(&attempts(folder).pop()?)
}

fn read_mark(attempt: &Path) -> Option<Outdated> {
    let text = String::from_utf8(sealed::read(&attempt.join(OUTDATED))?).ok()?;
    let number = text.strip_suffix(RERUN);
    let submissions = number.unwrap_or(&text).parse().ok()?;
    Some(Outdated { submissions, is_rerun: number.is_some() })
}

/// Creates the folder of a new attempt with a copy of the last resumable journal. If the user asked for a rerun, copies
/// nothing.
pub fn next_attempt(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let earlier = attempts(folder);
    let last = earlier.iter().rev().map(|attempt| attempt.join(JOURNAL_FILE)).find(|journal| can_be_resumed(journal));
    let mut number = earlier.len() + 1;
    let attempt = loop {
        let attempt = folder.join(format!("attempt-{number:04}"));
        match fs::create_dir(&attempt) {
            Ok(()) => break attempt,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    let continues = |journal: &PathBuf| !journal.parent().and_then(read_mark).is_some_and(|mark| mark.is_rerun);
    if let Some(last) = last.filter(continues) {
        fs::copy(last, attempt.join(JOURNAL_FILE))?;
    }
    Ok(attempt)
}

/// Whether the path is a regular file whose damage, if any, affects only single groups. A link, or a file that was
/// moved here, would not be this shard's journal.
fn can_be_resumed(path: &Path) -> bool {
    is_itself(path)
        && match journal::scan(path) {
            Ok(scan) => scan.run().is_none_or(|run| is_of_folder(path, run)),
            Err(error) => !matches!(error, JournalError::Corrupt { .. }),
        }
}

fn is_itself(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Attempt folders in order; symbolic links are skipped.
fn attempts(folder: &Path) -> Vec<PathBuf> {
    let mut found = subfolders(folder);
    found.sort();
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_continues_a_copy_of_the_journal_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("1-of-2");
        let first = next_attempt(&folder).unwrap();
        fs::write(first.join(JOURNAL_FILE), "one\n").unwrap();
        let second = next_attempt(&folder).unwrap();
        fs::write(first.join(JOURNAL_FILE), "one\ntwo\n").unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read_to_string(second.join(JOURNAL_FILE)).unwrap(), "one\n");
        assert!(!is_done(&folder, None), "neither is a journal of a complete run");
    }

    #[test]
    fn a_rerun_begins_without_the_results_and_continues_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let first = next_attempt(dir.path()).unwrap().join(JOURNAL_FILE);
        fs::write(&first, "one\n").unwrap();
        let mark = Outdated { submissions: 2, is_rerun: true };
        mark_outdated(&first, mark).unwrap();
        assert_eq!(outdated(dir.path()), Some(mark));
        let second = next_attempt(dir.path()).unwrap().join(JOURNAL_FILE);
        assert!(!second.exists() && first.exists());
        fs::write(&second, "two\n").unwrap();
        let third = next_attempt(dir.path()).unwrap().join(JOURNAL_FILE);
        assert_eq!(fs::read_to_string(third).unwrap(), "two\n");
        // After a code change, unchanged results are kept.
        let change = Outdated { submissions: 3, is_rerun: false };
        mark_outdated(&second, change).unwrap();
        assert_eq!(read_mark(second.parent().unwrap()), Some(change));
    }
}
