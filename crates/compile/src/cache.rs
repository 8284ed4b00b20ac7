//! The user's cache on disk: fetched toolkits, and compiled units by the hash of their inputs.
//!
//! Several processes may share it. Code is stored under its hash, and a file under the unit's address describes it.
//! Both are written completely and then renamed. A damaged entry counts as missing. Entries are never removed here; the
//! user may delete the folder.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pinned::Pinned;
use runner_files::atomic;
use runner_files::cache_folder::{CACHE_VARIABLE, PACKAGES, cache_folder};
use runner_files::regular;
use runner_files::sealed;
use runner_types::{CodeKind, Compiled, sha256_hex};

/// Version of the entry layout. Increase it when old entries would be misread.
const FORMAT: u32 = 3;
/// Version of the listing layout and of how instructions are joined with lines.
const LISTING_FORMAT: u32 = 3;

/// Prefixes of unfinished files: a compiler's output with its lock, and entries before their rename.
const SCRATCH_PREFIXES: [&str; 2] = [".compiling-", atomic::UNFINISHED];

/// Levels of folders to examine: the cache, each kind of entry, and each version, package or compiler.
const LEVELS: usize = 3;

/// Scratch files older than this belong to no running process.
const STALE_AGE: Duration = Duration::from_hours(24);

#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("the user's cache folder is unknown ({0}); set {CACHE_VARIABLE} to a folder")]
    NoHome(String),
    #[error("the cache {} is not safe: {why}; set {CACHE_VARIABLE} to a folder of your own", path.display())]
    Unsafe { path: PathBuf, why: &'static str },
    #[error(
        "the path of the cache {} is not UTF-8, as compilers require; set {CACHE_VARIABLE} to another folder",
        path.display()
    )]
    NotUtf8 { path: PathBuf },
    #[error(
        "cannot write to the cache {}: {source}; set {CACHE_VARIABLE} to a writable folder",
        path.display()
    )]
    NotWritable { path: PathBuf, source: io::Error },
}

impl From<atomic::WriteError> for CacheError {
    fn from(error: atomic::WriteError) -> Self {
        Self::NotWritable { path: error.path, source: error.source }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// Description of a compiled unit on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    format: u32,
    /// SHA-256 of the code, which is also its file name.
    code: String,
    compiled: Compiled,
}

impl Cache {
    /// The folder in `RUNNER_CACHE`, or `runner` in the user's cache folder.
    pub fn locate() -> Result<Self, CacheError> {
        Self::at(cache_folder().map_err(CacheError::NoHome)?).safe()
    }

    /// Rejects a cache that other users can write to at some level, since compilers and code in it are executed. A
    /// deeper folder belongs to one package, which was written as a whole. Also rejects paths that are not UTF-8,
    /// because requests to workers contain them as text.
    fn safe(self) -> Result<Self, CacheError> {
        if self.root.to_str().is_none() {
            return Err(CacheError::NotUtf8 { path: self.root });
        }
        let mut folders = vec![self.root.clone()];
        for _ in 0..LEVELS {
            let below: Vec<PathBuf> = folders.iter().flat_map(|folder| folders_in(folder)).collect();
            if let Some((path, why)) = folders.into_iter().find_map(|folder| Some((folder.clone(), danger(&folder)?))) {
                return Err(CacheError::Unsafe { path, why });
            }
            folders = below;
        }
        Ok(self)
    }

    /// Cache in this folder, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder of compiled units. Fails if it is not writable, before time is spent on compiling.
    pub fn prepare(&self) -> Result<(), CacheError> {
        self.create();
        self.scratch()?;
        remove_stale(&self.code_dir());
        Ok(())
    }

    /// Creates the folder for this user only. Errors surface when the folder is used.
    pub fn create(&self) {
        let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
    }

    pub fn toolkit_dir(&self, pinned: &Pinned) -> PathBuf {
        self.root.join("toolkit").join(format!("cuda-{}", pinned.build))
    }

