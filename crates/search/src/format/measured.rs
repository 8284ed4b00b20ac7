//! Reads a measured space in any of its formats.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::error::FormatError;
use super::{t4, table};
use crate::replay::Measured;

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
