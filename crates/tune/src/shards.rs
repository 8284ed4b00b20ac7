//! Shards of a search: processes that divide its space. Each appends to its own log and reads the others' as they grow.
//! So all of them learn from all evaluations, and no configuration is evaluated twice.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use search::format::t4::{Configuration, Entry};
use search::history::Part;

use crate::error::TuneError;
use crate::header::{Header, Resume, SEARCH_FILE, Sums};
use runner_files::regular;
use runner_results::journal::FolderLock;
use runner_types::Shard;

/// Folder of the shards, inside the search's folder.
const FOLDER: &str = "shards";

/// Minimum interval between reads of the other shards' logs.
const LOOK: Duration = Duration::from_millis(500);

pub fn folder_of(folder: &Path, shard: Shard) -> PathBuf {
    folder.join(FOLDER).join(shard.folder())
}

/// Logs of all shards, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = shards.map(|shard| shard.path().join(SEARCH_FILE)).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

pub fn part_of(shard: Shard) -> Part {
    Part::new(shard.index, shard.of)
}

/// Number of a search's evaluations assigned to a shard.
#[must_use]
pub fn share_of(shard: Shard, budget: u64, points: u64) -> u64 {
    let part = part_of(shard);
    share(budget, points, (0..points).filter(|&point| part.has(point)).count() as u64)
}

/// This shard's share of the budget, proportional to its points, rounded up.
fn share(budget: u64, points: u64, own: u64) -> u64 {
    (u128::from(budget) * u128::from(own)).div_ceil(u128::from(points.max(1))) as u64
}

/// Evaluations of the other shards, read from their logs as they grow.
#[derive(Debug)]
pub struct Others {
    folder: PathBuf,
    own: PathBuf,
    header: Header,
    resume: Resume,
    /// Read position in each log.
    known: BTreeMap<PathBuf, Place>,
    looked: Option<Instant>,
}

impl Others {
    pub fn new(folder: &Path, own: PathBuf, header: &Header, resume: Resume) -> Self {
        let header = header.clone();
        Self { folder: folder.to_owned(), own, header, resume, known: BTreeMap::new(), looked: None }
    }

    /// Reads what the other shards have evaluated since the last call. Reads their logs at most once every [`LOOK`].
    pub fn read_new(&mut self) -> Result<Vec<Entry>, TuneError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(Vec::new());
        }
        self.looked = Some(Instant::now());
        let mut new = Vec::new();
        let whole = self.folder.join(SEARCH_FILE);
        for path in files(&self.folder).into_iter().chain(whole.is_file().then_some(whole)) {
            if path != self.own {
                let known = self.known.entry(path.clone()).or_default();
                new.extend(read_from(&path, known, &self.header, self.resume)?);
            }
        }
        Ok(new)
    }
}

/// Read position in a growing log.
#[derive(Debug, Default)]
struct Place {
    bytes: u64,
    /// Whether its lines have checksums; `None` until the first line is read.
    sums: Option<Sums>,
}

/// Reads the complete lines after `known` and advances it. Skips damaged lines. With [`Resume::UnlessChanged`], a log
/// from another version counts as empty, because its shard has yet to restart.
fn read_from(path: &Path, known: &mut Place, header: &Header, resume: Resume) -> Result<Vec<Entry>, TuneError> {
    let refused = |why: &dyn std::fmt::Display| TuneError::Environment(format!("{}: {why}", path.display()));
    let mut file = regular::open(path).map_err(|error| refused(&error))?;
    if file.metadata().map_err(|error| refused(&error))?.len() < known.bytes {
        // The log is shorter: the shard has restarted from the beginning.
        *known = Place::default();
    }
    file.seek(SeekFrom::Start(known.bytes)).map_err(|error| refused(&error))?;
    let (mut file, mut line, mut entries) = (BufReader::new(file), Vec::new(), Vec::new());
    loop {
        line.clear();
        file.read_until(b'\n', &mut line).map_err(|error| refused(&error))?;
        if line.last() != Some(&b'\n') {
            return Ok(entries);
        }
        match known.sums {
            None => match header.accept(&line) {
                Ok(sums) => known.sums = Some(sums),
                Err(refused) if refused.is_other_version && resume == Resume::UnlessChanged => return Ok(entries),
                Err(refused) => {
                    return Err(TuneError::Usage(format!(
                        "{}: {refused}; remove the folder, or name another one with --out",
                        path.display()
                    )));
                }
            },
            Some(sums) => match sums.check(&line) {
                Ok(()) => entries.push(serde_json::from_slice(&line).map_err(|error| refused(&error))?),
                Err(why) => {
                    tracing::warn!(
                        "{} has a damaged line ({why}): its configuration is evaluated again",
                        path.display()
                    );
                }
            },
        }
        known.bytes += line.len() as u64;
    }
}

/// Evaluations of the shards that the whole search lacks, in chronological order. Fails if a shard is still running, or
/// if shards exist and the search is not resumed.
pub fn gather(
    folder: &Path,
    header: &Header,
    (resume, mut known): (Resume, HashSet<String>),
) -> Result<Vec<Entry>, TuneError> {
    let (mut new, files) = (Vec::new(), files(folder));
    if let Some(file) = files.first().filter(|_| resume == Resume::No) {
        return Err(TuneError::Usage(format!(
            "{} belongs to a divided search: continue it with --resume, remove {}, or name another folder with --out",
            file.display(),
            folder.join(FOLDER).display(),
        )));
    }
    for file in &files {
        let shard = file.parent().unwrap_or(folder);
        let _lock = FolderLock::take(shard)?;
        new.extend(read_from(file, &mut Place::default(), header, resume)?);
    }
    new.retain(|entry: &Entry| known.insert(name(&entry.configuration)));
    let seconds = |entry: &Entry| entry.elapsed.unwrap_or_default();
    new.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    Ok(new)
}

/// A string that identifies a configuration.
pub fn name(configuration: &Configuration) -> String {
    // Serialization of names and values cannot fail.
    serde_json::to_string(configuration).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_make_at_least_the_evaluations_of_the_whole_search_and_no_more_than_their_points() {
        // 218 of 4,362 points; the shards have 1,100, 1,090 and 2,172 of these.
        let parts = [1100, 1090, 2172].map(|own| share(218, 4362, own));
        assert_eq!(parts, [55, 55, 109]);
        assert_eq!([1100, 1090, 2172].map(|own| share(4362, 4362, own)), [1100, 1090, 2172]);
        assert_eq!(share(0, 0, 0), 0);
    }
}
