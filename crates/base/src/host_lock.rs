//! The lock by which the workers of one host keep it quiet while one of them times a function of the host.
//!
//! A worker shares the lock with others while it works on many cores: it makes inputs, computes references, compares.
//! One that times a function of the host holds the lock alone. Work on a device needs no lock. One that waits to hold the
//! lock alone closes a gate first: none shares the lock any more, and those that do give way between two steps, so that
//! it does not wait until all of them happen to be done at once. Lock and gate are locks of the operating system on files
//! in memory, so a worker that dies gives them back, and nothing is left behind.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

/// How often a process that waits for the lock looks again.
pub const POLL: Duration = Duration::from_millis(10);

/// The lock with which the workers of one host keep it quiet.
#[derive(Debug, Clone, Default)]
pub struct HostLock {
    /// The files of the lock and of its gate; `None` where no other worker uses the host.
    paths: Option<[PathBuf; 2]>,
}

/// The lock or its gate that one holds, until it is dropped.
#[derive(Debug)]
pub struct Share {
    _file: Option<File>,
}

impl HostLock {
    /// Returns a new lock, which other processes find by its paths while the files are open.
    ///
    /// # Errors
    ///
    /// If the operating system makes no file in memory.
    pub fn create() -> io::Result<(Self, [File; 2])> {
        let create = |name| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let files = [create("runner-host-lock")?, create("runner-host-gate")?];
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok((Self::from_paths([path(&files[0]), path(&files[1])]), files))
    }

    /// Returns the lock that another process has made.
    pub const fn from_paths(paths: [PathBuf; 2]) -> Self {
        Self { paths: Some(paths) }
    }

    /// Returns where other processes find it.
    pub fn paths(&self) -> &[PathBuf] {
        self.paths.as_ref().map_or(&[], <[PathBuf; 2]>::as_slice)
    }

    /// Returns the lock together with other workers; `None` while one has it alone or waits for that.
    pub fn try_share(&self) -> Option<Share> {
        let _open = self.try_with(1, File::try_lock_shared)?;
        self.try_with(0, File::try_lock_shared)
    }

    /// Returns the lock together with other workers for a short time, also past the gate; `None` while one has it alone.
    pub fn try_share_briefly(&self) -> Option<Share> {
        self.try_with(0, File::try_lock_shared)
    }

    /// Closes the gate before the lock is taken alone; `None` while another worker has closed it.
    pub fn try_close(&self) -> Option<Share> {
        self.try_with(1, File::try_lock)
    }

    /// Returns the lock alone; `None` while another worker has it.
    pub fn try_alone(&self) -> Option<Share> {
        self.try_with(0, File::try_lock)
    }

    /// Whether a worker waits to have the lock alone, or has it.
    pub fn is_wanted_alone(&self) -> bool {
        self.try_with(1, File::try_lock_shared).is_none()
    }

    fn try_with(&self, place: usize, lock: fn(&File) -> Result<(), TryLockError>) -> Option<Share> {
        // The process that made it has ended, and ends all workers: there is no one to wait for.
        let Some(file) = self.paths.as_ref().and_then(|paths| File::open(&paths[place]).ok()) else {
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
        let (lock, _files) = HostLock::create().unwrap();
        let other = lock.clone();
        let shares = (lock.try_share().unwrap(), other.try_share().unwrap());
        assert!(lock.try_alone().is_none());
        drop(shares);
        let alone = other.try_alone().unwrap();
        assert!(lock.try_share().is_none() && lock.try_alone().is_none());
        drop(alone);
        assert!(lock.try_share().is_some());
    }

    #[test]
    fn none_shares_the_lock_while_one_waits_to_have_it_alone() {
        let (lock, _files) = HostLock::create().unwrap();
        let share = lock.try_share().unwrap();
        assert!(!lock.is_wanted_alone());
        let closed = lock.try_close().unwrap();
        assert!(lock.is_wanted_alone() && lock.try_share().is_none() && lock.try_close().is_none());
        drop(share);
        let brief = lock.try_share_briefly().unwrap();
        assert!(lock.try_alone().is_none(), "the share is not given back yet");
        drop(brief);
        let alone = lock.try_alone().unwrap();
        drop((closed, alone));
        assert!(!lock.is_wanted_alone() && lock.try_share().is_some());
    }

    #[test]
    fn without_other_workers_there_is_nothing_to_wait_for() {
        let (lock, files) = HostLock::create().unwrap();
        let _alone = lock.try_alone();
        drop(files);
        for lock in [HostLock::default(), lock] {
            let _held = lock.try_alone().unwrap();
            assert!(lock.try_share().is_some());
        }
    }
}
