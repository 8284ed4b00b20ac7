//! The format of journal lines: a versioned envelope around each event.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use runner_files::atomic::WriteError;
use runner_types::Event;

/// Version of the format. Increase it when a reader of older lines would misread new ones.
pub const JOURNAL_VERSION: u32 = 2;

/// Name of the journal in a report folder.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Name of the previous run's journal, kept when a new run starts.
pub const PREVIOUS_JOURNAL_FILE: &str = "journal.previous.jsonl";

/// Name of the records in a report folder.
pub const RECORDS_FILE: &str = "records.jsonl";

/// Fields of a line, in the order they are written.
#[derive(Debug, Serialize)]
pub(super) struct LineOut<'a> {
    pub v: u32,
    /// Time when the line was written, in RFC 3339, UTC.
    pub t: String,
    /// 1-based line number in the file.
    pub seq: u64,
    #[serde(flatten)]
    pub event: &'a Event,
}

/// Why a journal or records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action: `read`, `write`, `sync`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another run has locked the folder and is writing to it.
    #[error("{} is in use by {holder}: wait for it, or name another folder with --out", dir.display())]
    Held {
        dir: PathBuf,
        /// Description of the process that holds the lock.
        holder: String,
    },
    #[error("{}:{line}: {message}: the file is damaged; {}", path.display(), remedy(path))]
    Corrupt {
        path: PathBuf,
        /// 1-based number of the damaged line.
        line: usize,
        /// Description of the damage.
        message: String,
    },
    #[error(
        "{}:{line}: version {found}, but this runner reads version {expected}: use the runner that wrote it",
        path.display()
    )]
    Version {
        path: PathBuf,
        /// 1-based number of the line with a different version.
        line: usize,
        /// Version of the line.
        found: u32,
        /// Version that this program reads.
        expected: u32,
    },
    /// The first line of a records file is not a header.
    #[error("{} does not begin with a header line: it is not a records file, or it was truncated", path.display())]
    NoHeader { path: PathBuf },
}

/// What to do about a damaged file.
fn remedy(path: &Path) -> &'static str {
    if path.file_name().is_some_and(|name| name == RECORDS_FILE) {
        "restore it from git, or write it again from the journal with `runner report --from-journal`"
    } else {
        "restore it from a copy, or run the experiment again"
    }
}

impl From<WriteError> for JournalError {
    fn from(error: WriteError) -> Self {
        Self::Io { action: error.action, path: error.path, source: error.source }
    }
}

impl JournalError {
    /// Wraps an I/O error with the failed action and the file.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
