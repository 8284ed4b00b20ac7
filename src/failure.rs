//! Exit codes, and why a command failed.

use std::fmt::Display;

/// Exit codes of the process; documented and stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done. Excluded and invalid cases are not failures.
    Success = 0,
    /// A case failed or is wrong; the report is written.
    CaseFailed = 1,
    /// The command line or a manifest is wrong; nothing ran.
    Usage = 2,
    /// A device, a compiler, memory or a permission is missing, or a file is damaged.
    Environment = 3,
    /// A comparison found something slower.
    Regression = 4,
    /// A claim of the manifest is broken, and the command was asked to judge claims.
    BrokenClaim = 5,
    /// The two sides of a comparison are not comparable.
    Incomparable = 6,
    /// Stopped by the user; the report is written and marked incomplete.
    Interrupted = 130,
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub exit: Exit,
    /// What is wrong and what to do, for standard error.
    pub message: String,
    /// Whether the message is already laid out, like manifest faults, rather than being a sentence.
    pub is_rendered: bool,
    /// Whether a live process uses the folder. Another machine would fail too.
    pub is_held: bool,
}

impl Failure {
    /// For an error in the command line or a manifest.
    pub fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), is_rendered: false, is_held: false }
    }

    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// For something that the machine lacks.
    pub fn environment(message: impl Display) -> Self {
        Self { exit: Exit::Environment, message: message.to_string(), is_rendered: false, is_held: false }
    }
}
