use std::io;
use std::path::PathBuf;

use crate::space::SpaceError;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause that the system reports.
        source: io::Error,
    },
    /// The text is not JSON of the format.
    #[error("this is not a file of this format: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is not CSV.
    #[error("this is not a table: {0}")]
    Csv(#[from] csv::Error),
    /// A value in the file makes no sense.
    #[error("{0}")]
    Meaning(String),
    /// The space cannot be built.
    #[error(transparent)]
    Space(#[from] SpaceError),
}
