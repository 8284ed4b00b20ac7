//! Appends events to a journal as they happen.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use memchr::memmem;
use rayon::prelude::*;

use super::format::{JOURNAL_FILE, JOURNAL_VERSION, LineOut, PREVIOUS_JOURNAL_FILE};
use super::lock::FolderLock;
use super::parse::{Line, parse};
use super::read::{LONGEST_JOURNAL, LONGEST_LINE};
use super::{Contents, JournalError, read};
use runner_files::atomic;
use runner_files::regular;
use runner_files::sealed;
use runner_types::{Event, calendar_time};

/// Number of events to write at a time.
const CHUNK: usize = 8192;

/// Maximum number of batches of copied lines that wait for the disk.
const BATCHES_WAITING: usize = 2;

/// Text before the fields that follow the timestamp.
const SEQ_FIELD: &str = ",\"seq\":";
const EVENT_FIELD: &str = ",\"event\":";

/// Upper bound for the length of a line's version, time and number.
const LONGEST_ENVELOPE: usize = 128;

/// A journal open for writing. Dropping it unlocks the folder.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    lock: FolderLock,
    /// Number of the next line.
    next: u64,
}

impl Journal {
    /// Starts a new journal in `dir`, creating the folder.
    ///
    /// An existing journal becomes `journal.previous.jsonl`, unless it has no results. The previous run's records and
    /// report remain until the new ones replace them. Its samples remain until the run after this one.
    pub fn create(dir: &Path) -> Result<Self, JournalError> {
        atomic::create_folder(dir)?;
        let lock = FolderLock::take(dir)?;
        let path = dir.join(JOURNAL_FILE);
        // Reject a symbolic link, whatever it points to, rather than rename it.
        match atomic::open_itself(&path, OpenOptions::new().read(true)) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(JournalError::io("open", &path)(source)),
            _ => {}
        }
        if is_worth_keeping(&path) {
            std::fs::rename(&path, dir.join(PREVIOUS_JOURNAL_FILE)).map_err(JournalError::io("rename", &path))?;
        }
        let created = atomic::open_itself(&path, OpenOptions::new().create(true).write(true).truncate(true));
        let file = created.map_err(JournalError::io("create", &path))?;
        Ok(Self { file, path, lock, next: 1 })
    }

    /// Continues the journal in `dir`, and returns its content. First removes a last line that was cut off.
    ///
    /// Starts an empty journal if there is none.
    pub fn append_to(dir: &Path) -> Result<(Self, Contents), JournalError> {
        atomic::create_folder(dir)?;
        let lock = FolderLock::take(dir)?;
        let path = dir.join(JOURNAL_FILE);
        let contents = match read(&path) {
            Err(JournalError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Contents::default(),
            other => other?,
        };
        let opened = atomic::open_itself(&path, OpenOptions::new().create(true).append(true));
        let file = opened.map_err(JournalError::io("open", &path))?;
        if let Some(torn) = contents.torn() {
            file.set_len(torn.offset).map_err(JournalError::io("cut the torn last line of", &path))?;
        }
        let next = contents.last() + 1;
        Ok((Self { file, path, lock, next }, contents))
    }

    /// Closes the journal. The folder stays locked until its report is written.
    pub fn close(self) -> FolderLock {
        self.lock
    }

    /// Writes an event, unless it is a heartbeat.
    ///
    /// Each line is written with one call, so that other processes only see whole lines. The file is synced when a
    /// group or the run ends.
    pub fn record(&mut self, event: &Event) -> Result<(), JournalError> {
        if matches!(event, Event::CaseActive { .. } | Event::LaunchesMarked { .. }) {
            return Ok(());
        }
        let line = self.line(self.next, event)?;
        self.file.write_all(&line).map_err(JournalError::io("write to", &self.path))?;
        self.next += 1;
        if matches!(event, Event::GroupFinished { .. } | Event::RunFinished { .. }) {
            self.file.sync_data().map_err(JournalError::io("sync", &self.path))?;
        }
        Ok(())
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Writes existing events; syncs once, at the end.
    pub fn record_all(&mut self, events: &[Event]) -> Result<(), JournalError> {
        for some in events.chunks(CHUNK) {
            let line = |(place, event)| self.line(self.next + place as u64, event);
            let lines: Vec<Vec<u8>> = some.par_iter().enumerate().map(line).collect::<Result<_, _>>()?;
            self.file.write_all(&lines.concat()).map_err(JournalError::io("write to", &self.path))?;
            self.next += some.len() as u64;
        }
        self.file.sync_data().map_err(JournalError::io("sync", &self.path))
    }

    /// Writes batches of text with `lines` numbered lines in total, while the next batches are prepared.
    pub(super) fn copy(
        &mut self,
        batches: impl Iterator<Item = Result<Vec<Vec<u8>>, JournalError>>,
        lines: u64,
    ) -> Result<(), JournalError> {
        let (file, path) = (&self.file, &self.path);
        thread::scope(|scope| {
            let (sender, texts) = mpsc::sync_channel::<Vec<Vec<u8>>>(BATCHES_WAITING);
            let writer = scope.spawn(move || {
                texts.iter().try_for_each(|texts| {
                    let mut file = file;
                    texts.iter().try_for_each(|text| file.write_all(text))?;
                    // Sync after each batch, while the next one is prepared.
                    file.sync_data()
                })
            });
            for batch in batches {
                if sender.send(batch?).is_err() {
                    break;
                }
            }
            drop(sender);
            let wrote = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")));
            wrote.map_err(JournalError::io("write to", path))
        })?;
        self.next += lines;
        Ok(())
    }

    fn line(&self, seq: u64, event: &Event) -> Result<Vec<u8>, JournalError> {
        let mut text = Vec::new();
        append(&mut text, event, seq).map_err(|e| JournalError::io("write an event to", &self.path)(e.into()))?;
        Ok(text)
    }
}

/// Appends the line of an event that happens now.
pub(super) fn append(text: &mut Vec<u8>, event: &Event, seq: u64) -> serde_json::Result<()> {
    let t = humantime::format_rfc3339_micros(calendar_time(SystemTime::now())).to_string();
    let start = text.len();
    serde_json::to_writer(&mut *text, &LineOut { v: JOURNAL_VERSION, t, seq, event })?;
    sealed::close_line(text, start);
    text.push(b'\n');
    Ok(())
}

/// Appends a line of another journal, whose checksum is correct, with a new number. `None` if it does not start with a
/// time and a number, as journal lines do.
pub(super) fn renumber(text: &mut Vec<u8>, line: &[u8], seq: u64) -> Option<()> {
    // The time comes first and contains no quotes; the event's fields come after its name.
    let start = &line[..LONGEST_ENVELOPE.min(line.len())];
    let event = memmem::find(start, EVENT_FIELD.as_bytes())?;
    let before = memmem::find(&start[..event], SEQ_FIELD.as_bytes()).unwrap_or(event);
    let start = text.len();
    text.extend_from_slice(&line[..before]);
    text.extend_from_slice(SEQ_FIELD.as_bytes());
    text.extend_from_slice(seq.to_string().as_bytes());
    text.extend_from_slice(sealed::open_line(line).get(event..)?);
    text.push(b'}');
    sealed::close_line(text, start);
    text.push(b'\n');
    Some(())
}

/// Whether a journal has a finished case, or something that this version cannot read. Reads no further than necessary.
fn is_worth_keeping(path: &Path) -> bool {
    let mut file = match regular::open_data(path, LONGEST_JOURNAL) {
        Ok(file) => BufReader::new(file),
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        match file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return false,
            // A last line that was cut off, unless it reaches the maximum length.
            Ok(length) if !line.ends_with(b"\n") => return length as u64 == LONGEST_LINE,
            Ok(_) => {}
            Err(_) => return true,
        }
        match parse(line.trim_ascii_end()) {
            Ok(Line { content: Event::CaseSettled { .. }, .. }) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}
