//! Fetches the published packages that manifests name into the user's cache.
//!
//! The registry's program downloads a package as the user has configured it: pip a wheel, cargo a crate. No package
//! code runs: the archive is read, and its files are written read-only. The folder gets its final name, the hash of the
//! archive, only when complete.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::cache::Cache;
use super::fetch::{FetchError, classify, io, lock, make_dir, pip_with_hashes, publish, remove_stale, watch};
use runner_experiment::{PackageSpec, Registry};
use runner_files::regular;
use runner_files::sealed;
use runner_process::programs::{Programs, python, search_path};
use runner_types::sha256_hex;

/// Unpacks an archive. Python is available wherever pip is.
const UNPACK: &str = include_str!("unpack.py");

/// Maximum size of an unpacked package. An archive of zeros can expand a thousandfold.
const MOST_BYTES: u64 = 2 << 30;

/// Disk space that pip needs besides the archive, for a message.
const NEEDED_MB: u32 = 500;

/// Why a package could not be fetched. No file of it was written.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("cannot fetch {what}: {source}")]
    Fetch { what: String, source: FetchError },
    #[error("cannot fetch {0}: cargo, which downloads crates, is not on the search path: install Rust")]
    NoCargo(String),
    #[error("cannot fetch {what}: {program} downloaded no archive of it\n{said}")]
    Absent { what: String, program: &'static str, said: String },
    #[error(
        "{what} has the SHA-256 {found}, but the manifest says {expected}: nothing was unpacked; compare it with the \
         registry's SHA-256"
    )]
    Hash { what: String, found: String, expected: String },
    #[error("{what} has {found} bytes, but the manifest says {expected}: nothing was unpacked; correct `bytes`")]
    Length { what: String, found: u64, expected: u64 },
    #[error("{what} in {} was changed since it was unpacked, or its checksums are damaged or missing: run once \
             without --offline to fetch it again", place.display())]
    Changed { what: String, place: PathBuf },
    #[error("{what} cannot be unpacked: {reason}")]
    Archive { what: String, reason: String },
}

/// Fetches a package unless it is present. Waits for another process that is fetching it. Progress goes to `say`.
pub fn fetch_package(package: &PackageSpec, cache: &Cache, say: &mut dyn FnMut(&str)) -> Result<PathBuf, PackageError> {
    let place = cache.package_dir(&package.sha256);
    let what = package.describe();
    if is_intact(&place) {
        return Ok(place);
    }
    // pip and cargo run in another folder.
    let place = std::path::absolute(&place).unwrap_or(place);
    let parent = place.parent().unwrap_or(&place).to_owned();
    let failed = |source: FetchError| PackageError::Fetch { what: what.clone(), source };
    cache.create();
    make_dir(&parent).map_err(failed)?;
    let _lock = lock(&parent.join(format!("{}.lock", package.sha256)), say).map_err(failed)?;
    if is_intact(&place) {
        return Ok(place);
    }
    let prefix = format!(".fetching-{}-", package.sha256);
    remove_stale(&parent, &prefix);
    if sealed::is_intact(&place) == Some(false) {
        tracing::warn!("{} has changed since it was unpacked and is fetched again", place.display());
    }
    say(&announcement(package, &parent));
    let staging = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(&parent)
        .map_err(|source| failed(io("create a folder in", &parent, source)))?;
    let archive = match package.registry {
        Registry::Wheel => download_wheel(package, staging.path(), say)?,
        Registry::Crate => download_crate(package, staging.path())?,
    };
    check(
        package,
        &regular::read_data(&archive, regular::LONGEST_DATA).map_err(|source| failed(io("read", &archive, source)))?,
    )?;
    let unpacked = staging.path().join("unpacked");
    make_dir(&unpacked).map_err(failed)?;
    unpack(package, &archive, &unpacked, MOST_BYTES)?;
    // A crate's archive has a single folder.
    let content = match package.registry {
        Registry::Wheel => unpacked,
        Registry::Crate => unpacked.join(format!("{}-{}", package.published, package.version)),
    };
    if !content.is_dir() {
        return Err(PackageError::Archive { what, reason: "it has no folder with its name and version".to_owned() });
    }
    publish(&content, &place).map_err(failed)?;
    sealed::attest(&place).map_err(|error| failed(io("write next to", &place, error.source)))?;
    Ok(place)
}

