//! Exit codes, and why a command failed.

use std::fmt::Display;

/// The exit codes of the process; documented and stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done; excluded and invalid cases are not failures.
    Success = 0,
    /// A case failed or has a wrong result; the report is written.
    CaseFailed = 1,
    /// The command line or a manifest is wrong; nothing ran.
    Usage = 2,
    /// The environment lacks something: a device, a compiler, memory or a permission; or a file is damaged.
    Environment = 3,
    /// A comparison found that something became slower.
    Regression = 4,
    /// A claim of the manifest is broken, and the command was asked to judge claims.
    BrokenClaim = 5,
    /// What was to be compared is not of the same thing.
    Incomparable = 6,
    /// Stopped by the user; the report is written and marked incomplete.
    Interrupted = 130,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// What is wrong and what to do, for standard error.
    pub message: String,
    /// Whether the message is laid out already, as faults of a manifest are, and not a sentence.
    pub is_rendered: bool,
}

impl Failure {
    /// Reports that the command line or a manifest is wrong.
    pub fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), is_rendered: false }
    }

    /// Reports that the machine lacks something.
    pub fn environment(message: impl Display) -> Self {
        Self { exit: Exit::Environment, message: message.to_string(), is_rendered: false }
    }
}
