//! Files of spaces and of what was measured in them.
//!
//! T1 and T4 are the formats that autotuners exchange: T1 states a space and its kernel, T4 lists results.

pub mod t1;
pub mod t4;
pub mod table;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::replay::Measured;
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

/// Opens a file, which is decompressed if its name ends in `.gz`.
pub fn open(path: &Path) -> Result<Box<dyn Read>, FormatError> {
    let file = File::open(path).map_err(|source| FormatError::Read { path: path.to_owned(), source })?;
    let file = BufReader::new(file);
    Ok(if path.extension().is_some_and(|end| end == "gz") {
        Box::new(flate2::bufread::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    })
}

/// Reads a measured space: a table if the name ends in `.csv` or `.csv.gz`, and T4 otherwise. `objective` is the column
/// or measurement; without it a table must have only one, and T4 states its own.
pub fn read_measured(path: &Path, objective: Option<&str>) -> Result<Measured, FormatError> {
    let source = open(path)?;
    let plain = if path.extension().is_some_and(|end| end == "gz") { path.with_extension("") } else { path.to_owned() };
    if plain.extension().is_some_and(|end| end == "csv") {
        table::read(source, objective)
    } else {
        t4::Results::read(source)?.measured(objective)
    }
}
