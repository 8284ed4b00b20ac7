use runner_results::journal::JournalError;

/// Why a search cannot continue; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// An error in the command line, the manifest or a file that it names.
    #[error("{0}")]
    Usage(String),
    /// A problem with the machine or the disk.
    #[error("{0}")]
    Environment(String),
    /// The folder is locked by another process.
    #[error("{0}")]
    Held(String),
}

impl From<JournalError> for TuneError {
    fn from(error: JournalError) -> Self {
        let why = error.to_string();
        if matches!(error, JournalError::Held { .. }) { Self::Held(why) } else { Self::Environment(why) }
    }
}
