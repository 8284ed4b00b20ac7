//! Reads only regular files, up to a size limit.
//!
//! Reading a pipe or a device could block forever or never end. So files that others may have written are opened
//! through this module.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Maximum size in bytes of text read at once. Sources, manifests and templates are much shorter.
pub const LONGEST_TEXT: u64 = 64 << 20;

/// Maximum size in bytes of data to read, unless the user allows more: records, and files of a revision.
pub const LONGEST_DATA: u64 = 1 << 30;

/// Environment variable that raises the maximum data size, in MB.
pub const LONGEST_VARIABLE: &str = "RUNNER_LONGEST_FILE";

/// Flag for opening a pipe without waiting for the other end.
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Opens a file for reading. Fails for a folder, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    let kind = file.metadata()?.file_type();
    let what = match kind {
        kind if kind.is_file() => return Ok(file),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

/// Which version of a file a path names. It differs after every write and after every replacement, even if the content
/// is the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last change of the inode.
    changed: (i64, i64),
}

impl Version {
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        let changed = (found.ctime(), found.ctime_nsec());
        Ok(Self { device: found.dev(), inode: found.ino(), size: found.size(), changed })
    }
}

/// Reads a file of at most [`LONGEST_TEXT`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LONGEST_TEXT)
}

/// Reads a file of at most `most` bytes. Fails if it is longer.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(most) as usize + 1);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it has more than {} MB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Maximum data size in bytes: what the user allows, or else `most`. Fails if [`LONGEST_VARIABLE`] is not a number.
pub fn longest(most: u64) -> io::Result<u64> {
    let Some(allowed) = std::env::var_os(LONGEST_VARIABLE).filter(|allowed| !allowed.is_empty()) else {
        return Ok(most);
    };
    let megabytes = allowed.to_str().and_then(|text| text.parse::<u64>().ok());
    let megabytes = megabytes.ok_or_else(|| {
        let message = format!("{LONGEST_VARIABLE} is `{}`, not a number of megabytes", allowed.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    Ok(megabytes.saturating_mul(1 << 20))
}

/// Opens a file of at most `most` bytes, unless the user allows more.
pub fn open_data(path: &Path, most: u64) -> io::Result<File> {
    let (file, most) = (open(path)?, longest(most)?);
    if file.metadata()?.len() > most {
        let message = format!("it has more than {} MB; raise the limit with {LONGEST_VARIABLE}=MB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(file)
}

/// Reads a file of at most `most` bytes, unless the user allows more.
pub fn read_data(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_data(path, most)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(length as usize);
    // If the file grows meanwhile, read only its original length.
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads UTF-8 text of at most [`LONGEST_TEXT`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8: byte {place} is invalid"))
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let why = |path: &Path| read(path).unwrap_err().to_string();
        assert_eq!(why(&pipe), "it is a pipe, not a file");
        assert_eq!(why(Path::new("/dev/zero")), "it is a device, not a file");
        assert_eq!(why(dir.path()), "it is a folder, not a file");
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_before_it_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        File::create(&path).unwrap().set_len(LONGEST_TEXT + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it has more than 64 MB");
        std::fs::write(&path, "short").unwrap();
        assert_eq!(read(&path).unwrap(), b"short");
    }
}