/// Whether the package in a folder is unchanged since it was unpacked. False if an older version unpacked it.
fn is_intact(place: &Path) -> bool {
    place.is_dir() && sealed::is_intact(place) == Some(true)
}

/// Fails if a package in the cache was modified, when it cannot be fetched again. A missing package is reported where
/// it is used.
pub fn check_package(package: &PackageSpec, cache: &Cache) -> Result<(), PackageError> {
    let place = cache.package_dir(&package.sha256);
    if place.is_dir() && !is_intact(&place) {
        return Err(PackageError::Changed { what: package.describe(), place });
    }
    Ok(())
}

/// Line before the download: name, length, licence and destination.
fn announcement(package: &PackageSpec, folder: &Path) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a length is shown with one digit")]
    let length = package.bytes.map_or("unknown size".to_owned(), |bytes| format!("{:.1} MB", bytes as f64 / 1e6));
    let license = package.license.as_deref().unwrap_or("not named in the manifest");
    format!("fetching {} ({length}, licence: {license}) into {}", package.describe(), folder.display())
}

fn download_wheel(package: &PackageSpec, staging: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, PackageError> {
    let failed = |source: FetchError| PackageError::Fetch { what: package.describe(), source };
    let requirements = staging.join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", package.published, package.version, package.sha256);
    fs::write(&requirements, line).map_err(|source| failed(io("write", &requirements, source)))?;
    let python = python();
    let mut command = pip_with_hashes(&python, "download", &requirements, staging);
    let mut child = command
        .arg("--dest")
        .arg(staging)
        .spawn()
        .map_err(|e| failed(FetchError::NoPython { program: python.clone(), reason: e.to_string() }))?;
    let stderr = watch(&mut child, say);
    let status = child.wait().map_err(|source| failed(io("wait for pip in", staging, source)))?;
    if !status.success() {
        return Err(failed(classify(&stderr, &python, staging, NEEDED_MB)));
    }
    files_in(staging)
        .find(|file| file.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| PackageError::Absent { what: package.describe(), program: "pip", said: stderr })
}

/// Makes cargo download a crate into its own cache; returns the archive's path.
fn download_crate(package: &PackageSpec, staging: &Path) -> Result<PathBuf, PackageError> {
    let what = package.describe();
    let cargo = Programs::of_this_machine().find("cargo").ok_or_else(|| PackageError::NoCargo(what.clone()))?;
    let named = format!("{}@{}", package.published, package.version);
    let output = Command::new(cargo)
        .args(["info", "--quiet", "--color=never", &named])
        .env("PATH", search_path())
        .current_dir(staging)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| PackageError::Fetch { what: what.clone(), source: io("run cargo in", staging, source) })?;
    let home = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"))).unwrap_or_default();
    let name = format!("{}-{}.crate", package.published, package.version);
    let archives: Vec<PathBuf> =
        files_in(&home.join("registry/cache")).map(|index| index.join(&name)).filter(|path| path.is_file()).collect();
    // cargo has a folder per registry. A package of this name from another registry has another hash.
    let is_it = |path: &&PathBuf| {
        regular::read_data(path, regular::LONGEST_DATA).is_ok_and(|bytes| sha256_hex(&bytes) == package.sha256)
    };
    let found = if output.status.success() { archives.iter().find(is_it).or(archives.first()) } else { None };
    found.cloned().ok_or_else(|| PackageError::Absent { what, program: "cargo", said: said(&output) })
}

/// Checks an archive's hash and length against the manifest.
fn check(package: &PackageSpec, content: &[u8]) -> Result<(), PackageError> {
    let (what, found) = (package.describe(), sha256_hex(content));
    if found != package.sha256 {
        return Err(PackageError::Hash { what, found, expected: package.sha256.clone() });
    }
    match package.bytes {
        Some(expected) if expected != content.len() as u64 => {
            Err(PackageError::Length { what, found: content.len() as u64, expected })
        }
        _ => Ok(()),
    }
}

