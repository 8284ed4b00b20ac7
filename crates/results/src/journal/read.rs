//! Reads a journal.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::iter;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::damage::{Damaged, Torn};
use super::format::JOURNAL_VERSION;
use super::parse::{Fault, Line, parse};
use super::role::Content;
use super::{History, JournalError};
use runner_files::regular;
use runner_types::Event;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contents {
    path: PathBuf,
    lines: Lines<Event>,
}

impl Contents {
    /// Events of the intact lines, in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.lines.each.iter().flatten()
    }

    /// Lines that do not parse, have a wrong checksum, or are misplaced.
    pub fn damaged(&self) -> impl Iterator<Item = &Damaged> {
        self.lines.each.iter().filter_map(|line| line.as_ref().err())
    }

    /// The last line, if it was cut off.
    pub const fn torn(&self) -> Option<Torn> {
        self.lines.torn
    }

    /// Number of the last line.
    pub const fn last(&self) -> u64 {
        self.lines.last
    }

    /// Folds the lines into a history. Fails if a damaged line may have been the start of a run or its plan.
    pub fn into_history(self) -> Result<History, JournalError> {
        self.lines.into_history(&self.path).map(|(history, _)| history)
    }
}

/// Maximum size of a journal, in bytes, unless the user allows more.
pub(super) const LONGEST_JOURNAL: u64 = 8 << 30;

/// Maximum length of a line, in bytes. The longest lines are plans of runs.
pub(super) const LONGEST_LINE: u64 = 1 << 30;

/// Number of damaged lines at which a file no longer counts as a journal.
const MOST_DAMAGED: usize = 1000;

/// Maximum lines per batch.
const CHUNK: usize = 4096;

/// Bytes at which a batch ends early, so that the raw text is never in memory as a whole.
const CHUNK_BYTES: u64 = 64 << 20;

/// Bytes of a journal read at once.
const BUFFER: usize = 1 << 20;

/// Reads the whole journal at `path`.
///
/// A last line without its newline, or one that does not parse, was being written when the run died. It is omitted and
/// reported in [`Contents::torn`]. In the middle of the journal such a line is damage, as are missing, duplicated or
/// misplaced lines; these are reported in [`Contents::damaged`]. A line of another version is an error.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    let file = regular::open_data(path, LONGEST_JOURNAL).map_err(JournalError::io("read", path))?;
    let mut reader = Reader { file: BufReader::with_capacity(BUFFER, file), offset: 0, error: None };
    let of_some = |some: Vec<(LinePlace, Vec<u8>)>| -> Vec<_> {
        some.into_par_iter().map(|(place, line)| (place, parse(line.trim_ascii_end()))).collect()
    };
    let lines = in_order(path, iter::from_fn(|| reader.some()).flat_map(of_some))?;
    match reader.error {
        None => Ok(Contents { path: path.to_owned(), lines }),
        Some(error) => Err(JournalError::io("read", path)(error)),
    }
}

pub(super) struct LinePlace {
    /// Byte offset of the line in the file.
    pub offset: u64,
    /// Whether it ends with a newline.
    pub is_ended: bool,
    pub is_last: bool,
}

/// Reads the lines of a file, including newlines.
struct Reader {
    file: BufReader<File>,
    offset: u64,
    /// Why it stopped before the end of the file.
    error: Option<io::Error>,
}

