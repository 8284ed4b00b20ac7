//! Why a search cannot go on.

/// Why a search cannot go on; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// The command line, the manifest or a file that it names is at fault.
    #[error("{0}")]
    Usage(String),
    /// The machine or the disk is at fault.
    #[error("{0}")]
    Environment(String),
}
