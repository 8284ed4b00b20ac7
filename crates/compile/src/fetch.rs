//! Fetches the pinned compiler and headers, or a program of the toolkit, into the user's cache. pip downloads them and
//! checks every file's hash. The folder gets its final name only when complete.
//!
//! The user's configuration decides which package index pip uses. Nothing here runs with `--offline`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::cache::Cache;
use super::layout;
use super::pinned::{NEWEST, Pinned};
use super::toolkit::TOOLKIT_VARIABLE;
use runner_files::atomic;
use runner_files::cache_folder::CACHE_VARIABLE;
use runner_process::programs::{PYTHON_VARIABLE, python, search_path};

pub(super) const SANITIZER: &str = "compute-sanitizer";

/// Parts of the packages that compiling does not need, as path prefixes below `nvidia/*/`.
const UNUSED: [&str; 7] =
    ["lib/libnvrtc.alt", "lib/libnvrtc-builtins.alt", "lib/libcudart", "lib/libculibos", "lib/cmake", "bin", "nvvm"];

/// Program folders in a package.
const PROGRAMS: [&str; 2] = ["bin", "nvvm/bin"];

pub(super) const NVDISASM: &str = "nvdisasm";

/// The assembler, which comes with nvcc.
pub(super) const PTXAS: &str = "ptxas";

pub(super) const NVCC: &str = "nvcc";

/// Whether a missing toolkit may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// pip may fetch the pinned version.
    Allowed,
    /// `--offline` forbids fetching.
    Forbidden,
}

