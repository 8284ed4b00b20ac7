//! The file of a search: a line for each evaluated configuration, so that an interrupted search goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use search::format::t4::Entry;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::TuneError;
use crate::journal::FolderLock;

/// The name of the file.
pub const SEARCH_FILE: &str = "search.jsonl";

/// What evaluations depend on: those under another header do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The name of the experiment.
    pub experiment: String,
    /// The hash of the manifest without what changes no evaluation.
    pub manifest: String,
    /// The hash of the files that cases read.
    #[serde(default)]
    pub files: String,
    /// The name of the device.
    pub device: String,
    /// How the command line narrows the plan.
    pub narrowed: String,
    /// The names of the objectives.
    pub objective: String,
    /// The axes that all configurations share.
    #[serde(default)]
    pub size: String,
}

impl Header {
    /// Returns in what another header differs, in words.
    fn differences(&self, other: &Self) -> Vec<String> {
        let named = |what: &str, own: &str, other: &str| {
            let word = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
            (own != other).then(|| format!("{what} was {}, and is {}", word(own), word(other)))
        };
        let changed = |what: &str, own: &str, other: &str| (own != other).then(|| format!("{what} changed"));
        [
            named("the experiment", &self.experiment, &other.experiment),
            changed("the manifest", &self.manifest, &other.manifest),
            changed("a source or a file of data", &self.files, &other.files),
            named("the device", &self.device, &other.device),
            named("the narrowing", &self.narrowed, &other.narrowed),
            named("the objective", &self.objective, &other.objective),
            named("the size", &self.size, &other.size),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The file, open for the next line.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    /// Keeps other runs and searches out of the folder.
    _lock: FolderLock,
}

impl Log {
    /// Begins a file, or continues one: without a last line that was cut.
    pub fn open(folder: &Path, header: &Header, resume: bool) -> Result<Self, TuneError> {
        atomic::create_folder(folder).map_err(|error| TuneError::Environment(error.to_string()))?;
        let lock = FolderLock::take(folder).map_err(|error| TuneError::Environment(error.to_string()))?;
        let path = folder.join(SEARCH_FILE);
        let refused =
            |error: &dyn std::fmt::Display| TuneError::Environment(format!("cannot write {}: {error}", path.display()));
        let whole = if resume && path.exists() { Some(find_end(&path, header)?) } else { None };
        if whole.is_none() {
            atomic::write(&path, json(header).as_bytes()).map_err(|error| refused(&error))?;
        }
        let file =
            atomic::open_itself(&path, OpenOptions::new().read(true).append(true)).map_err(|error| refused(&error))?;
        if let Some(length) = whole {
            file.set_len(length).map_err(|error| refused(&error))?;
        }
        Ok(Self { file, path, _lock: lock })
    }

    /// Adds a line.
    pub fn add(&mut self, entry: &Entry) -> Result<(), TuneError> {
        self.file.write_all(json(entry).as_bytes()).map_err(|error| {
            TuneError::Environment(format!(
                "cannot write {}: {error}; free some space and --resume",
                self.path.display()
            ))
        })
    }

    /// Reads all evaluations, in their order. They are not kept in memory, because a search may have a million of them.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<Entry, TuneError>> + use<>, TuneError> {
        let path = self.path.clone();
        let refused = move |number: usize, why: &dyn std::fmt::Display| {
            TuneError::Environment(format!("{}:{number}: {why}; remove the line", path.display()))
        };
        let file = File::open(&self.path).map_err(|error| refused(1, &error))?;
        let lines = (1..).zip(BufReader::new(file).lines()).skip(1);
        Ok(lines.map(move |(number, line)| {
            let line = line.map_err(|error| refused(number, &error))?;
            serde_json::from_str(&line).map_err(|error| refused(number, &error))
        }))
    }
}

fn json(line: &impl Serialize) -> String {
    // Names, numbers and texts have a form in JSON.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

/// Checks whether a file is of the search that goes on; returns how many bytes its complete lines have.
fn find_end(path: &Path, header: &Header) -> Result<u64, TuneError> {
    let refused = |why: String| TuneError::Usage(format!("--resume: {}: {why}", path.display()));
    let mut file = BufReader::new(File::open(path).map_err(|error| refused(error.to_string()))?);
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        line.clear();
        let read = file.read_until(b'\n', &mut line).map_err(|error| refused(error.to_string()))?;
        if length == 0 {
            let known: Header =
                serde_json::from_slice(&line).map_err(|error| refused(format!("no search: {error}")))?;
            let differences = known.differences(header);
            if !differences.is_empty() {
                return Err(refused(format!(
                    "its evaluations do not apply: {}; run without --resume, or name another folder with --out",
                    differences.join("; ")
                )));
            }
        }
        if line.last() != Some(&b'\n') {
            return Ok(length);
        }
        length += read as u64;
    }
}
