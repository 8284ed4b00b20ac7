//! Reads hardware counters with Nsight Compute.
//!
//! A worker process runs inside `ncu`, which counts the launches between the worker's marks. It replays each launch as
//! often as the metrics need, with memory restored in between. [`ProfilerSession`] starts such a worker and parses the
//! output of `ncu`; [`Tally`] assigns its rows to the launches of cases. An unavailable counter is reported as missing.
//! [`memcheck`] runs a worker inside compute-sanitizer in the same way.

mod by_line;
mod findings;
pub mod memcheck;
mod metrics;
pub mod pass;
mod session;
mod source_page;
mod table;
mod tally;

use std::path::PathBuf;

pub use session::{Detail, ProfilerSession};
pub use source_page::read as read_source_page;
pub use table::{Row, Table, read as read_table};
pub use tally::{Counted, Tally};

/// Why there are no hardware counters, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfilerError {
    #[error(
        "Nsight Compute's `ncu` was not found on the search path, in CUDA_HOME or in /usr/local/cuda/bin: install \
         Nsight Compute (it comes with the CUDA toolkit) or put it on the path"
    )]
    NotFound,
    #[error("`{} --version` failed: {why}", program.display())]
    Broken { program: PathBuf, why: String },
    /// `ERR_NVGPUCTRPERM` is Nsight Compute's name for this error.
    #[error(
        "this user may not read hardware counters (ERR_NVGPUCTRPERM): run as root, or have an administrator \
         load the driver with NVreg_RestrictProfilingToAdminUsers=0; a container also needs the capability SYS_ADMIN"
    )]
    NotPermitted,
    #[error("cannot start a worker under `ncu`: {0}")]
    Start(String),
    #[error("cannot read the output of `ncu`: {0}")]
    Unreadable(String),
    #[error("`ncu` counted nothing: {0}")]
    Nothing(String),
    #[error("cannot create a folder for the output of `ncu`: {0}")]
    Folder(String),
}

impl ProfilerError {
    /// Error that explains the profiler's messages.
    fn of_complaints(complaints: &[String]) -> Self {
        if complaints.iter().any(|message| message.contains("ERR_NVGPUCTRPERM")) {
            return Self::NotPermitted;
        }
        Self::Nothing(if complaints.is_empty() { "it gives no reason".to_owned() } else { complaints.join("; ") })
    }
}
