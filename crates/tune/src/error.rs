use runner_results::journal::JournalError;

/// Why a search cannot go on; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// A fault of the command line, the manifest or a file that it names.
    #[error("{0}")]
    Usage(String),
    /// A fault of the machine or the disk.
    #[error("{0}")]
    Environment(String),
    /// Another process uses the folder.
    #[error("{0}")]
    Held(String),
}

impl From<JournalError> for TuneError {
    fn from(error: JournalError) -> Self {
        let why = error.to_string();
        if matches!(error, JournalError::Held { .. }) { Self::Held(why) } else { Self::Environment(why) }
    }
}
