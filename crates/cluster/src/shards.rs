//! Manages the attempts at a shard, each of which has a folder with a journal.
//!
//! An attempt never writes to the journal of another. A task that the scheduler has started again may still run on a
//! node that it lost sight of, and file locks do not work on every shared file system. An attempt begins with a copy of
//! the journal before it and resumes that; merging keeps one result of each group.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::atomic::{self, WriteError};
use crate::journal::{self, JOURNAL_FILE};
use crate::regular;

/// Marks an attempt whose results no longer apply; its content is the number of submissions before that was found out.
const OUTDATED: &str = "outdated";

/// Whether an attempt in the folder of a shard ended with every case run, and its results still apply.
pub fn is_done(folder: &Path) -> bool {
    finished_journal(folder).is_some()
}

/// Returns the journal of the last attempt that ended with every case run, and whose results still apply.
pub fn finished_journal(folder: &Path) -> Option<PathBuf> {
    let applies = attempts(folder).into_iter().rev().filter(|attempt| !attempt.join(OUTDATED).exists());
    applies.map(|attempt| attempt.join(JOURNAL_FILE)).find(|journal| journal::is_complete(journal))
}

/// Notes that the results in a journal no longer apply; they were found by one of the first `submissions`.
pub fn mark_outdated(journal: &Path, submissions: u32) -> Result<(), WriteError> {
    atomic::write(&journal.with_file_name(OUTDATED), submissions.to_string().as_bytes())
}

/// Returns how many submissions there were when the last results of a shard were found not to apply any more.
pub fn outdated_by(folder: &Path) -> Option<u32> {
    let last = attempts(folder).pop()?;
    regular::read_text(&last.join(OUTDATED)).ok()?.parse().ok()
}

/// Creates the folder of a new attempt, with a copy of the last journal.
pub fn next_attempt(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let earlier = attempts(folder);
    let last = earlier.iter().rev().map(|attempt| attempt.join(JOURNAL_FILE)).find(|journal| is_itself_file(journal));
    let mut number = earlier.len() + 1;
    let attempt = loop {
        let attempt = folder.join(format!("attempt-{number:04}"));
        match fs::create_dir(&attempt) {
            Ok(()) => break attempt,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    if let Some(last) = last {
        fs::copy(last, attempt.join(JOURNAL_FILE))?;
    }
    Ok(attempt)
}

/// Whether there is a file, not a link to one: what a link leads to is no journal of this shard.
fn is_itself_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Returns the folders of the attempts, in order; no links to folders.
fn attempts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
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
        assert!(!is_done(&folder), "neither is a journal of a complete run");
    }
}