/// Why fetching failed. A failure never leaves an incomplete folder.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "there are no CUDA packages for this kind of machine ({host}); install a CUDA toolkit and set \
         {TOOLKIT_VARIABLE} to its folder"
    )]
    Host { host: String },
    #[error(
        "cannot run `{program}` ({reason}), whose pip fetches packages; install Python 3 with pip, or set \
             {PYTHON_VARIABLE} to an interpreter"
    )]
    NoPython { program: String, reason: String },
    #[error(
        "`{0}` has no pip, which fetches packages; install pip for it (`{0} -m ensurepip`, or the system's \
             package python3-pip), or set {PYTHON_VARIABLE} to an interpreter that has it"
    )]
    NoPip(String),
    #[error(
        "pip could not reach a package index; check the network and pip's configuration (`pip config list`), or set \
         {TOOLKIT_VARIABLE} to a CUDA toolkit\n{0}"
    )]
    Network(String),
    #[error("pip's package index lacks a pinned package or does not respond\n{0}")]
    NoPackage(String),
    #[error(
        "a downloaded package does not have its pinned hash and was deleted; a proxy or a mirror may have \
             changed it\n{0}"
    )]
    Hash(String),
    #[error(
        "no space is left in {} (about {needed_mb} MB are needed while fetching); set {CACHE_VARIABLE} to a folder \
         with more space",
        place.display()
    )]
    DiskFull { place: PathBuf, needed_mb: u32 },
    #[error("pip failed\n{0}")]
    Pip(String),
    #[error("the fetched packages are incomplete: {} {reason}", place.display())]
    Incomplete { place: PathBuf, reason: String },
    #[error("cannot {action} {}: {source}; set {CACHE_VARIABLE} to a writable folder", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// Purpose of a set of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Compile,
    /// Running the program with this name.
    Run(&'static str),
    /// Including headers of this library.
    Include(&'static str),
}

impl Purpose {
    /// Name of the set in messages.
    fn describe(self, set: &Pinned) -> String {
        match self {
            Self::Compile => format!("NVRTC {} and its headers", set.build),
            Self::Run(program) => format!("{program} {}", set.build),
            Self::Include(library) => format!("the headers of {library} {}", set.build),
        }
    }

    /// Fails if a folder of unpacked packages is missing something.
    fn inspect(self, root: &Path) -> Result<(), String> {
        match self {
            Self::Compile => layout::inspect(root).map(drop),
            Self::Run(program) => find_program(root, program).map(drop),
            Self::Include(_) => header_folders(root).map(drop),
        }
    }
}

/// Fetches a compiler unless it is present. Waits for another process that is fetching it. Progress goes to `say`.
pub fn fetch(set: &'static Pinned, cache: &Cache, say: &mut dyn FnMut(&str)) -> Result<PathBuf, FetchError> {
    fetch_for(Purpose::Compile, set, (cache, &cache.toolkit_dir(set)), say)
}

/// Path of a program, or of one that comes with it. If it is not in the cache, fetches it, or fails with `offline` if
/// fetching is forbidden.
pub(super) fn ensure_program<E: From<FetchError>>(
    (program, name): (&'static str, &str),
    set: &'static Pinned,
    cache: &Cache,
    (network, offline): (Network, E),
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, E> {
    let place = cache.program_dir(program, set);
    if let Ok(path) = find_program(&place, name) {
        return Ok(path);
    }
    if network == Network::Forbidden {
        return Err(offline);
    }
    let place = fetch_for(Purpose::Run(program), set, (cache, &place), say)?;
    find_program(&place, name).map_err(|reason| FetchError::Incomplete { place, reason }.into())
}

/// Fetches the headers of a library, like [`fetch`] for a compiler.
pub(super) fn fetch_headers(
    library: &'static str,
    set: &'static Pinned,
    cache: &Cache,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, FetchError> {
    fetch_for(Purpose::Include(library), set, (cache, &cache.headers_dir(set, library)), say)
}

fn fetch_for(
    purpose: Purpose,
    set: &'static Pinned,
    (cache, place): (&Cache, &Path),
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, FetchError> {
    // pip runs in another folder.
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let parent = place.parent().unwrap_or(&place).to_owned();
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    cache.create();
    make_dir(&parent)?;
    let _lock = lock(&parent.join(format!("{name}.lock")), say)?;
    if purpose.inspect(&place).is_ok() {
        return Ok(place);
    }
    supported_host()?;
    let prefix = format!(".fetching-{}-", name.trim_start_matches("cuda-"));
    remove_stale(&parent, &prefix);
    let what = purpose.describe(set);
    say(&format!("fetching {what} ({} MB) into {}", set.download_mb, parent.display()));
    let staging = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(&parent)
        .map_err(|source| io("create a folder in", &parent, source))?;
    let unpacked = staging.path().join("toolkit");
    install(set, staging.path(), &unpacked, say)?;
    match purpose {
        Purpose::Compile => remove_unused(&unpacked, &UNUSED)?,
        Purpose::Include(_) => remove_unused(&unpacked, &["lib"])?,
        Purpose::Run(_) => make_executable(&unpacked)?,
    }
    if let Err(reason) = purpose.inspect(&unpacked) {
        return Err(FetchError::Incomplete { place: unpacked, reason });
    }
    publish(&unpacked, &place)?;
    let what = what.trim_end_matches(" and its headers");
    let are = if matches!(purpose, Purpose::Include(_)) { "are" } else { "is" };
    say(&format!("{what} {are} ready in {}", place.display()));
    Ok(place)
}

/// Removes leftovers of killed processes that were fetching this set. The caller holds the lock, so none is running.
/// Anything that cannot be removed only takes space.
pub(super) fn remove_stale(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks the fetching of a set. The system releases the lock when the process ends.
pub(super) fn lock(path: &Path, say: &mut dyn FnMut(&str)) -> Result<File, FetchError> {
    let file = File::create(path).map_err(|source| io("create", path, source))?;
    if file.try_lock().is_err() {
        say("another process is already fetching it; waiting");
        let _span = tracing::info_span!("wait for the lock", file = %path.display()).entered();
        file.lock().map_err(|source| io("lock", path, source))?;
    }
    Ok(file)
}

fn supported_host() -> Result<(), FetchError> {
    let known =
        cfg!(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")));
    if known {
        Ok(())
    } else {
        Err(FetchError::Host { host: format!("{} {}", std::env::consts::ARCH, std::env::consts::OS) })
    }
}

/// Runs pip, which downloads, verifies and unpacks the set.
fn install(set: &Pinned, staging: &Path, unpacked: &Path, say: &mut dyn FnMut(&str)) -> Result<(), FetchError> {
    let requirements = staging.join("requirements.txt");
    fs::write(&requirements, set.requirements).map_err(|source| io("write", &requirements, source))?;
    let scratch = staging.join("tmp");
    make_dir(&scratch)?;
    let python = python();
    let _span = tracing::info_span!("run pip", python, set = set.build).entered();
    let mut child = pip_install(&python, &requirements, unpacked, &scratch)
        .spawn()
        .map_err(|e| FetchError::NoPython { program: python.clone(), reason: e.to_string() })?;
    let stderr = watch(&mut child, say);
    let status = child.wait().map_err(|source| io("wait for pip in", staging, source))?;
    if status.success() {
        Ok(())
    } else {
        // A package is unpacked completely before parts of it are removed.
        let needed_mb = 3 * set.installed_mb.max(set.download_mb) + set.download_mb;
        Err(classify(&stderr, &python, staging, needed_mb))
    }
}

/// A pip command in isolated mode that runs in `dir`. Otherwise Python would load `pip.py`, and modules that pip
/// imports, from the working directory, which may be an untrusted checkout.
pub fn pip(python: &str, dir: &Path) -> Command {
    // A relative path refers to the current folder, not to `dir`.
    let named = if python.contains('/') { std::path::absolute(python).ok() } else { None };
    let mut command = Command::new(named.unwrap_or_else(|| PathBuf::from(python)));
    command.args(["-I", "-m", "pip"]).env("PATH", search_path()).current_dir(dir);
    command
}

fn pip_install(python: &str, requirements: &Path, unpacked: &Path, scratch: &Path) -> Command {
    let mut command = pip_with_hashes(python, "install", requirements, scratch);
    command.args(["--no-compile", "--no-warn-conflicts"]).arg("--target").arg(unpacked);
    // The user's configuration may set an option that conflicts with `--target`.
    command.env("PIP_USER", "0");
    command
}

/// A pip command that downloads the wheels of `requirements`, which include hashes. It builds nothing, so none of their
/// code runs.
pub(super) fn pip_with_hashes(python: &str, action: &str, requirements: &Path, scratch: &Path) -> Command {
    let mut command = pip(python, scratch);
    command
        .args([action, "--require-hashes", "--no-deps", "--only-binary=:all:"])
        .args(["--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar=off"])
        .arg("--requirement")
        .arg(requirements)
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        // pip unpacks twice. /tmp may be small, and a rename within one file system is cheap.
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reports pip's progress and returns its standard error.
pub(super) fn watch(child: &mut Child, say: &mut dyn FnMut(&str)) -> String {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stderr = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stderr) = stderr {
            // Invalid UTF-8 ends the text early; the part before it still names the cause.
            let _ = stderr.read_to_string(&mut text);
        }
        text
    });
    for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
        let line = line.trim();
        if let Some(file) = line.strip_prefix("Downloading ").or_else(|| line.strip_prefix("Using cached ")) {
            // pip prints the file name, or the full URL for a mirror.
            say(&format!("  {}", file.rsplit('/').next().unwrap_or(file)));
        }
    }
    stderr.join().unwrap_or_default()
}

pub(super) fn classify(stderr: &str, python: &str, staging: &Path, needed_mb: u32) -> FetchError {
    let has = |needles: &[&str]| needles.iter().any(|needle| stderr.contains(needle));
    let tail = || {
        // The last retry message says everything that the others do.
        let is_again = |line: &&str| line.contains("Retrying (Retry(total=") && !line.contains("total=0");
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty() && !is_again(line)).collect();
        lines[lines.len().saturating_sub(8)..]
            .iter()
            .map(|line| format!("  pip: {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    if has(&["No module named pip"]) {
        FetchError::NoPip(python.to_owned())
    } else if has(&["DO NOT MATCH THE HASHES"]) {
        FetchError::Hash(tail())
    } else if has(&["No space left on device", "[Errno 28]"]) {
        FetchError::DiskFull { place: staging.to_owned(), needed_mb }
    } else if has(&[
        "Retrying (",
        "Connection",
        "timed out",
        "Max retries",
        "name resolution",
        "ProxyError",
        "SSLError",
    ]) {
        FetchError::Network(tail())
    } else if has(&["No matching distribution", "Could not find a version"]) {
        FetchError::NoPackage(tail())
    } else {
        FetchError::Pip(tail())
    }
}

/// Makes every program executable, since the packages of some versions do not.
fn make_executable(unpacked: &Path) -> Result<(), FetchError> {
    for programs in PROGRAMS.iter().flat_map(|folder| packages(unpacked).map(move |package| package.join(folder))) {
        for program in fs::read_dir(programs).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if program.is_file() {
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
                    .map_err(|e| io("change", &program, e))?;
            }
        }
    }
    Ok(())
}

fn remove_unused(unpacked: &Path, unused: &[&str]) -> Result<(), FetchError> {
    let base = unpacked.join("nvidia");
    let packages = fs::read_dir(&base).map_err(|source| io("read", &base, source))?.flatten();
    for package in packages.map(|entry| entry.path()).filter(|path| path.is_dir()) {
        for unused in unused {
            let (dir, prefix) = match unused.split_once('/') {
                Some((dir, prefix)) => (package.join(dir), prefix),
                None => (package.clone(), *unused),
            };
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    remove(&entry.path())?;
                }
            }
        }
    }
    Ok(())
}

/// Renames the complete folder. The caller holds the lock, so an existing folder is incomplete.
pub(super) fn publish(unpacked: &Path, place: &Path) -> Result<(), FetchError> {
    if place.exists() {
        remove(place)?;
    }
    // After a system crash, the final name must not belong to an incomplete folder.
    if let Ok(dir) = File::open(unpacked) {
        let _ = rustix::fs::syncfs(&dir);
    }
    fs::rename(unpacked, place).map_err(|source| io("rename the fetched folder to", place, source))
}

fn remove(path: &Path) -> Result<(), FetchError> {
    let result = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    result.map_err(|source| io("remove", path, source))
}

pub(super) fn make_dir(dir: &Path) -> Result<(), FetchError> {
    atomic::create_folder(dir).map_err(|error| io("create", dir, error.source))
}

pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> FetchError {
    if source.kind() == std::io::ErrorKind::StorageFull {
        return FetchError::DiskFull { place: path.to_owned(), needed_mb: 3 * NEWEST.installed_mb };
    }
    FetchError::Io { action, path: path.to_owned(), source }
}

pub(super) fn find_program(root: &Path, name: &str) -> Result<PathBuf, String> {
    let found = packages(root).map(|package| package.join("bin").join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("has no {name}"))
}

pub(super) fn header_folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folders: Vec<PathBuf> =
        packages(root).map(|package| package.join("include")).filter(|dir| dir.is_dir()).collect();
    if folders.is_empty() { Err("has no headers".to_owned()) } else { Ok(folders) }
}

fn packages(root: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(root.join("nvidia")).into_iter().flatten().flatten().map(|entry| entry.path())
}
