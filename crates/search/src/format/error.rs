//! Why a file cannot be used.

use std::io;
use std::path::PathBuf;

use crate::space::SpaceError;

/// Why a file is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The text is not JSON of this format.
    #[error("this is not a file of this format: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is not CSV.
    #[error("this is not a table: {0}")]
    Csv(#[from] csv::Error),
    /// Something in the file has no meaning.
    #[error("{0}")]
    Meaning(String),
    /// The space cannot be built.
    #[error(transparent)]
    Space(#[from] SpaceError),
}
