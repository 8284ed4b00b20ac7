//! Appends events as they happen.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use rayon::prelude::*;

use super::format::{JOURNAL_FILE, JOURNAL_VERSION, LineOut, PREVIOUS_JOURNAL_FILE};
use super::lock::FolderLock;
use super::merged::Loaded;
use super::parse::{Line, parse};
use super::{Contents, JournalError, read, seal};
use crate::atomic;
use crate::model::Event;
use crate::regular;

/// Events that are written at a time.
const CHUNK: usize = 8192;

/// Chunks of copied lines that wait for the disk.
const CHUNKS_WAITING: usize = 8;

/// How the fields of a line begin that follow its time.
const SEQ_FIELD: &str = ",\"seq\":";
const EVENT_FIELD: &str = ",\"event\":";

/// Version, time and number of a line are shorter.
const LONGEST_ENVELOPE: usize = 128;

/// An open journal. Dropping it releases the folder.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    lock: FolderLock,
    /// Of the next line.
    next: u64,
}

impl Journal {
    /// Starts a new journal in `dir`, which is created.
    ///
    /// An existing journal becomes `journal.previous.jsonl`, unless it has no results: the records and the report of
    /// the run before stay until the new ones replace them, and its samples until the run after.
    pub fn create(dir: &Path) -> Result<Self, JournalError> {
        atomic::create_folder(dir)?;
        let lock = FolderLock::take(dir)?;
        let path = dir.join(JOURNAL_FILE);
        if is_worth_keeping(&path) {
            std::fs::rename(&path, dir.join(PREVIOUS_JOURNAL_FILE)).map_err(JournalError::io("rename", &path))?;
        }
        let created = atomic::open_itself(&path, OpenOptions::new().create(true).write(true).truncate(true));
        let file = created.map_err(JournalError::io("create", &path))?;
        Ok(Self { file, path, lock, next: 1 })
    }

    /// Continues the journal in `dir`, and returns its content. A last line that was cut off is removed first.
    ///
    /// Without a journal, an empty one is started.
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
        if let Some(torn) = &contents.torn {
            file.set_len(torn.offset).map_err(JournalError::io("cut the torn last line of", &path))?;
        }
        let next = contents.last + 1;
        Ok((Self { file, path, lock, next }, contents))
    }

    /// Closes the journal. The folder stays locked until the report in it is written.
    pub fn close(self) -> FolderLock {
        self.lock
    }

    /// Writes one event; heartbeats are not kept.
    ///
    /// Each line is written in one call, so that another process reads whole lines, and is synced to the disk when a
    /// group or the run ends.
    pub fn record(&mut self, event: &Event) -> Result<(), JournalError> {
        if matches!(event, Event::CaseActive { .. } | Event::LaunchesMarked { .. }) {
            return Ok(());
        }
        let line = self.line(self.next, event)?;
        self.file.write_all(line.as_bytes()).map_err(JournalError::io("write to", &self.path))?;
        self.next += 1;
        if matches!(event, Event::GroupFinished { .. } | Event::RunFinished { .. }) {
            self.file.sync_data().map_err(JournalError::io("sync", &self.path))?;
        }
        Ok(())
    }

    /// Writes events that are known already; synced once, at the end.
    pub fn record_all(&mut self, events: &[Event]) -> Result<(), JournalError> {
        for some in events.chunks(CHUNK) {
            let line = |(place, event)| self.line(self.next + place as u64, event);
            let lines: Vec<String> = some.par_iter().enumerate().map(line).collect::<Result<_, _>>()?;
            self.file.write_all(lines.concat().as_bytes()).map_err(JournalError::io("write to", &self.path))?;
            self.next += some.len() as u64;
        }
        self.file.sync_data().map_err(JournalError::io("sync", &self.path))
    }

    /// Writes lines of other journals, with their numbers in this one, while the next ones are made.
    pub(super) fn copy<'a>(
        &mut self,
        chunks: impl Iterator<Item = Result<Vec<Loaded<'a>>, JournalError>>,
    ) -> Result<(), JournalError> {
        let (file, path) = (&self.file, &self.path);
        self.next = thread::scope(|scope| {
            let (sender, texts) = mpsc::sync_channel::<Vec<String>>(CHUNKS_WAITING);
            let writer = scope.spawn(move || {
                texts.iter().try_for_each(|lines| {
                    let mut file = file;
                    file.write_all(lines.concat().as_bytes())?;
                    // Synced at the end, too: the disk works meanwhile.
                    file.sync_data()
                })
            });
            let mut next = self.next;
            for chunk in chunks {
                let line = |(seq, line)| match line {
                    Loaded::Event(event) => self.line(seq, event),
                    Loaded::Line(text) => renumbered(&text, seq).map_err(JournalError::io("write to", path)),
                };
                let lines = (next..).zip(chunk?).collect::<Vec<_>>().into_par_iter().map(line);
                let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
                next += lines.len() as u64;
                if sender.send(lines).is_err() {
                    break;
                }
            }
            drop(sender);
            let wrote = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")));
            wrote.map(|()| next).map_err(JournalError::io("write to", path))
        })?;
        Ok(())
    }

    fn line(&self, seq: u64, event: &Event) -> Result<String, JournalError> {
        let t = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let text = serde_json::to_string(&LineOut { v: JOURNAL_VERSION, t, seq, event });
        let text = text.map_err(|e| JournalError::io("write an event to", &self.path)(e.into()))?;
        Ok(seal::seal(text) + "\n")
    }
}

/// A line of another journal with another number. Fails if it is not as it was written.
fn renumbered(line: &[u8], seq: u64) -> io::Result<String> {
    let changed = |why| io::Error::new(ErrorKind::InvalidData, format!("a line has changed since it was read: {why}"));
    seal::check(line).map_err(changed)?;
    let text = std::str::from_utf8(seal::opened(line)).map_err(io::Error::other)?;
    // The time comes first and has no quotes; the event's fields come after its name.
    let place = text.get(..LONGEST_ENVELOPE.min(text.len())).and_then(|start| start.find(EVENT_FIELD));
    let (envelope, event) =
        text.split_at(place.ok_or_else(|| changed("it does not begin with its number".to_owned()))?);
    let before = envelope.find(SEQ_FIELD).map_or(envelope, |place| &envelope[..place]);
    Ok(seal::seal(format!("{before}{SEQ_FIELD}{seq}{event}}}")) + "\n")
}

/// Whether a journal has a settled case, or something that this version cannot read. Reads no further than it must.
fn is_worth_keeping(path: &Path) -> bool {
    let mut file = match regular::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        match file.read_until(b'\n', &mut line) {
            Ok(0) => return false,
            Ok(_) if !line.ends_with(b"\n") => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
        match parse(line.trim_ascii_end()) {
            Ok(Line { content: Event::CaseSettled { .. }, .. }) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}
