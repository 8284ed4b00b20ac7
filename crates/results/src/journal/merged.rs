//! A merged journal. Its lines are read from the original journals, some groups at a time, so that they are never all
//! in memory at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::read::bytes_of;
use super::scan::Text;
use super::{Journal, JournalError, parse, write};
use runner_files::regular;
use runner_types::{Environment, Event, GroupKey, RunHeader, Shard};

/// Parts of the plan that are missing from the merged journals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missing {
    /// Shards that no journal covers.
    pub shards: Vec<Shard>,
    /// Number of cases that no journal mentions.
    pub cases: u64,
    /// Groups that have cases without an outcome.
    pub groups: Vec<GroupKey>,
}

impl Missing {
    pub const fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.cases == 0 && self.groups.is_empty()
    }
}

/// Minimum number of lines that a thread reads at a time.
const CHUNK: usize = 4096;

/// Number of chunks per thread that are read before they are written.
const CHUNKS_OF_THREAD: usize = 4;

/// Maximum gap in bytes between lines that are read together.
const GAP: u64 = 4096;

/// Maximum number of bytes by which a new number and checksum may lengthen a line.
const LONGER: usize = 21;

/// Maximum number of bytes to read at once, unless a line is longer.
const WINDOW: u64 = 1 << 20;

/// The journals of one experiment on one kind of machine, merged into one.
#[derive(Debug, Default)]
pub struct Merged {
    /// The start of the run and its plan.
    pub(super) head: Vec<Event>,
    /// Lines of all groups, in plan order.
    pub(super) lines: Vec<MergedLine>,
    /// End index of each group in `lines`.
    pub(super) ends: Vec<usize>,
    /// Events after the groups.
    pub(super) end: Vec<Event>,
    pub(super) sources: Vec<Source>,
    pub missing: Missing,
}

#[derive(Debug)]
pub(super) struct MergedLine {
    /// Index of the source that holds the line.
    pub source: u32,
    pub text: Text,
}

#[derive(Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// Content of a file that is about to be replaced.
    Bytes(PathBuf, Vec<u8>),
}

struct Chunk<T> {
    /// Rewritten lines of the groups.
    text: Vec<u8>,
    /// Result of the callback for each group's events.
    made: Vec<T>,
}

impl Merged {
    /// The run that the events belong to; `None` if there are no events.
    pub fn run(&self) -> Option<(&RunHeader, &Environment)> {
        match self.head.first() {
            Some(Event::RunStarted { header, environment, .. }) => Some((header, environment)),
            _ => None,
        }
    }

    /// When the newest merged run was started: RFC 3339, UTC.
    pub fn started(&self) -> Option<&str> {
        match self.head.first() {
            Some(Event::RunStarted { context, .. }) => Some(&context.started),
            _ => None,
        }
    }

    /// Events before and after the groups.
    pub fn into_run_events(self) -> impl Iterator<Item = Event> {
        self.head.into_iter().chain(self.end)
    }

    /// Applies `of_group` to the events of each group and returns the results in plan order. Reads groups in parallel.
    pub fn of_groups<T: Send>(&self, of_group: impl Fn(Vec<Event>) -> T + Sync) -> Result<Vec<T>, JournalError> {
        let read = |groups| self.read(groups, None, &of_group);
        let read: Vec<Chunk<T>> = self.chunks().into_par_iter().map(read).collect::<Result<_, _>>()?;
        Ok(read.into_iter().flat_map(|chunk| chunk.made).collect())
    }

    /// Writes a new journal in `dir`, which may hold one of the merged journals, and returns the result of `of_group`
    /// for each group. Lines keep the time at which they were first written.
    pub fn write<T: Send>(
        &mut self,
        dir: &Path,
        of_group: impl Fn(Vec<Event>) -> T + Sync,
    ) -> Result<(Journal, Vec<T>), JournalError> {
        self.keep(dir)?;
        let mut journal = Journal::create(dir)?;
        journal.record_all(&self.head)?;
        let before = journal.next();
        let read = |groups: &Range<usize>| {
            let number = before + self.lines_of(groups.clone()).start as u64;
            self.read(groups.clone(), Some(number), &of_group)
        };
        let mut made = Vec::with_capacity(self.ends.len());
        let chunks = self.chunks();
        let mut texts = |some: &[Range<usize>]| {
            let read: Vec<Chunk<T>> = some.par_iter().map(read).collect::<Result<_, _>>()?;
            let text = |chunk: Chunk<T>| {
                made.extend(chunk.made);
                chunk.text
            };
            Ok(read.into_iter().map(text).collect())
        };
        let batches = chunks.chunks(CHUNKS_OF_THREAD * rayon::current_num_threads());
        journal.copy(batches.map(&mut texts), self.lines.len() as u64)?;
        journal.record_all(&self.end)?;
        Ok((journal, made))
    }

