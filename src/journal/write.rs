//! Appends events as they happen.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;

use super::format::{JOURNAL_FILE, JOURNAL_VERSION, LineOut, PREVIOUS_JOURNAL_FILE};
use super::lock::FolderLock;
use super::read::Line;
use super::{Contents, JournalError, read, seal};
use crate::atomic;
use crate::model::Event;
use crate::regular;

/// Events that are written at a time.
const CHUNK: usize = 8192;

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

    fn line(&self, seq: u64, event: &Event) -> Result<String, JournalError> {
        let t = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let text = serde_json::to_string(&LineOut { v: JOURNAL_VERSION, t, seq, event });
        let text = text.map_err(|e| JournalError::io("write an event to", &self.path)(e.into()))?;
        Ok(seal::seal(text) + "\n")
    }
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
        match read::parse(line.trim_ascii_end()) {
            Ok(Line { event: Event::CaseSettled { .. }, .. }) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}
