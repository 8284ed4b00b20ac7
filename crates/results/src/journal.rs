//! The stored results of a run, in two files.
//!
//! `journal.jsonl` is local: one event per line, with every sample, appended as events happen, so that a run that dies
//! loses at most the line that it was writing. `records.jsonl` is for git: one line per case and regime, without
//! samples, written atomically. This module stores events and records and reads them back, or reports lines that it
//! cannot read.

mod damage;
mod device;
mod format;
mod history;
mod line;
mod lock;
mod merge;
mod merged;
mod older;
mod parse;
mod read;
mod records;
mod resume;
mod role;
mod scan;
mod spent;
mod write;

pub use damage::{Damaged, Torn};
pub use device::device_of;
pub use format::RECORDS_FILE;
pub use format::{JOURNAL_FILE, JournalError, PREVIOUS_JOURNAL_FILE};
pub use history::{CaseHistory, History, LastRun, Run};
pub use lock::FolderLock;
pub use lock::LOCK_FILE;
pub use merge::{MergeError, merge};
pub use merged::Merged;
pub use merged::Missing;
pub use read::{Contents, is_complete, read};
pub use records::{ENVIRONMENT_FILE, environment_text, header_of};
pub use records::{parse_records, read_records, records_text, without_run_facts};
pub use resume::Held;
pub use scan::{Scan, scan, whole_run};
pub use spent::Spent;
pub use write::Journal;
