//! Reads a journal back.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::from_slice;

use super::format::{Envelope, JOURNAL_VERSION};
use super::{JournalError, damage, seal, v1};
use crate::model::Event;
use crate::regular;

/// What a journal holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contents {
    /// In the order in which they happened, without those of groups with a damaged line.
    pub events: Vec<Event>,
    /// The last line, if it was cut off.
    pub torn: Option<Torn>,
    /// Lines before it that do not parse, have another checksum, or are not where they were written.
    pub damaged: Vec<Damaged>,
    /// The number of the last line, by which a line that is missing, doubled or misplaced is found.
    pub last: u64,
}

/// A line that was cut off; it is not among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Counted from 1.
    pub line: usize,
    /// Where it begins, bytes into the file.
    pub offset: u64,
}

/// A line that has changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Counted from 1.
    pub line: usize,
    /// How its content differs from what was written.
    pub message: String,
}

/// Reads the whole journal at `path`, of this version or the first.
///
/// A last line without its end, or that does not parse, was being written when the run died: it is left out and reported in
/// [`Contents::torn`]. The same in the middle is damage, as are lines that are missing, doubled or in another place, and
/// is reported in [`Contents::damaged`]: the events of the groups that
/// were running are left out, so that a resumed run repeats these groups alone. Damage before the first group of a run,
/// whose plan it may have changed, is an error, as is a line of another version anywhere.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    let bytes = regular::read_up_to(path, u64::MAX).map_err(JournalError::io("read", path))?;
    let mut entries: Vec<Result<Event, Damaged>> = Vec::new();
    let mut torn = None;
    let mut offset = 0;
    let mut order = Order::default();
    for (i, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let is_last = offset + line.len() == bytes.len();
        match parse(line.trim_ascii_end()) {
            Ok(Line { seq, event }) if line.ends_with(b"\n") => entries.extend(order.place(i + 1, seq, event)),
            Err(Fault::Version(found)) => {
                let path = path.to_owned();
                return Err(JournalError::Version { path, line: i + 1, found, expected: JOURNAL_VERSION });
            }
            Err(Fault::Damage(message)) if !is_last => {
                order.unread += 1;
                entries.push(Err(Damaged { line: i + 1, message }));
            }
            Ok(_) | Err(Fault::Damage(_)) => torn = Some(Torn { line: i + 1, offset: offset as u64 }),
        }
        offset += line.len();
    }
    let (events, damaged) = damage::leave_out(entries).map_err(|Damaged { line, message }| JournalError::Corrupt {
        path: path.to_owned(),
        line,
        message,
    })?;
    Ok(Contents { events, torn, damaged, last: order.last + order.unread })
}

/// One line.
pub(super) struct Line {
    pub seq: Option<u64>,
    pub event: Event,
}

pub(super) enum Fault {
    Version(u32),
    Damage(String),
}

/// Follows the numbers of lines.
#[derive(Debug, Default)]
struct Order {
    /// Of the line before; those that cannot be read come after it.
    last: u64,
    unread: u64,
}

impl Order {
    /// The line's event; before it, or in its place, the damage that its number shows. Lines of older journals have no
    /// number.
    fn place(&mut self, line: usize, seq: Option<u64>, event: Event) -> Vec<Result<Event, Damaged>> {
        let expected = self.last + self.unread + 1;
        let seq = seq.unwrap_or(expected);
        if seq <= self.last {
            let message = format!("line {seq} is there again, or in another place");
            return vec![Err(Damaged { line, message })];
        }
        (self.last, self.unread) = (seq, 0);
        if seq <= expected {
            return vec![Ok(event)];
        }
        let message = match seq - expected {
            1 => format!("line {expected} is missing before it"),
            _ => format!("lines {expected} to {} are missing before it", seq - 1),
        };
        vec![Err(Damaged { line, message }), Ok(event)]
    }
}

/// Parses a line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Line, Fault> {
    let syntax = |e: serde_json::Error| Fault::Damage(e.to_string());
    let Envelope { v, seq } = from_slice(line).map_err(syntax)?;
    match v {
        1 => {
            let value = from_slice(line).map_err(syntax)?;
            serde_json::from_value(v1::upgrade(value)).map(|event| Line { seq, event }).map_err(syntax)
        }
        JOURNAL_VERSION => {
            seal::check(line).map_err(Fault::Damage)?;
            // An event passes over the fields of the envelope: in a struct of both, serde would buffer the whole line.
            from_slice(line).map(|event| Line { seq, event }).map_err(syntax)
        }
        // A flipped bit in the version is damage, too: only a line that has its checksum is of a later one.
        other if seal::check(line).is_ok() => Err(Fault::Version(other)),
        other => Err(Fault::Damage(format!("version {other}, and no checksum that fits"))),
    }
}

/// How much of a journal's end is read to find its last line, bytes.
const TAIL: u64 = 4096;

/// Whether the journal at `path` ends with the end of a run that ran every case. Reads the last line only.
pub fn is_complete(path: &Path) -> bool {
    let tail = || -> std::io::Result<Vec<u8>> {
        let mut file = regular::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = tail().unwrap_or_default();
    let Some(lines) = bytes.strip_suffix(b"\n") else { return false };
    let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    matches!(parse(last), Ok(Line { event: Event::RunFinished { complete: true, .. }, .. }))
}
