//! File formats for spaces and for measurements of them.
//!
//! T1 and T4 are the formats that autotuners exchange: T1 describes a space and its kernel, T4 lists results.

mod kernel_tuner;
pub mod t1;
pub mod t4;
pub mod table;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::replay::Measured;
use crate::space::SpaceError;
use t4::Results;

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

/// Maximum size of a decompressed file, since a few megabytes of compressed zeros expand to gigabytes.
const MOST_UNPACKED: u64 = 1 << 30;

/// A reader that fails after a maximum number of bytes.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it unpacks to more than 1 GiB");
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_long)?;
        Ok(count)
    }
}

/// Opens a file, decompressing it if its name ends in `.gz`.
pub fn open(path: &Path) -> Result<Box<dyn Read>, FormatError> {
    let file = File::open(path).map_err(|source| FormatError::Read { path: path.to_owned(), source })?;
    let file = BufReader::new(file);
    Ok(if path.extension().is_some_and(|end| end == "gz") {
        Box::new(Limited { inner: flate2::bufread::MultiGzDecoder::new(file), left: MOST_UNPACKED })
    } else {
        Box::new(file)
    })
}

/// Reads a measured space: a table if the name ends in `.csv` or `.csv.gz`, otherwise T4 or a Kernel Tuner cache.
/// `objective` is a column or measurement. It may be omitted for a table with a single objective, and for the other
/// formats, which name theirs.
pub fn read_measured(path: &Path, objective: Option<&str>) -> Result<Measured, FormatError> {
    let source = open(path)?;
    let plain = if path.extension().is_some_and(|end| end == "gz") { path.with_extension("") } else { path.to_owned() };
    if plain.extension().is_some_and(|end| end == "csv") {
        table::read(source, objective)
    } else {
        read_results(source)?.measured(objective)
    }
}

/// Reads a results file: T4 or a Kernel Tuner cache.
pub fn read_results(mut source: impl Read) -> Result<Results, FormatError> {
    let mut text = String::new();
    source.read_to_string(&mut text).map_err(serde_json::Error::io)?;
    let text = without_odd_numbers(&text);
    if kernel_tuner::is_cache(&text) {
        return kernel_tuner::parse(&text);
    }
    Results::parse(&text)
        .map_err(|error| FormatError::Meaning(format!("this is neither T4 nor a cache of Kernel Tuner: {error}")))
}

/// Replaces `NaN` and infinities, which Python writes but JSON does not allow, with `null`.
fn without_odd_numbers(text: &str) -> Cow<'_, str> {
    if !["NaN", "Infinity"].iter().any(|word| text.contains(word)) {
        return text.into();
    }
    let mut clean = String::with_capacity(text.len());
    let mut in_text = false;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| !in_text && rest.starts_with(word));
        let taken = match first {
            _ if word.is_some() => word.map_or(0, str::len),
            // An escaped character never ends a string.
            '\\' if in_text => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => first.len_utf8(),
        };
        in_text ^= first == '"';
        clean.push_str(word.map_or(&rest[..taken], |_| "null"));
        rest = &rest[taken..];
    }
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let read = |left| Limited { inner: &b"0123456789"[..], left }.read_to_end(&mut Vec::new());
        assert_eq!(read(10).ok(), Some(10));
        assert_eq!(read(9).map_err(|error| error.to_string()), Err("it unpacks to more than 1 GiB".to_owned()));
    }
}
