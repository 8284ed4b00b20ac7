//! Defines the journal's lines: each is a versioned envelope around one event.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use runner_files::atomic::WriteError;
use runner_types::Event;

/// Increased when a reader of older lines would misread new ones.
pub const JOURNAL_VERSION: u32 = 2;

/// The file's name in the folder of a report.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// The journal of the run before, kept when a new run starts.
pub const PREVIOUS_JOURNAL_FILE: &str = "journal.previous.jsonl";

/// The records' name in the folder of a report.
pub const RECORDS_FILE: &str = "records.jsonl";

/// The fields of a line in the order in which they are written.
#[derive(Debug, Serialize)]
pub(super) struct LineOut<'a> {
    pub v: u32,
    /// The time at which the line was written: RFC 3339, UTC.
    pub t: String,
    /// The number of the line, which counts from 1 through the whole file.
    pub seq: u64,
    #[serde(flatten)]
    pub event: &'a Event,
}

/// Why a journal or records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `sync`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason that the system gives.
        source: io::Error,
    },
    /// The folder is locked by another run, which writes to it.
    #[error("{} is in use by {holder}: wait for it, or name another folder with --out", dir.display())]
    Held {
        /// The folder that the other run uses.
        dir: PathBuf,
        /// The process that writes there, as words.
        holder: String,
    },
    /// A line cannot be read.
    #[error("{}:{line}: {message}: the file is damaged; {}", path.display(), remedy(path))]
    Corrupt {
        /// The path of the damaged journal.
        path: PathBuf,
        /// The number of the damaged line; the first line is 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// The file was written in a version that this program does not read.
    #[error(
        "{}:{line}: version {found} is not {expected}, which this runner reads: use the runner that wrote it",
        path.display()
    )]
    Version {
        /// The path of the journal that has another version.
        path: PathBuf,
        /// The number of the line with another version; the first line is 1.
        line: usize,
        /// The version of the line.
        found: u32,
        /// The version that this program reads.
        expected: u32,
    },
    /// The first line of a records file is not a header.
    #[error("{} does not begin with a header line: it is no records file, or it was cut", path.display())]
    NoHeader {
        /// The path of the file without a header.
        path: PathBuf,
    },
}

/// Returns what to do about a file that is damaged.
fn remedy(path: &Path) -> &'static str {
    if path.file_name().is_some_and(|name| name == RECORDS_FILE) {
        "restore it from git, or write it again from the journal with `runner report --from-journal`"
    } else {
        "start afresh, without --resume"
    }
}

impl From<WriteError> for JournalError {
    fn from(error: WriteError) -> Self {
        Self::Io { action: error.action, path: error.path, source: error.source }
    }
}

impl JournalError {
    /// Wraps an I/O error with what was being done to which file.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
