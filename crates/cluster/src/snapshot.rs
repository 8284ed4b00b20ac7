//! Copies of the files that a submission's cases need. Tasks run from these copies, so later edits do not affect them.
//!
//! A job's folder stores each content once, under its hash, for all submissions. A snapshot is a list of files with
//! their hashes and a tree of links to the contents. The tree mirrors the file system from its root, so relative paths
//! stay the same. The snapshot is named after the hash of its list. The script passes this hash to the tasks, which
//! check the list and every file against it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::job::{JobError, read_json, subfolders};
use runner_files::atomic::{self, WriteError};
use runner_files::regular;
use runner_types::{hex, sha256_hex};

/// Name of the list in a snapshot's folder.
const LIST: &str = "files.json";
/// Root of the tree in a snapshot's folder.
const TREE: &str = "files";
const SNAPSHOTS: &str = "snapshots";
/// Folder in a job's folder that stores each content once.
const CONTENTS: &str = "contents";
/// Number of hash digits in the name of a snapshot's folder. The whole hash is checked.
const DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// SHA-256 of the program that runs the tasks.
    pub program: String,
    /// Commit of the submitted checkout, if it is a git checkout.
    pub revision: Option<String>,
    /// SHA-256 of each file's content, by absolute path.
    pub files: BTreeMap<PathBuf, String>,
    /// Folders that must exist, even without a file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub folders: BTreeSet<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot copy {} for the tasks: {source}", path.display())]
    Copy { path: PathBuf, source: io::Error },
    #[error("{} has changed since it was submitted: submit again", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    File(#[from] JobError),
}

impl SnapshotError {
    /// Whether a file is missing. On a shared file system, it may still appear.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::File(error) if error.is_absent())
    }
}

impl From<WriteError> for SnapshotError {
    fn from(error: WriteError) -> Self {
        Self::File(error.into())
    }
}

/// Absolute path without `.` and `..`, as used in snapshots.
pub fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

impl Snapshot {
    /// Copies files into a job's folder, except those whose content it already has.
    pub fn copy(
        dir: &Path,
        (files, folders): (&BTreeSet<PathBuf>, &BTreeSet<PathBuf>),
        program: String,
        revision: Option<String>,
    ) -> Result<Self, SnapshotError> {
        let folder = dir.join(CONTENTS);
        atomic::create_folder(&folder)?;
        let mut contents = BTreeMap::new();
        for file in files {
            if let Entry::Vacant(place) = contents.entry(plain_path(file)) {
                let hash = keep_copy(file, 0o444, |hash| folder.join(hash));
                place.insert(hash.map_err(|source| SnapshotError::Copy { path: file.clone(), source })?);
            }
        }
        let folders = folders.iter().map(|folder| plain_path(folder)).collect();
        Ok(Self { program, revision, files: contents, folders })
    }

