//! A merged journal. Its lines are read from the journals that it was merged of, some at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rayon::prelude::*;

use super::merge::Missing;
use super::parse::{self, Line};
use super::read::bytes_of;
use super::scan::Text;
use super::{Journal, JournalError};
use crate::model::{Environment, Event, RunHeader};
use crate::regular;

/// Lines that are read at a time.
const CHUNK: usize = 16_384;

/// Chunks of events that are read before they are used.
const CHUNKS_AHEAD: usize = 2;

/// The journals of one experiment on one kind of machine, as one.
#[derive(Debug, Default)]
pub struct Merged {
    /// The start of the run and its plan.
    pub(super) head: Vec<Event>,
    /// Of all groups, in the order of the plan.
    pub(super) lines: Vec<MergedLine>,
    /// What follows the groups.
    pub(super) end: Vec<Event>,
    pub(super) sources: Vec<Source>,
    /// What the journals lack.
    pub missing: Missing,
}

/// A line of a group.
#[derive(Debug)]
pub(super) struct MergedLine {
    /// Which of the sources it is in.
    pub source: u32,
    pub text: Text,
}

/// A journal that lines are read from.
#[derive(Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// The content of a file that is about to be replaced.
    Bytes(PathBuf, Vec<u8>),
}

impl Merged {
    /// The run that the events are of; `None` without any.
    pub fn run(&self) -> Option<(&RunHeader, &Environment)> {
        match self.head.first() {
            Some(Event::RunStarted { header, environment, .. }) => Some((header, environment)),
            _ => None,
        }
    }

    /// Writes a new journal in `dir`, which may hold one of those that were merged. Lines keep the time at which they were
    /// first written.
    pub fn write(&mut self, dir: &Path) -> Result<Journal, JournalError> {
        self.keep(dir)?;
        let mut journal = Journal::create(dir)?;
        journal.record_all(&self.head)?;
        journal.copy(self.lines.chunks(CHUNK).map(|some| self.load(some)))?;
        journal.record_all(&self.end)?;
        Ok(journal)
    }

    /// Every event, as one run would have written them. The next ones are read while one is used.
    pub fn into_events(mut self) -> Events {
        let head = std::mem::take(&mut self.head).into_iter();
        let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
        thread::spawn(move || {
            let end = std::mem::take(&mut self.end);
            let events = self.lines.chunks(CHUNK).map(|some| self.events(some));
            // Stops at the first error, and if the events are no longer wanted.
            for chunk in events.chain([Ok(end)]) {
                let failed = chunk.is_err();
                if sender.send(chunk).is_err() || failed {
                    return;
                }
            }
        });
        Events { ready: head, chunks, failed: None }
    }

    /// Reads the sources in a folder into memory: a new journal there replaces them.
    fn keep(&mut self, dir: &Path) -> Result<(), JournalError> {
        let Ok(dir) = dir.canonicalize() else { return Ok(()) };
        for source in &mut self.sources {
            if let Source::File(path) = source
                && path.parent().is_some_and(|folder| {
                    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
                    folder.canonicalize().is_ok_and(|folder| folder == dir)
                })
            {
                let bytes = bytes_of(path)?;
                *source = Source::Bytes(std::mem::take(path), bytes);
            }
        }
        Ok(())
    }

    /// The texts of lines, in their order.
    fn load<'a>(&self, lines: &'a [MergedLine]) -> Result<Vec<Loaded<'a>>, JournalError> {
        let mut by_source: BTreeMap<u32, Vec<(usize, u64, u32)>> = BTreeMap::new();
        let mut loaded: Vec<Loaded<'a>> = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            match &line.text {
                Text::Stored { offset, length } => {
                    by_source.entry(line.source).or_default().push((at, *offset, *length));
                    loaded.push(Loaded::Line(Vec::new()));
                }
                Text::Upgraded(event) => loaded.push(Loaded::Event(event)),
            }
        }
        let by_source: Vec<_> = by_source.into_iter().collect();
        let read = |(source, places): &(u32, Vec<(usize, u64, u32)>)| self.sources[*source as usize].read(places);
        let texts: Vec<Vec<Vec<u8>>> = by_source.par_iter().map(read).collect::<Result<_, _>>()?;
        for ((_, places), texts) in by_source.iter().zip(texts) {
            for ((at, ..), text) in places.iter().zip(texts) {
                loaded[*at] = Loaded::Line(text);
            }
        }
        Ok(loaded)
    }

    fn events(&self, lines: &[MergedLine]) -> Result<Vec<Event>, JournalError> {
        let loaded = self.load(lines)?;
        let event = |(line, loaded): (&MergedLine, Loaded<'_>)| match loaded {
            Loaded::Event(event) => Ok(event.clone()),
            Loaded::Line(text) => match parse::parse(&text) {
                Ok(Line { content, .. }) => Ok(content),
                Err(_) => Err(self.sources[line.source as usize].changed()),
            },
        };
        lines.par_iter().zip(loaded).map(event).collect()
    }
}

/// A line as it is written again.
#[derive(Debug)]
pub(super) enum Loaded<'a> {
    Line(Vec<u8>),
    Event(&'a Event),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Bytes(path, _) => path,
        }
    }

    /// The texts at these places: their position in the merged journal, where they are, how long.
    fn read(&self, places: &[(usize, u64, u32)]) -> Result<Vec<Vec<u8>>, JournalError> {
        let opened;
        let read: &dyn Fn(&mut [u8], u64) -> io::Result<()> = match self {
            Self::Bytes(_, bytes) => &|text, offset| {
                let kept = bytes.get(offset as usize..).and_then(|rest| rest.get(..text.len()));
                text.copy_from_slice(kept.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            },
            Self::File(path) => {
                opened = regular::open(path).map_err(JournalError::io("read", path))?;
                &|text, offset| File::read_exact_at(&opened, text, offset)
            }
        };
        let text = |&(_, offset, length): &(usize, u64, u32)| {
            let mut text = vec![0; length as usize];
            read(&mut text, offset).map_err(JournalError::io("read", self.path()))?;
            Ok(text)
        };
        places.iter().map(text).collect()
    }

    fn changed(&self) -> JournalError {
        let changed = io::Error::other("it changed while it was merged, or is of another build of runner");
        JournalError::io("read", self.path())(changed)
    }
}

/// The events of merged journals. Ends early if a line cannot be read; [`Events::end`] says so.
#[derive(Debug)]
pub struct Events {
    ready: std::vec::IntoIter<Event>,
    chunks: Receiver<Result<Vec<Event>, JournalError>>,
    failed: Option<JournalError>,
}

impl Events {
    /// Fails if a line could not be read.
    pub fn end(self) -> Result<(), JournalError> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.next() {
                return Some(event);
            }
            match self.chunks.recv().ok()? {
                Ok(events) => self.ready = events.into_iter(),
                Err(error) => self.failed = Some(error),
            }
        }
    }
}
