//! The log of a search: one line per evaluated configuration, so that an interrupted search can resume.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fs::{File, OpenOptions};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};

use search::format::t4::Entry;
use serde::Serialize;

use crate::error::TuneError;
use crate::header::{Header, Resume, SEARCH_FILE};
use crate::shards::{self, Others};
use runner_files::atomic;
use runner_files::regular;
use runner_files::sealed;
use runner_report::PREVIOUS_SEARCH_JOURNAL;
use runner_results::journal::FolderLock;
use runner_types::Shard;

/// The log file, open for appending.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    /// The other shards, if this is the log of a shard.
    others: Option<Others>,
    /// Keeps other runs and searches out of the folder.
    _lock: FolderLock,
}

impl Log {
    /// Creates or resumes the log of a search or shard. Removes damaged, truncated and duplicate lines, so that their
    /// configurations are evaluated again. The log of a whole search also receives the evaluations of its shards.
    pub fn open(search: &Path, header: &Header, resume: Resume, shard: Option<Shard>) -> Result<Self, TuneError> {
        let folder = shard.map_or_else(|| search.to_owned(), |shard| shards::folder_of(search, shard));
        atomic::create_folder(&folder).map_err(|error| TuneError::Environment(error.to_string()))?;
        let lock = FolderLock::take(&folder)?;
        let path = folder.join(SEARCH_FILE);
        let refused =
            |error: &dyn std::fmt::Display| TuneError::Environment(format!("cannot write {}: {error}", path.display()));
        let continues = path.exists()
            && match resume {
                Resume::No => false,
                Resume::Yes => true,
                Resume::UnlessChanged => !is_other_version(&path, header),
            };
        if continues {
            keep_sound_lines(&path, header)?;
        } else {
            if (shard.is_none() || resume == Resume::UnlessChanged) && path.exists() {
                // Hours of evaluations may be in it.
                std::fs::rename(&path, folder.join(PREVIOUS_SEARCH_JOURNAL)).map_err(|error| refused(&error))?;
            }
            atomic::write(&path, json(header).as_bytes()).map_err(|error| refused(&error))?;
        }
        let file =
            atomic::open_itself(&path, OpenOptions::new().read(true).append(true)).map_err(|error| refused(&error))?;
        let others = shard.map(|_| Others::new(search, path.clone(), header, resume));
        let mut log = Self { file, path, others, _lock: lock };
        if shard.is_none() {
            log.gather(search, header, resume)?;
        }
        Ok(log)
    }

    /// Copies the shards' evaluations into this log. If this is interrupted by a crash, the next search copies the
    /// rest.
    fn gather(&mut self, folder: &Path, header: &Header, resume: Resume) -> Result<(), TuneError> {
        let known = self.entries()?.map(|entry| Ok(shards::name(&entry?.configuration)));
        let known = known.collect::<Result<_, TuneError>>()?;
        for entry in shards::gather(folder, header, (resume, known))? {
            self.add(&entry)?;
        }
        Ok(())
    }

    /// Reads what other shards have evaluated since the last call.
    pub fn read_others(&mut self) -> Result<Vec<Entry>, TuneError> {
        self.others.as_mut().map_or_else(|| Ok(Vec::new()), Others::read_new)
    }

    pub fn add(&mut self, entry: &Entry) -> Result<(), TuneError> {
        self.file.write_all(json(entry).as_bytes()).map_err(|error| {
            TuneError::Environment(format!(
                "cannot write {}: {error}; free some space and run again with --resume",
                self.path.display()
            ))
        })
    }

    /// Reads all evaluations in order, one at a time, since a search may have a million of them.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<Entry, TuneError>> + use<>, TuneError> {
        let path = self.path.clone();
        let refused = move |number: usize, why: &dyn std::fmt::Display| {
            TuneError::Environment(format!("{}:{number}: {why}; remove the line", path.display()))
        };
        let file = regular::open(&self.path).map_err(|error| refused(1, &error))?;
        let lines = (1..).zip(BufReader::new(file).lines()).skip(1);
        Ok(lines.map(move |(number, line)| {
            let line = line.map_err(|error| refused(number, &error))?;
            serde_json::from_str(&line).map_err(|error| refused(number, &error))
        }))
    }
}

fn json(line: &impl Serialize) -> String {
    // Serialization of names, numbers and strings cannot fail.
    sealed::line(serde_json::to_string(line).unwrap_or_default()) + "\n"
}

/// Short hash of a line: a search may have a million of them.
fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Whether a log comes from another version of the search; false for an unreadable log.
fn is_other_version(path: &Path, header: &Header) -> bool {
    let mut line = Vec::new();
    let read = regular::open(path).and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
    read.is_ok() && header.accept(&line).is_err_and(|refused| refused.is_other_version)
}

/// Checks that a log belongs to the resumed search, and removes damaged and truncated lines.
fn keep_sound_lines(path: &Path, header: &Header) -> Result<(), TuneError> {
    let refused = |why: String| TuneError::Usage(format!("--resume: {}: {why}", path.display()));
    let failed = |error: io::Error| refused(error.to_string());
    let open = || regular::open(path).map(BufReader::new);
    let (mut file, mut line) = (open().map_err(failed)?, Vec::new());
    file.read_until(b'\n', &mut line).map_err(failed)?;
    let sums = header
        .accept(&line)
        .map_err(|why| refused(format!("{why}; run without --resume, or name another folder with --out")))?;
    let (mut left_out, mut known) = (HashSet::new(), HashSet::new());
    for number in 2.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            left_out.insert(number);
        } else if let Err(why) = sums.check(&line) {
            tracing::warn!("{}:{number} is damaged ({why}): its configuration is evaluated again", path.display());
            left_out.insert(number);
        } else if !known.insert(hash(&line)) {
            tracing::warn!("{}:{number} is a duplicate of an earlier line and is removed", path.display());
            left_out.insert(number);
        }
    }
    if left_out.is_empty() {
        return Ok(());
    }
    let copy = |out: &mut dyn Write| {
        let kept = (1_u64..).zip(open()?.split(b'\n')).filter(|(number, _)| !left_out.contains(number));
        for (_, line) in kept {
            out.write_all(&line?)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    };
    atomic::write_pieces(path, &copy).map_err(|error| refused(error.to_string()))
}