    /// Writes the list and the tree to a job's folder; returns the snapshot's identity.
    pub fn write(&self, dir: &Path) -> Result<String, SnapshotError> {
        let text = self.text()?;
        let id = sha256_hex(text.as_bytes());
        let folder = Self::folder(dir, &id);
        for path in &self.folders {
            atomic::create_folder(&below(&folder.join(TREE), path))?;
        }
        for (path, hash) in &self.files {
            let place = below(&folder.join(TREE), path);
            if let Some(parent) = place.parent() {
                atomic::create_folder(parent)?;
            }
            let content = dir.join(CONTENTS).join(hash);
            match fs::hard_link(&content, &place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if hash_of(&place).is_ok_and(|found| found == *hash) {
                        continue;
                    }
                    let copied = fs::remove_file(&place).and_then(|()| fs::copy(&content, &place));
                    copied.map_err(|source| SnapshotError::Copy { path: path.clone(), source })?;
                }
                Err(_) => {
                    // The file system may not support hard links.
                    fs::copy(&content, &place)
                        .map_err(|source| SnapshotError::Copy { path: path.clone(), source })
                        .map(drop)?;
                }
                Ok(()) => {}
            }
        }
        // Written last: a snapshot with a list is complete.
        atomic::write(&folder.join(LIST), text.as_bytes())?;
        Ok(id)
    }

    /// Hash of the file list, independent of the program that runs the tasks.
    pub fn of_files(&self) -> String {
        let lines = self.files.iter().map(|(path, hash)| format!("{hash} {}\n", path.display()));
        sha256_hex(lines.collect::<String>().as_bytes())
    }

    /// Files that were edited or removed after they were copied to the job's folder `dir`. Unreadable files, which may
    /// belong to another user, are left out.
    pub fn edited(&self, dir: &Path) -> impl Iterator<Item = &Path> {
        let contents = dir.join(CONTENTS);
        let is_edited = move |(path, hash): &(&PathBuf, &String)| match path.metadata() {
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(metadata) => {
                let copied = contents.join(hash).metadata().map_or(0, |copy| copy.mtime());
                // Every edit updates ctime, and no program can set it.
                metadata.ctime() >= copied && hash_of(path).is_ok_and(|found| found != **hash)
            }
        };
        self.files.iter().filter(is_edited).map(|(path, _)| path.as_path())
    }

    /// Reads a snapshot's list without checking the files.
    pub fn read(dir: &Path, id: &str) -> Result<Self, JobError> {
        read_json(&Self::folder(dir, id).join(LIST))
    }

    /// Reads a snapshot and checks every file.
    pub fn checked(dir: &Path, id: &str) -> Result<Self, SnapshotError> {
        let folder = Self::folder(dir, id);
        let list = folder.join(LIST);
        let bytes = regular::read_data(&list, regular::LONGEST_DATA)
            .map_err(|source| JobError::Read { path: list.clone(), source })?;
        if sha256_hex(&bytes) != id {
            return Err(SnapshotError::Changed(list));
        }
        let snapshot: Self =
            serde_json::from_slice(&bytes).map_err(|source| JobError::Damaged { path: list, source })?;
        for (path, hash) in &snapshot.files {
            let place = below(&folder.join(TREE), path);
            if hash_of(&place).map_err(|source| JobError::Read { path: place.clone(), source })? != *hash {
                return Err(SnapshotError::Changed(place));
            }
        }
        Ok(snapshot)
    }

    /// Folder in the snapshot that mirrors the root of the file system.
    pub fn root(dir: &Path, id: &str) -> PathBuf {
        Self::folder(dir, id).join(TREE)
    }

    /// Folder in the snapshot that mirrors `directory`. Creates it, since it may contain no file.
    pub fn directory(dir: &Path, id: &str, directory: &Path) -> Result<PathBuf, WriteError> {
        let place = below(&Self::root(dir, id), directory);
        atomic::create_folder(&place)?;
        Ok(place)
    }

    /// Folder names of a job's snapshots: prefixes of their identities.
    pub(super) fn ids(dir: &Path) -> Vec<String> {
        let names = subfolders(&dir.join(SNAPSHOTS)).into_iter().filter(|folder| folder.join(LIST).exists());
        names.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned())).collect()
    }

    fn folder(dir: &Path, id: &str) -> PathBuf {
        let plain: String = id.chars().filter(char::is_ascii_hexdigit).take(DIGITS).collect();
        dir.join(SNAPSHOTS).join(plain)
    }

    fn text(&self) -> Result<String, JobError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|source| JobError::Damaged { path: PathBuf::from(LIST), source })
    }
}

/// Maps an absolute path to its place below `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    root.join(parts.collect::<PathBuf>())
}

/// Copies a file to `place_of(hash)`, unless that exists with this content, and returns the hash.
pub(super) fn keep_copy(file: &Path, mode: u32, place_of: impl Fn(&str) -> PathBuf) -> io::Result<String> {
    let hash = hash_of(file)?;
    if hash_of(&place_of(&hash)).is_ok_and(|found| found == hash) {
        return Ok(hash);
    }
    let parent = place_of(&hash).parent().unwrap_or(Path::new(".")).to_owned();
    let mut copy = tempfile::Builder::new().prefix(atomic::UNFINISHED).tempfile_in(parent)?;
    // The file may change while it is copied, so hash what is written.
    let mut written = Hashing { inner: copy.as_file_mut(), digest: Sha256::new() };
    io::copy(&mut regular::open(file)?, &mut written)?;
    let hash = hex(&written.digest.finalize());
    let place = place_of(&hash);
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    copy.as_file().set_permissions(Permissions::from_mode(mode))?;
    copy.as_file().sync_all()?;
    copy.persist(&place).map_err(|error| error.error)?;
    Ok(hash)
}

