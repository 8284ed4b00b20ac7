//! Atomic file writes: a file is replaced completely or not at all.
//!
//! Everything that must survive a crash is written through this module. It chooses no file names and keeps no old
//! versions.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use tempfile::{NamedTempFile, TempPath};

use crate::cache_folder::cache_folder;

/// Prefix of temporary files. The folder's owner may delete files with this prefix, left by a killed process.
pub const UNFINISHED: &str = ".writing-";

/// Why a file was not replaced. The old file, if any, is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct WriteError {
    /// The step that failed, e.g. `write`.
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// Replaces the file at `path`: writes a new file, syncs it and renames it. Readers see the old content or the new one,
/// even after a system crash. The new file has no name until it is complete, so a killed process leaves nothing behind.
///
/// Replaces a link, a pipe or a device rather than writing to it. Creates the folder.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    tracing::debug!(bytes = bytes.len(), "write {}", path.display());
    replace(path, &|file| file.write_all(bytes))
}

/// Like [`write`], but in pieces, so that a long file need not be in memory. If the first attempt fails, calls `write`
/// again from the start.
pub fn write_pieces(path: &Path, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    tracing::debug!("write {}", path.display());
    replace(path, &|file| {
        let mut buffered = io::BufWriter::new(file);
        write(&mut buffered)?;
        buffered.flush()
    })
}

fn replace(path: &Path, write: &dyn Fn(&mut &File) -> io::Result<()>) -> Result<(), WriteError> {
    if std::fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        return Err(failed("write", path)(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
    }
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(dir)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED).permissions(Permissions::from_mode(0o666));
    // Some file systems do not support unnamed files. Any other error occurs again here.
    let file = written_without_name(write, dir, &builder).or_else(|_| {
        let file = builder.tempfile_in(dir).map_err(failed("write beside", path))?;
        // Write to the inner file, because the temporary file would append its generated name to error messages.
        fill(file.as_file(), write).map_err(failed("write", path))?;
        Ok(file.into_temp_path())
    })?;
    file.persist(path).map_err(|e| failed("replace", path)(e.error))?;
    // The rename is durable once the folder is synced. Errors are ignored, since not every file system supports this.
    if let Ok(folder) = File::open(dir) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes to an unnamed file and names it once it is complete.
fn written_without_name(
    write: &dyn Fn(&mut &File) -> io::Result<()>,
    dir: &Path,
    builder: &tempfile::Builder<'_, '_>,
) -> io::Result<TempPath> {
    let file = OpenOptions::new().write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(dir)?;
    fill(&file, write)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| Ok(rustix::fs::linkat(CWD, &unnamed, CWD, name, AtFlags::SYMLINK_FOLLOW)?);
    builder.make_in(dir, link).map(NamedTempFile::into_temp_path)
}

fn fill(mut file: &File, write: &dyn Fn(&mut &File) -> io::Result<()>) -> io::Result<()> {
    write(&mut file)?;
    file.sync_all()
}

/// Writes to a file that the user named. Terminals, pipes and `/dev/null` are written to; any other file is replaced.
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => {
            Err(failed("write", path)(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")))
        }
        Ok(there) if !there.is_file() => std::fs::write(path, bytes).map_err(failed("write", path)),
        _ => write(path, bytes),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError + use<> {
    let path = path.to_owned();
    move |source| WriteError { action, path, source }
}

/// Removes unfinished files left by a killed process. Only the folder's owner may call this.
pub fn remove_unfinished(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
            // A leftover file that cannot be removed is harmless.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Creates a folder and those above it. Those of the user's cache are for this user only, whatever the umask: a cache
/// that others can write to is refused.
pub fn create_folder(dir: &Path) -> Result<(), WriteError> {
    let is_cached = cache_folder().is_ok_and(|cache| dir.starts_with(cache));
    let mode = if is_cached { 0o700 } else { 0o777 };
    DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(|source| {
        // The system's error message does not name the file that is in the way.
        let file = dir.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir());
        let in_the_way =
            |file: &Path| io::Error::new(io::ErrorKind::NotADirectory, format!("{} is a file", file.display()));
        WriteError { action: "create the folder", path: dir.to_owned(), source: file.map_or(source, in_the_way) }
    })
}

/// Opens a file, but refuses symbolic links, pipes and devices. Report folders are part of a checkout, and a link in
/// one must not redirect writes.
pub fn open_itself(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link; remove it"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a device, not a file; remove it"))
    }
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error, like a full disk. By default, the kernel kills
/// the process silently. Child processes inherit this.
pub fn report_full_files() {
    // SAFETY: an ignored signal runs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{UNFINISHED, remove_unfinished, write, write_named};

    #[test]
    fn the_file_is_replaced_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/report.md");
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        let file = dir.path().join("file");
        for folder in [file.clone(), file.join("deep/er")] {
            let error = write(&folder.join("report.md"), b"x").unwrap_err().to_string();
            let expected = format!("cannot create the folder {}: {} is a file", folder.display(), file.display());
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_folder_is_not_taken_for_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let error = write(dir.path(), b"x").unwrap_err().to_string();
        assert_eq!(error, format!("cannot write {}: it is a folder", dir.path().display()));
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, path) = (dir.path().join("theirs"), dir.path().join("report.md"));
        std::fs::write(&theirs, b"as it was").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        write(&path, b"mine").unwrap();
        assert_eq!(std::fs::read(&theirs).unwrap(), b"as it was");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let device = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        write_named(&device, b"gone").unwrap();
        assert!(device.is_symlink(), "a device that the user names is written to");
        write(&device, b"kept").unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), b"kept");
    }

    /// Watches the folder during a long write for a file name that appears too early.
    #[test]
    fn a_file_has_no_name_until_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        if OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(dir.path()).is_err() {
            return; // Every file of this file system has a name.
        }
        let bytes = vec![b'x'; 32 << 20];
        let is_written = AtomicBool::new(false);
        let lengths = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut lengths = Vec::new();
                while !is_written.load(Ordering::Relaxed) {
                    let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
                    lengths.extend(entries.filter_map(|entry| Some(entry.metadata().ok()?.len())));
                }
                lengths
            });
            write(&dir.path().join("history.html"), &bytes).unwrap();
            is_written.store(true, Ordering::Relaxed);
            watcher.join().unwrap()
        });
        assert!(lengths.iter().all(|length| *length == bytes.len() as u64), "{lengths:?}");
    }

    #[test]
    fn unfinished_files_and_no_others_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [&format!("{UNFINISHED}abc"), "report.md", ".writing"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        remove_unfinished(dir.path());
        let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".writing", "report.md"]);
    }
}
