//! Finds reports in folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{ReadError, Stored, folder_of, journal, shards};
use crate::analyse;
use crate::journal::{History, JOURNAL_FILE, Merged, RECORDS_FILE, read_records};
use runner_types::Shard;

/// The report at a path, or all reports below it.
pub(super) fn read(path: &Path) -> Result<Vec<Stored>, ReadError> {
    let place = || path.display().to_string();
    let Ok(metadata) = fs::metadata(path) else {
        let hint = "name a folder of reports, a records file, or a revision, as in `main:reports/reduce`".to_owned();
        return Err(ReadError::Missing { place: place(), hint });
    };
    if metadata.is_file() {
        return Ok(vec![of_file(path)?]);
    }
    let mut files = Vec::new();
    find(path, &mut files).map_err(|source| ReadError::Io { place: place(), source })?;
    let mut shards: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files {
        match whole_of(&file) {
            Some(whole) => shards.entry(whole).or_default().push(file),
            None => found.push(of_file(&file)?),
        }
    }
    for (whole, files) in shards {
        found.extend(of_shards(&whole, &files)?);
    }
    Ok(found)
}

/// Folder with all shards, if this is the journal of one: `run --shard` names its folder e.g. `03-of-40`.
fn whole_of(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let (index, of) = folder.file_name()?.to_str()?.split_once("-of-")?;
    let is_shard = format!("{index}/{of}").parse::<Shard>().is_ok() && file.ends_with(JOURNAL_FILE);
    is_shard.then(|| folder.parent().map(Path::to_owned)).flatten()
}

/// Reports of merged shards, one per experiment and kind of machine.
fn of_shards(whole: &Path, files: &[PathBuf]) -> Result<Vec<Stored>, ReadError> {
    let joined = shards::join(files)?;
    let place = whole.display().to_string();
    let folder = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let report = |part: Merged| {
        let no_run = |source| ReadError::NoRun { place: place.clone(), source };
        let is_whole = part.missing.is_empty();
        let groups = part.of_groups(History::fold)?;
        let records = analyse::records_of_groups(part.into_run_events(), groups).map_err(no_run)?;
        let mut warnings = joined.warnings.clone();
        if !is_whole {
            warnings.push(format!("{place} lacks shards or cases; `runner merge {place}` lists them"));
        }
        Ok(Stored { place: place.clone(), folder: folder.clone(), records, warnings })
    };
    joined.parts.into_iter().map(report).collect()
}

/// Finds the file of each report at or below a folder, sorted by folder name. Does not follow symbolic links.
fn find(dir: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let report = [RECORDS_FILE, JOURNAL_FILE].map(|name| dir.join(name)).into_iter().find(|file| file.is_file());
    if let Some(file) = report {
        found.push(file);
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|dir| find(dir, found))
}

/// Reads a file: a journal if it has a journal's name, otherwise records.
fn of_file(file: &Path) -> Result<Stored, ReadError> {
    let is_journal = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal."));
    let (records, warnings) = if is_journal { journal::read_journal(file)? } else { (read_records(file)?, Vec::new()) };
    let is_default = [RECORDS_FILE, JOURNAL_FILE].iter().any(|name| file.ends_with(name));
    let place = if is_default { file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(file) } else { file };
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(Stored { place: place.display().to_string(), folder: folder_of(&absolute), records, warnings })
}