    pub fn program_dir(&self, name: &str, pinned: &Pinned) -> PathBuf {
        self.root.join("toolkit").join(format!("{}-{}", name.trim_start_matches("compute-"), pinned.build))
    }

    pub fn headers_dir(&self, pinned: &Pinned, library: &str) -> PathBuf {
        let library = library.trim_start_matches("the ").to_lowercase();
        self.root.join("toolkit").join(format!("{library}-headers-{}", pinned.build))
    }

    /// Folder of the package whose archive has this SHA-256.
    pub fn package_dir(&self, sha256: &str) -> PathBuf {
        self.root.join(PACKAGES).join(sha256)
    }

    fn code_dir(&self) -> PathBuf {
        self.root.join("code").join(format!("v{FORMAT}"))
    }

    /// Unit stored under `address`; `None` if it is missing or damaged.
    pub(super) fn load(&self, address: &str) -> Option<Compiled> {
        let description = self.code_dir().join(format!("{address}.json"));
        let entry: Entry = serde_json::from_slice(&sealed::read(&description)?).ok()?;
        let code = self.code_file(&entry.code, entry.compiled.kind);
        let machine =
            entry.compiled.machine.as_ref().map(|path| self.code_dir().join(path.file_name().unwrap_or_default()));
        let is_sound = |path: &Path, name: &str| {
            let is_sound =
                regular::read_data(path, regular::LONGEST_DATA).is_ok_and(|bytes| sha256_hex(&bytes) == name);
            if !is_sound {
                sealed::warn_damaged(path);
            }
            is_sound
        };
        let named =
            |path: &PathBuf| path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| is_sound(path, name));
        let sound = entry.format == FORMAT && is_sound(&code, &entry.code) && machine.as_ref().is_none_or(named);
        sound.then_some(Compiled { code, machine, cached: true, ..entry.compiled })
    }

    /// Stores a unit's code; returns its description with the path of the code.
    pub(super) fn store(&self, address: &str, code: &[u8], compiled: Compiled) -> Result<Compiled, CacheError> {
        let dir = self.code_dir();
        atomic::create_folder(&dir)?;
        let name = sha256_hex(code);
        let place = self.code_file(&name, compiled.kind);
        atomic::write(&place, code)?;
        let entry = Entry { format: FORMAT, code: name, compiled: Compiled { code: place, cached: false, ..compiled } };
        let description = dir.join(format!("{address}.json"));
        let text = serde_json::to_vec_pretty(&entry).map_err(|e| failed(&description)(e.into()))?;
        sealed::write(&description, &text)?;
        Ok(entry.compiled)
    }

    /// Stores the machine code assembled from PTX; returns its path.
    pub(super) fn store_machine(&self, cubin: &[u8]) -> Result<PathBuf, CacheError> {
        let dir = self.code_dir();
        atomic::create_folder(&dir)?;
        let place = self.code_file(&sha256_hex(cubin), CodeKind::Cubin);
        atomic::write(&place, cubin)?;
        Ok(place)
    }

    pub(super) fn listing_file(&self, address: &str) -> PathBuf {
        self.root.join("listings").join(format!("v{LISTING_FORMAT}")).join(address)
    }

    /// Listing stored under `address`; `None` if it is missing or damaged.
    pub(super) fn load_listing(&self, address: &str) -> Option<Vec<u8>> {
        sealed::read(&self.listing_file(address))
    }

    pub(super) fn store_listing(&self, address: &str, text: &[u8]) -> Result<(), CacheError> {
        self.create();
        Ok(sealed::write(&self.listing_file(address), text)?)
    }

    fn code_file(&self, name: &str, kind: CodeKind) -> PathBuf {
        let extension = match kind {
            CodeKind::Cubin => "cubin",
            CodeKind::Ptx => "ptx",
            CodeKind::Plugin => "so",
        };
        self.code_dir().join(format!("{name}.{extension}"))
    }

    /// File to lock while compiling a CUDA C++ file whose code several units share.
    pub(super) fn lock_file(&self, address: &str) -> Result<fs::File, CacheError> {
        let path = self.code_dir().join(format!("{}{address}", SCRATCH_PREFIXES[0]));
        atomic::create_folder(&self.code_dir())?;
        fs::File::create(&path).map_err(failed(&path))
    }

