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
        /// The underlying I/O error.
        source: io::Error,
    },
    /// The text is not valid JSON of this format.
    #[error("this is not a file of this format: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is not valid CSV.
    #[error("this is not a table: {0}")]
    Csv(#[from] csv::Error),
    /// A value in the file is invalid.
    #[error("{0}")]
    Meaning(String),
    /// The space cannot be built.
    #[error(transparent)]
    Space(#[from] SpaceError),
}
