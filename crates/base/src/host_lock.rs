//! The lock by which the workers of one host keep it quiet while one of them times a function of the host.
//!
//! A worker shares the lock with others while it works on many cores: it makes inputs, computes references, compares.
//! One that times a function of the host holds the lock alone. Work on a device needs no lock. The lock is one of the
//! operating system's on a file in memory, so a worker that dies gives it back, and nothing is left behind.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

/// How often a process that waits for the lock looks again.
pub const POLL: Duration = Duration::from_millis(10);

/// The lock with which the workers of one host keep it quiet.
#[derive(Debug, Clone, Default)]
pub struct HostLock {
    /// `None` where no other worker uses the host.
    path: Option<PathBuf>,
}

/// The lock that one holds, until it is dropped.
#[derive(Debug)]
pub struct Share {
    _file: Option<File>,
}

impl HostLock {
    /// Returns a new lock, which other processes find by its path while the file is open.
    ///
    /// # Errors
    ///
    /// If the operating system makes no file in memory.
    pub fn create() -> io::Result<(Self, File)> {
        let file = File::from(memfd_create("runner-host-lock", MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok((Self::at(path.into()), file))
    }

    /// Returns the lock that another process has made.
    pub const fn at(path: PathBuf) -> Self {
        Self { path: Some(path) }
    }

    /// Returns where other processes find it.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the lock together with other workers; `None` while one has it alone.
    pub fn try_share(&self) -> Option<Share> {
        self.try_with(File::try_lock_shared)
    }

    /// Returns the lock alone; `None` while another worker has it.
    pub fn try_alone(&self) -> Option<Share> {
        self.try_with(File::try_lock)
    }

    fn try_with(&self, lock: fn(&File) -> Result<(), TryLockError>) -> Option<Share> {
        // The process that made it has ended, and ends all workers: there is no one to wait for.
        let Some(file) = self.path.as_ref().and_then(|path| File::open(path).ok()) else {
            return Some(Share { _file: None });
        };
        match lock(&file) {
            Err(TryLockError::WouldBlock) => None,
            Ok(()) | Err(TryLockError::Error(_)) => Some(Share { _file: Some(file) }),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn several_share_the_lock_and_one_has_it_alone() {
        let (lock, _file) = HostLock::create().unwrap();
        let other = HostLock::at(lock.path().unwrap().to_owned());
        let shares = (lock.try_share().unwrap(), other.try_share().unwrap());
        assert!(lock.try_alone().is_none());
        drop(shares);
        let alone = other.try_alone().unwrap();
        assert!(lock.try_share().is_none() && lock.try_alone().is_none());
        drop(alone);
        assert!(lock.try_share().is_some());
    }

    #[test]
    fn without_other_workers_there_is_nothing_to_wait_for() {
        let (lock, file) = HostLock::create().unwrap();
        let _alone = lock.try_alone();
        drop(file);
        for lock in [HostLock::default(), lock] {
            let _held = lock.try_alone().unwrap();
            assert!(lock.try_share().is_some());
        }
    }
}
