//! The file of a search: a line for each evaluated configuration, so that an interrupted search goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use search::format::t4::Entry;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::commands::Failure;
use crate::journal::FolderLock;

/// The name of the file.
pub const SEARCH_FILE: &str = "search.jsonl";

/// What evaluations depend on: those under another header do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub experiment: String,
    pub manifest: String,
    pub device: String,
    pub narrowed: String,
    pub objective: String,
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
    /// Begins a file, or continues one and returns what it has.
    pub fn open(folder: &Path, header: &Header, resume: bool) -> Result<(Self, Vec<Entry>), Failure> {
        atomic::create_folder(folder).map_err(|error| Failure::environment(error.to_string()))?;
        let lock = FolderLock::take(folder).map_err(|error| Failure::environment(error.to_string()))?;
        let path = folder.join(SEARCH_FILE);
        let known = if resume && path.exists() { read(&path, header)? } else { Vec::new() };
        let mut text = json(header);
        for entry in &known {
            text += &json(entry);
        }
        // What is read is written again, without a last line that was cut.
        let refused = |error: String| Failure::environment(format!("cannot write {}: {error}", path.display()));
        atomic::write(&path, text.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| refused(error.to_string()))?;
        Ok((Self { file, path, _lock: lock }, known))
    }

    /// Adds a line.
    pub fn add(&mut self, entry: &Entry) -> Result<(), Failure> {
        self.file.write_all(json(entry).as_bytes()).map_err(|error| {
            Failure::environment(format!("cannot write {}: {error}; free some space and --resume", self.path.display()))
        })
    }
}

fn json(line: &impl Serialize) -> String {
    // Names, numbers and texts have a form in JSON.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

fn read(path: &Path, header: &Header) -> Result<Vec<Entry>, Failure> {
    let refused = |why: String| Failure::usage(format!("--resume: {}: {why}", path.display()));
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().transpose().map_err(|error| refused(error.to_string()))?.unwrap_or_default();
    let known: Header = serde_json::from_str(&first).map_err(|error| refused(format!("no search: {error}")))?;
    if known != *header {
        return Err(refused(
            "it is of another manifest, device, narrowing or objective: run without --resume, or name another folder \
             with --out"
                .to_owned(),
        ));
    }
    let mut entries = Vec::new();
    for line in lines {
        let line = line.map_err(|error| refused(error.to_string()))?;
        match serde_json::from_str(&line) {
            Ok(entry) => entries.push(entry),
            // Only the last line can have been cut.
            Err(_) => break,
        }
    }
    Ok(entries)
}
