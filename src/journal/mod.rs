//! What is kept of a run, in two files.
//!
//! `journal.jsonl` is local: one event a line, every sample, appended as things happen, so that a run which dies loses
//! at most the line it was writing. `records.jsonl` is for git: one line a case and regime, no samples, written whole
//! or not at all. Nothing here judges or computes: it stores events and records and gives them back, or says in which
//! line it cannot.

mod damage;
mod format;
mod line;
mod lock;
mod read;
mod records;
mod resume;
mod seal;
mod v1;
mod write;

pub use format::{JOURNAL_FILE, JOURNAL_VERSION, JournalError, PREVIOUS_JOURNAL_FILE};
pub use lock::LOCK_FILE;
pub use read::{Contents, Damaged, Torn, read};
pub use records::{
    ENVIRONMENT_FILE, RECORDS_FILE, RECORDS_VERSION, environment_text, experiment_of, read_records, records_text,
    without_run_facts,
};
pub use resume::{Held, resume_state};
pub use write::Journal;
