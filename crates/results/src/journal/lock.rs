//! Allows only one process at a time to write to a folder.
//!
//! Uses a lock of the operating system on a separate file, since the journal is renamed. The lock ends with the
//! process, even after a crash, so a dead run never blocks the next one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::SystemTime;

use super::JournalError;
use runner_files::atomic;
use runner_types::calendar_time;

/// Maximum length, in bytes, of the line that names the holder of a lock.
const LONGEST_HOLDER: u64 = 256;

/// Name of the lock file in a report folder. The file remains after unlocking and should not be committed to git.
pub const LOCK_FILE: &str = "journal.lock";

/// The right to write to a report folder, until dropped.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
}

impl Drop for FolderLock {
    /// Unlocks the file. Closing it is not enough: a child process that another thread is starting keeps it open until
    /// its program runs.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl FolderLock {
    /// Locks the folder; the error says which process holds the lock. Removes unfinished files of killed processes.
    pub fn take(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false);
        let mut file = atomic::open_itself(&path, &mut options).map_err(JournalError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.take(LONGEST_HOLDER).read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another run".to_owned(),
                    known => known.to_owned(),
                };
                return Err(JournalError::Held { dir: dir.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(JournalError::io("lock", &path)(source)),
        }
        let holder = format!(
            "process {}, which began at {}\n",
            std::process::id(),
            humantime::format_rfc3339_seconds(calendar_time(SystemTime::now()))
        );
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(JournalError::io("write", &path))?;
        tracing::info!("locked {}", path.display());
        atomic::remove_unfinished(dir);
        Ok(Self { file })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// A process that is being started also has the file open.
    #[test]
    fn a_lock_ends_when_it_is_dropped_even_if_its_file_is_open_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(dir.path()).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        assert!(FolderLock::take(dir.path()).is_err());
        drop(lock);
        FolderLock::take(dir.path()).unwrap();
        drop(inherited);
    }
}