/// Extracts an archive of at most `most` bytes into a folder.
fn unpack(package: &PackageSpec, archive: &Path, folder: &Path, most: u64) -> Result<(), PackageError> {
    let refused = |reason: String| PackageError::Archive { what: package.describe(), reason };
    let output = Command::new(python())
        .args(["-I", "-c", UNPACK])
        .args([archive, folder])
        .arg(most.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| refused(format!("cannot run {}: {error}", python())))?;
    if output.status.success() { Ok(()) } else { Err(refused(said(&output).trim().to_owned())) }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Writes an archive with these entries, each a name and `file`, `link` or `device`.
    const PACK: &str = "\
import io, stat, sys, tarfile, zipfile
archive, entries = sys.argv[1], [entry.split('=') for entry in sys.argv[2:]]
content = b'0' * 5000
if archive.endswith('.whl'):
    with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as out:
        for name, kind in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK if kind == 'link' else stat.S_IFREG) << 16
            out.writestr(info, content)
else:
    with tarfile.open(archive, 'w:gz') as out:
        for name, kind in entries:
            info = tarfile.TarInfo(name)
            info.type = {'file': tarfile.REGTYPE, 'link': tarfile.SYMTYPE, 'device': tarfile.CHRTYPE}[kind]
            info.linkname = '/etc/passwd' if kind == 'link' else ''
            info.size = len(content) if kind == 'file' else 0
            out.addfile(info, io.BytesIO(content) if kind == 'file' else None)
";

    fn package(registry: Registry) -> PackageSpec {
        PackageSpec {
            name: "p".to_owned(),
            registry,
            published: "published".to_owned(),
            version: "1.0.0".to_owned(),
            sha256: "0".repeat(64),
            license: None,
            bytes: None,
        }
    }

    /// Unpacks an archive with these entries; returns the files in the parent of its target folder.
    fn unpacked(archive: &str, entries: &[&str]) -> (Result<(), String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let (archive, folder) = (dir.path().join(archive), dir.path().join("in/here"));
        fs::create_dir_all(&folder).unwrap();
        let packed = Command::new(python()).args(["-c", PACK]).arg(&archive).args(entries).status().unwrap();
        assert!(packed.success());
        let result = unpack(&package(Registry::Crate), &archive, &folder, 12_000).map_err(|error| error.to_string());
        let inside = dir.path().join("in");
        let above = files_in(&inside).map(|path| path.file_name().unwrap().display().to_string()).collect();
        (result, above)
    }

    #[test]
    fn an_archive_is_unpacked_only_if_it_has_nothing_but_files_within_the_limits() {
        for name in ["p.crate", "p.whl"] {
            let (result, above) = unpacked(name, &["p/a.cu=file", "p/src/b.cuh=file"]);
            assert_eq!((result, above), (Ok(()), vec!["here".to_owned()]), "{name}");
            let refused = |entries: &[&str], why: &str| {
                let (result, above) = unpacked(name, entries);
                let message = result.unwrap_err();
                assert!(message.starts_with("crate published 1.0.0 cannot be unpacked: "), "{message}");
                assert!(message.contains(why), "{name} {entries:?}: {message}");
                assert_eq!(above, ["here"], "{name} {entries:?}");
            };
            refused(&["../out.cu=file"], "'../out.cu' leads out of the package");
            refused(&["p/../../out.cu=file"], "leads out of the package");
            refused(&["/out.cu=file"], "leads out of the package");
            refused(&["p/l.cu=link"], "'p/l.cu' is a link or a device, not a file");
            refused(&["p/a=file", "p/b=file", "p/c=file"], "it unpacks to more than is allowed");
            refused(&["p/a=file", "p/a=file"], "File exists");
        }
        let (result, _) = unpacked("p.crate", &["p/d=device"]);
        assert!(result.unwrap_err().contains("is a link or a device"));
    }

    #[test]
    fn an_archive_with_another_hash_or_length_is_refused() {
        // SHA-256 of `abc` in FIPS 180-4, appendix B.1.
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let named = |sha256: &str, bytes| {
            let package = PackageSpec { sha256: sha256.to_owned(), bytes, ..package(Registry::Crate) };
            check(&package, b"abc").map_err(|error| error.to_string())
        };
        assert_eq!(named(right, None), Ok(()));
        assert_eq!(named(right, Some(3)), Ok(()));
        let length = named(right, Some(4)).unwrap_err();
        assert!(length.contains("has 3 bytes, but the manifest says 4: nothing was unpacked"), "{length}");
        let hash = named(&"0".repeat(64), Some(3)).unwrap_err();
        assert!(hash.contains(&format!("has the SHA-256 {right}, but the manifest says 000")), "{hash}");
    }
}
