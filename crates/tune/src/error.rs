/// Why a search cannot go on; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// A fault of the command line, the manifest or a file that it names.
    #[error("{0}")]
    Usage(String),
    /// A fault of the machine or the disk.
    #[error("{0}")]
    Environment(String),
}
