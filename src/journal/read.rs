//! Reads a journal back.

use std::path::Path;

use super::JournalError;
use super::format::{JOURNAL_VERSION, LineIn, LineVersion};
use crate::model::Event;

/// What a journal holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contents {
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// The last line, where its writer died before its end.
    pub torn: Option<Torn>,
}

/// A line that was cut off; it is not among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// From 1.
    pub line: usize,
    /// Where it begins, bytes into the file.
    pub offset: u64,
}

/// Reads the whole journal at `path`.
///
/// A last line without its end, or that does not parse, was being written when the run died: it is left out and told in
/// [`Contents::torn`]. The same in the middle is damage, and an error with the line's number, as is a line of another
/// version anywhere.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    let bytes = std::fs::read(path).map_err(JournalError::io("read", path))?;
    let mut contents = Contents::default();
    let mut offset = 0;
    for (i, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let is_last = offset + line.len() == bytes.len();
        match parse(line) {
            Ok(event) if line.ends_with(b"\n") => contents.events.push(event),
            Err(Fault::Version(found)) => {
                let path = path.to_owned();
                return Err(JournalError::Version { path, line: i + 1, found, expected: JOURNAL_VERSION });
            }
            Err(Fault::Syntax(message)) if !is_last => {
                return Err(JournalError::Corrupt { path: path.to_owned(), line: i + 1, message });
            }
            Ok(_) | Err(Fault::Syntax(_)) => contents.torn = Some(Torn { line: i + 1, offset: offset as u64 }),
        }
        offset += line.len();
    }
    Ok(contents)
}

enum Fault {
    Version(u32),
    Syntax(String),
}

fn parse(line: &[u8]) -> Result<Event, Fault> {
    let syntax = |e: serde_json::Error| Fault::Syntax(e.to_string());
    let version: LineVersion = serde_json::from_slice(line).map_err(syntax)?;
    if version.v != JOURNAL_VERSION {
        return Err(Fault::Version(version.v));
    }
    serde_json::from_slice::<LineIn>(line).map(|l| l.event).map_err(syntax)
}