    /// Reads the sources in a folder into memory, since a new journal will replace them.
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

    /// Ranges of groups with at least [`CHUNK`] lines each, except the last.
    fn chunks(&self) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        let mut first = 0;
        for end in 1..=self.ends.len() {
            if end == self.ends.len() || self.lines_of(first..end).len() >= CHUNK {
                chunks.push(first..end);
                first = end;
            }
        }
        chunks
    }

    fn lines_of(&self, groups: Range<usize>) -> Range<usize> {
        let end_before = |group: usize| group.checked_sub(1).map_or(0, |before| self.ends[before]);
        end_before(groups.start)..end_before(groups.end)
    }

    /// Reads the events of some groups. If given the number of their first line in a new journal, also rewrites the
    /// lines.
    fn read<T>(
        &self,
        groups: Range<usize>,
        number: Option<u64>,
        of_group: impl Fn(Vec<Event>) -> T,
    ) -> Result<Chunk<T>, JournalError> {
        let all = self.lines_of(groups.clone());
        let length = |line: &MergedLine| line.text.length as usize + LONGER;
        let length = number.map_or(0, |_| self.lines[all.clone()].iter().map(length).sum());
        let first = all.start;
        let mut chunk = Chunk { text: Vec::with_capacity(length), made: Vec::with_capacity(groups.len()) };
        let mut texts = Texts::default();
        for group in groups {
            let lines = self.lines_of(group..group + 1);
            let mut events = Vec::with_capacity(lines.len());
            for at in lines {
                let number = number.map(|number| number + (at - first) as u64);
                let source = &self.sources[self.lines[at].source as usize];
                let line = texts.read_line(self, at)?;
                events.push(parse::parse(line).map_err(|_| source.changed())?.content);
                if let Some(number) = number {
                    write::renumber(&mut chunk.text, line, number).ok_or_else(|| source.changed())?;
                }
            }
            chunk.made.push(of_group(events));
        }
        Ok(chunk)
    }

    /// End offset of the read window that contains line `at`.
    fn window_end(&self, at: usize) -> u64 {
        let source = self.lines[at].source;
        let near = self.lines[at..].iter().take_while(|line| line.source == source);
        let places =
            near.map(|MergedLine { text: Text { offset, length }, .. }| (*offset, offset + u64::from(*length)));
        let mut whole: Option<(u64, u64)> = None;
        for (start, end) in places {
            match &mut whole {
                None => whole = Some((start, end)),
                Some((first, last)) if (*last..*last + GAP).contains(&start) && end - *first <= WINDOW => *last = end,
                Some(_) => break,
            }
        }
        whole.map_or(0, |(_, end)| end)
    }
}

/// Reads lines, several at once if they are close together.
#[derive(Default)]
struct Texts {
    files: HashMap<u32, File>,
    /// Source and offset of `bytes`.
    window: (u32, u64),
    bytes: Vec<u8>,
}

impl Texts {
    fn read_line<'t>(&'t mut self, merged: &'t Merged, at: usize) -> Result<&'t [u8], JournalError> {
        let MergedLine { source: number, text: Text { offset, length } } = merged.lines[at];
        let source = &merged.sources[number as usize];
        let text = |bytes: &'t [u8], from: u64| bytes.get((offset - from) as usize..)?.get(..length as usize);
        match source {
            Source::Bytes(_, bytes) => text(bytes, 0).ok_or_else(|| source.changed()),
            Source::File(path) => {
                let end = self.window.1 + self.bytes.len() as u64;
                let is_there = self.window.0 == number && offset >= self.window.1 && offset + u64::from(length) <= end;
                if !is_there {
                    let read = JournalError::io("read", path);
                    let file = match self.files.entry(number) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(regular::open(path).map_err(JournalError::io("read", path))?),
                    };
                    self.window = (number, offset);
                    self.bytes.resize((merged.window_end(at) - offset) as usize, 0);
                    file.read_exact_at(&mut self.bytes, offset).map_err(read)?;
                }
                text(&self.bytes, self.window.1).ok_or_else(|| source.changed())
            }
        }
    }
}

impl Source {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Bytes(path, _) => path,
        }
    }

    fn changed(&self) -> JournalError {
        let changed = io::Error::other("it changed while it was merged, or was written by another build of runner");
        JournalError::io("read", self.path())(changed)
    }
}