impl Reader {
    /// The next batch of lines; `None` after the last.
    fn some(&mut self) -> Option<Vec<(LinePlace, Vec<u8>)>> {
        let (mut some, begin) = (Vec::new(), self.offset);
        while some.len() < CHUNK && self.offset - begin < CHUNK_BYTES {
            match self.line() {
                Ok(Some(line)) => some.push(line),
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        (!some.is_empty()).then_some(some)
    }

    fn line(&mut self) -> io::Result<Option<(LinePlace, Vec<u8>)>> {
        let mut line = Vec::new();
        if self.error.is_some() || self.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            let message = format!("it has a line of more than {} MB, so it is not a journal", LONGEST_LINE >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let is_last = self.file.fill_buf()?.is_empty();
        let place = LinePlace { offset: self.offset, is_ended: line.ends_with(b"\n"), is_last };
        self.offset += line.len() as u64;
        Ok(Some((place, line)))
    }
}

pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, JournalError> {
    regular::read_data(path, LONGEST_JOURNAL).map_err(JournalError::io("read", path))
}

/// Lines with their offsets, including newlines.
pub(super) fn lines_of(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut begin = 0;
    let place = |end: usize| {
        let line = (begin, &bytes[begin..end]);
        begin = end;
        line
    };
    let ends = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1);
    let rest = Some(bytes.len()).filter(|_| bytes.last().is_some_and(|last| *last != b'\n'));
    ends.chain(rest).map(place).collect()
}

/// The lines of a journal, without one that was cut off.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lines<T> {
    /// Intact and damaged lines, in order. A damaged entry stands for a line or for missing lines.
    each: Vec<Result<T, Damaged>>,
    pub torn: Option<Torn>,
    last: u64,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Self { each: Vec::new(), torn: None, last: 0 }
    }
}

impl<T: Content> Lines<T> {
    /// The history and the damaged lines; see [`Contents::into_history`].
    pub fn into_history(self, path: &Path) -> Result<(History<T>, Vec<Damaged>), JournalError> {
        History::of_lines(self.each.into_iter()).map_err(|Damaged { line, message }| JournalError::Corrupt {
            path: path.to_owned(),
            line,
            message,
        })
    }
}

/// Finds the damaged lines; see [`read`].
pub(super) fn in_order<T>(
    path: &Path,
    parsed: impl Iterator<Item = (LinePlace, Result<Line<T>, Fault>)>,
) -> Result<Lines<T>, JournalError> {
    let mut each: Vec<Result<T, Damaged>> = Vec::with_capacity(parsed.size_hint().0);
    let (mut torn, mut damaged) = (None, 0);
    let mut order = Order::default();
    for (i, (LinePlace { offset, is_ended, is_last }, parsed)) in parsed.enumerate() {
        match parsed {
            Ok(Line { seq, content }) if is_ended => order.place(i + 1, seq, content, &mut each),
            Err(Fault::Version(found)) => {
                let path = path.to_owned();
                return Err(JournalError::Version { path, line: i + 1, found, expected: JOURNAL_VERSION });
            }
            Err(Fault::Damage(message)) if !is_last => {
                order.unread += 1;
                damaged += 1;
                if damaged > MOST_DAMAGED {
                    let message = format!("it and {MOST_DAMAGED} lines before it cannot be read");
                    return Err(JournalError::Corrupt { path: path.to_owned(), line: i + 1, message });
                }
                each.push(Err(Damaged { line: i + 1, message }));
            }
            Ok(_) | Err(Fault::Damage(_)) => torn = Some(Torn { line: i + 1, offset }),
        }
    }
    Ok(Lines { each, torn, last: order.last + order.unread })
}

/// Tracks line numbers to find missing, duplicated and misplaced lines.
#[derive(Debug, Default)]
struct Order {
    /// Number of the last readable line. `unread` counts the unreadable lines after it.
    last: u64,
    unread: u64,
}

impl Order {
    /// Adds a line's content, preceded by or replaced with the damage that its number reveals.
    fn place<T>(&mut self, line: usize, seq: u64, content: T, entries: &mut Vec<Result<T, Damaged>>) {
        let expected = self.last + self.unread + 1;
        if seq <= self.last {
            let message = format!("line {seq} is duplicated or out of order");
            return entries.push(Err(Damaged { line, message }));
        }
        (self.last, self.unread) = (seq, 0);
        let lacks = |message| Err(Damaged { line, message });
        match seq.saturating_sub(expected) {
            0 => {}
            1 => entries.push(lacks(format!("line {expected} is missing before it"))),
            _ => entries.push(lacks(format!("lines {expected} to {} are missing before it", seq - 1))),
        }
        entries.push(Ok(content));
    }
}

/// Number of bytes at a journal's end to search for its last line.
const TAIL: u64 = 4096;

/// Whether the last line of the journal at `path` marks a complete run. Reads only that line.
pub fn is_complete(path: &Path) -> bool {
    let tail = || -> io::Result<Vec<u8>> {
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
    matches!(parse(last), Ok(Line { content: Event::RunFinished { complete: true, .. }, .. }))
}
