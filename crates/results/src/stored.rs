//! Finished runs as they are stored: report folders, trees of these, journals, and all of these in a git revision.
//!
//! [`read`] finds every report in a [`Source`] and reads its records. If a folder has records, they are preferred to
//! its journal, which is local. This module judges nothing and writes nothing.

mod devices;
mod folders;
mod history;
mod journal;
mod pairs;
mod shards;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::analyse::AnalyseError;
use crate::journal::{JournalError, MergeError, RECORDS_FILE};
use runner_process::programs::Programs;
use runner_revision::{File, Files, RevisionError};
use runner_types::Records;

pub use devices::folder_of_device;
pub use history::{History, Span, Unread, histories};
pub use journal::{damaged_line, read_journal, samples};
pub use pairs::pairs;
pub use shards::{join, join_if, journals};

/// Location to read reports from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder, a records file or a journal.
    Path(PathBuf),
    /// A path in a revision, relative to the root of the repository.
    Revision {
        /// Revision as git names it: a commit, a branch, a tag.
        revision: String,
        /// Path, separated by `/`.
        path: String,
    },
}

impl Source {
    /// Parses a source. `REV:PATH` is a revision unless a file or folder has that name.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((revision, path)) if !revision.is_empty() && !Path::new(text).exists() => {
                Self::Revision { revision: revision.to_owned(), path: path.trim_matches('/').to_owned() }
            }
            _ => Self::Path(PathBuf::from(text)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Revision { revision, path } => write!(f, "{revision}:{path}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Location that it was read from, for messages.
    pub place: String,
    /// Name of its folder, which a run derives from the device; empty if there is none.
    pub folder: String,
    pub records: Records,
    /// Warnings about lines that could not be read.
    pub warnings: Vec<String>,
}

/// Why reports cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{place} does not exist; {hint}")]
    Missing { place: String, hint: String },
    #[error("{place} holds no report: no folder in it has a {RECORDS_FILE} or a journal")]
    NoReport { place: String },
    #[error("{place} holds no journal; name a folder with the journals of shards")]
    NoJournal { place: String },
    #[error("{path} is not in revision `{revision}`, so it has no history; commit the report, or name one that is")]
    NotCommitted { path: String, revision: String },
    #[error("no commit in this range changed a report at {path}; name an earlier revision before the `..`")]
    NoHistory { path: String },
    #[error(transparent)]
    Revision(#[from] RevisionError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("{place}: {source}")]
    NoRun { place: String, source: AnalyseError },
    #[error("cannot read {place}: {source}")]
    Io { place: String, source: std::io::Error },
}

impl ReadError {
    /// Whether the user named a wrong source, rather than one that is damaged or unreachable.
    pub const fn is_misnamed(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::NoReport { .. }
                | Self::NoJournal { .. }
                | Self::Merge(MergeError::Differ { .. })
                | Self::NotCommitted { .. }
                | Self::NoHistory { .. }
                | Self::Revision(
                    RevisionError::Unknown { .. } | RevisionError::NoPath { .. } | RevisionError::NoCheckout { .. }
                )
        )
    }
}

/// All reports of a source, in path order. Revisions refer to the checkout that contains `dir`.
pub fn read(source: &Source, dir: &Path, programs: &Programs) -> Result<Vec<Stored>, ReadError> {
    let found = match source {
        Source::Path(path) => folders::read(path)?,
        Source::Revision { revision, path } => of_revision(&Files::open(dir, revision, programs)?, revision, path)?,
    };
    if found.is_empty() { Err(ReadError::NoReport { place: source.to_string() }) } else { Ok(found) }
}

/// The reports of a revision. Journals are not in git.
fn of_revision(files: &Files, revision: &str, path: &str) -> Result<Vec<Stored>, ReadError> {
    let is_records = |file: &File| file.path == path || Path::new(&file.path).ends_with(RECORDS_FILE);
    let listed: Vec<File> = files.list(path)?.into_iter().filter(is_records).collect();
    let mut found = Vec::with_capacity(listed.len());
    files.read(&listed, |file, content| {
        let place = format!("{revision}:{}", file.path);
        let records = crate::journal::parse_records(&String::from_utf8_lossy(&content), Path::new(&place))?;
        let folder = folder_of(Path::new(&file.path));
        let place = place.strip_suffix(&format!("/{RECORDS_FILE}")).unwrap_or(&place).to_owned();
        found.push(Stored { place, folder, records, warnings: Vec::new() });
        Ok::<_, ReadError>(())
    })?;
    Ok(found)
}

fn folder_of(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name);
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
