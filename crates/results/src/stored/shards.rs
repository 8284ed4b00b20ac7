//! Reads the journals of several shards as one.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::ReadError;
use super::journal::warnings_of;
use crate::journal::{self, JOURNAL_FILE, JournalError, Merged, Scan};
use runner_types::RunContext;

/// Result of merging journals.
#[derive(Debug)]
pub struct Joined {
    /// Merged journal of each experiment and kind of machine.
    pub parts: Vec<Merged>,
    /// Warnings about lines that could not be read.
    pub warnings: Vec<String>,
}

/// All journals at or below a folder, in path order; for a file, the file itself. Does not follow symbolic links.
pub fn journals(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let place = || path.display().to_string();
    let Ok(metadata) = fs::metadata(path) else {
        let hint = "name a folder with the journals of shards".to_owned();
        return Err(ReadError::Missing { place: place(), hint });
    };
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    find(path, &mut found).map_err(|source| ReadError::Io { place: place(), source })?;
    if found.is_empty() { Err(ReadError::NoJournal { place: place() }) } else { Ok(found) }
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut below = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            below.push(entry.path());
        } else if kind.is_file() && entry.file_name() == JOURNAL_FILE {
            found.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|dir| find(dir, found))
}

/// Merges journals, reading only what merging needs.
pub fn join(files: &[PathBuf]) -> Result<Joined, ReadError> {
    join_if(files, &|_, _| true)
}

/// Like [`join`], but leaves out journals for whose last run `counts` is false.
pub fn join_if(files: &[PathBuf], counts: &dyn Fn(&Path, &RunContext) -> bool) -> Result<Joined, ReadError> {
    let scanned: Vec<Result<Scan, JournalError>> = files.par_iter().map(|file| journal::scan(file)).collect();
    let (mut scans, mut warnings) = (Vec::with_capacity(files.len()), Vec::new());
    let is_alone = files.len() == 1;
    for scan in scanned {
        let scan = match scan {
            // A damaged journal loses only its own results.
            Err(JournalError::Corrupt { path, line, message }) if !is_alone => {
                warnings.push(format!("{}:{line} is damaged ({message}); the journal was skipped", path.display()));
                continue;
            }
            other => other?,
        };
        if scan.run().is_some_and(|run| !counts(&scan.path, &run.context)) {
            continue;
        }
        warnings.extend(warnings_of(&scan.path, scan.torn, &scan.damaged));
        // A run that died before writing a line has nothing to merge.
        if scan.is_empty() {
            warnings.push(format!("{} is empty and was skipped", scan.path.display()));
        } else {
            scans.push(scan);
        }
    }
    Ok(Joined { parts: journal::merge(scans)?, warnings })
}