pub(super) fn hash_of(file: &Path) -> io::Result<String> {
    let mut hashed = Hashing { inner: io::sink(), digest: Sha256::new() };
    io::copy(&mut regular::open(file)?, &mut hashed)?;
    Ok(hex(&hashed.digest.finalize()))
}

/// Writer that hashes everything written to it.
struct Hashing<W> {
    inner: W,
    digest: Sha256,
}

impl<W: io::Write> io::Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_keeps_files_as_they_were_and_notices_a_change() {
        let (dir, job) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (one, two) = (dir.path().join("a/one.cu"), dir.path().join("two.npy"));
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(&one, "1").unwrap();
        fs::write(&two, "2").unwrap();
        let files = [dir.path().join("a/../a/one.cu"), two.clone(), one.clone()].into();
        let folders = [dir.path().join("empty")].into();
        let taken = Snapshot::copy(job.path(), (&files, &folders), "p".to_owned(), None).unwrap();
        assert_eq!(taken.files.keys().collect::<Vec<_>>(), [&one, &two]);
        let id = taken.write(job.path()).unwrap();
        assert_eq!(taken.edited(job.path()).count(), 0);
        assert!(below(&Snapshot::root(job.path(), &id), &dir.path().join("empty")).is_dir());
        fs::write(&one, "edited").unwrap();
        fs::write(&two, "2").unwrap();
        assert_eq!(taken.edited(job.path()).collect::<Vec<_>>(), [&one]);
        fs::rename(&two, dir.path().join("three.npy")).unwrap();
        assert_eq!(taken.edited(job.path()).collect::<Vec<_>>(), [&one, &two]);
        fs::rename(dir.path().join("three.npy"), &two).unwrap();
        assert_eq!(Snapshot::checked(job.path(), &id).unwrap(), taken);
        let copy = below(&Snapshot::root(job.path(), &id), &one);
        assert_eq!(fs::read_to_string(&copy).unwrap(), "1");
        // A damaged copy is replaced.
        let content = job.path().join(CONTENTS).join(&taken.files[&one]);
        for damaged in [&content, &below(&Snapshot::root(job.path(), &id), &one)] {
            fs::set_permissions(damaged, Permissions::from_mode(0o644)).unwrap();
            fs::write(damaged, "2").unwrap();
        }
        fs::write(&one, "1").unwrap();
        assert!(matches!(Snapshot::checked(job.path(), &id), Err(SnapshotError::Changed(_))));
        let again =
            Snapshot::copy(job.path(), (&[one.clone(), two.clone()].into(), &folders), "p".to_owned(), None).unwrap();
        assert_eq!(again.write(job.path()).unwrap(), id);
        assert_eq!(Snapshot::checked(job.path(), &id).unwrap(), taken);
        fs::write(&one, "edited").unwrap();
        // The edited files form a new snapshot, which shares unchanged contents with the old one.
        let edited = Snapshot::copy(job.path(), (&[one, two].into(), &folders), "p".to_owned(), None).unwrap();
        assert_ne!(edited.write(job.path()).unwrap(), id);
        assert_ne!(edited.of_files(), taken.of_files());
        assert_eq!(fs::read_dir(job.path().join(CONTENTS)).unwrap().count(), 3);
        fs::remove_file(&copy).unwrap();
        fs::write(&copy, "other").unwrap();
        let error = Snapshot::checked(job.path(), &id).unwrap_err().to_string();
        assert!(error.contains("one.cu has changed since it was submitted"), "{error}");
        let list = Snapshot::folder(job.path(), &id).join(LIST);
        fs::write(&list, fs::read_to_string(&list).unwrap() + " ").unwrap();
        assert!(matches!(Snapshot::checked(job.path(), &id), Err(SnapshotError::Changed(path)) if path == list));
    }
}