    /// Scratch file for a compiler's output, removed when the handle is dropped.
    pub(super) fn scratch(&self) -> Result<tempfile::NamedTempFile, CacheError> {
        let dir = self.code_dir();
        atomic::create_folder(&dir)?;
        tempfile::Builder::new().prefix(SCRATCH_PREFIXES[0]).tempfile_in(&dir).map_err(failed(&dir))
    }
}

/// Why a cache folder is unsafe; `None` if it is safe or does not exist.
fn danger(folder: &Path) -> Option<&'static str> {
    let metadata = fs::metadata(folder).ok()?;
    let user = rustix::process::geteuid().as_raw();
    match () {
        // A superuser's cache is often on another user's volume.
        () if metadata.uid() != user && user != 0 => Some("it belongs to another user"),
        () if metadata.is_dir() && metadata.mode() & 0o022 != 0 => Some("other users can write to it"),
        () => None,
    }
}

/// Subfolders of a cache folder, and symbolic links, which may lead to folders.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}

/// Removes scratch files of killed processes: those not written to for a day.
fn remove_stale(dir: &Path) {
    let old = |entry: &fs::DirEntry| {
        let written = entry.metadata().and_then(|meta| meta.modified()).ok();
        written.and_then(|written| written.elapsed().ok()).is_some_and(|age| age > STALE_AGE)
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if SCRATCH_PREFIXES.iter().any(|prefix| entry.file_name().to_string_lossy().starts_with(prefix)) && old(&entry)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> CacheError + use<> {
    let path = path.to_owned();
    move |source| CacheError::NotWritable { path, source }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn scratch_files_of_the_dead_are_removed_and_those_of_the_living_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        cache.prepare().unwrap();
        let make = |name: &str, age: Duration| {
            let file = File::create(cache.code_dir().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        make(".compiling-old", Duration::from_hours(25));
        make(".compiling-new", Duration::from_hours(1));
        make("entry.json", Duration::from_hours(1000));
        cache.prepare().unwrap();
        let mut names: Vec<_> =
            fs::read_dir(cache.code_dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [".compiling-new", "entry.json"]);
    }

    #[test]
    fn a_listing_is_returned_as_it_was_stored_and_not_if_it_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        assert_eq!(cache.load_listing("a"), None);
        cache.store_listing("a", b"[{}, []]").unwrap();
        assert_eq!(cache.load_listing("a").unwrap(), b"[{}, []]");
        assert_eq!(cache.load_listing("b"), None);
        for damaged in [&b"short"[..], &[b'0'; 64], &[[b'0'; 64].as_slice(), b"[{}, []]"].concat()] {
            fs::write(cache.listing_file("a"), damaged).unwrap();
            assert_eq!(cache.load_listing("a"), None);
        }
    }

    #[test]
    fn a_cache_is_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        cache.prepare().unwrap();
        assert_eq!(fs::metadata(cache.root()).unwrap().mode() & 0o777, 0o700);
        assert!(cache.clone().safe().is_ok());
        let refused = |folder: &Path| {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
            let error = cache.clone().safe().unwrap_err().to_string();
            let expected = format!("the cache {} is not safe: other users can write to it", folder.display());
            assert!(error.starts_with(&expected) && error.contains("; set RUNNER_CACHE"), "{error}");
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
            assert!(cache.clone().safe().is_ok());
        };
        refused(cache.root());
        fs::create_dir_all(cache.root().join("toolkit/cuda")).unwrap();
        for folder in ["code", "code/v3", "toolkit", "toolkit/cuda"] {
            refused(&cache.root().join(folder));
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_reported_before_it_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let error = Cache::at(dir.path().join("file")).prepare().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write to the cache {}/file/code/v3: ", dir.path().display())),
            "{error}"
        );
        assert!(error.ends_with("set RUNNER_CACHE to a writable folder"), "{error}");
    }
}
