//! Accesses to a block's shared memory by other blocks of its cluster.
//!
//! They are ordered with the block's own accesses if the block has released its own and acquired the other ones. It
//! releases by a fence, by arriving at the cluster barrier, or by arriving at a remote mbarrier object. It acquires by
//! that barrier, by waiting on one of its own mbarrier objects, or by a polling load. Remote atomics race only with
//! plain stores of the block.

use std::collections::HashMap;

use crate::sanitize::block::BlockShadow;
use crate::sanitize::grid::GridShadow;
use crate::sanitize::lines::Line;
use crate::sanitize::races::{Fault, Hazard};
use crate::sanitize::request::{Op, Space};
use crate::sanitize::tag::Tag;

/// A thread of another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteThread {
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block.
    pub thread: u32,
    pub line: u16,
}

/// The thread of the earlier of two accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// A thread of the block itself.
    Own(Tag),
    RemoteThread(RemoteThread),
}

/// Why an access by another block is a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteConflict {
    pub fault: Fault,
    /// Offset in the block's shared memory.
    pub offset: u64,
    pub before: Op,
    pub who: Earlier,
}

/// Remote accesses to a line since the block's last acquire. Masks have one bit per byte.
#[derive(Debug, Clone, Copy)]
struct RemoteAccess {
    loads: u128,
    stores: u128,
    loader: RemoteThread,
    storer: RemoteThread,
}

/// Accesses of other blocks to the block's shared memory.
#[derive(Debug, Default)]
pub struct RemoteAccesses {
    lines: HashMap<u64, RemoteAccess>,
    last: Option<RemoteThread>,
    /// The block's releases, oldest first: time, and the epoch before which everything is released.
    released: Vec<(u64, u32)>,
    /// All epochs before this one always count as released.
    floor: u32,
    /// Time of the block's last acquire.
    acquired: u64,
    started: bool,
}

/// Maximum number of releases that are kept per block.
const MAX_RELEASES: usize = 64;

impl RemoteAccesses {
    /// Resets the state. The current epoch becomes the first one.
    pub fn begin(&mut self, epoch: u32) {
        self.lines.clear();
        self.released.clear();
        (self.last, self.floor, self.acquired, self.started) = (None, epoch, 0, false);
    }

    /// Restarts the count of epochs; earlier accesses count as released.
    pub fn wrap(&mut self) {
        self.released.clear();
        self.floor = 1;
    }

    fn release(&mut self, time: u64, epoch: u32) {
        if self.released.last().is_some_and(|&(_, released)| released == epoch) {
            return;
        }
        if self.released.len() == MAX_RELEASES {
            self.floor = self.released.remove(0).1;
        }
        self.released.push((time, epoch));
    }

    /// Returns the first epoch that another block has not acquired, given the time of its last acquire.
    fn unknown_to(&self, acquired: u64) -> u32 {
        let known = self.released.iter().rev().find(|(time, _)| *time < acquired);
        known.map_or(self.floor, |&(_, epoch)| epoch)
    }
}

impl BlockShadow {
    /// Checks and records an access by another block to bytes within one line. `acquired` is the time of that block's
    /// last acquire.
    pub fn remote_access(
        &mut self,
        op: Op,
        offset: u64,
        bytes: u32,
        (by, acquired): (RemoteThread, u64),
    ) -> Result<(), RemoteConflict> {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.remote.last = Some(by);
        if let Some(conflict) = self.remote_conflict(op, offset, mask, (by, acquired)) {
            return Err(conflict);
        }
        let Some(line) = self.shared.get_mut((offset / 128) as usize) else { return Ok(()) };
        let fresh = RemoteAccess { loads: 0, stores: 0, loader: by, storer: by };
        let access = self.remote.lines.entry(offset / 128).or_insert(fresh);
        match op {
            Op::Load | Op::Poll => {
                (access.loads, access.loader) = (access.loads | mask, by);
                line.being_read |= mask;
                return Ok(());
            }
            Op::Store => {
                (access.stores, access.storer) = (access.stores | mask, by);
                line.pending |= mask;
            }
            Op::Change => {}
        }
        line.written |= mask;
        line.unfenced |= (0..32).filter(|w| mask >> (4 * w) & 0xf != 0).fold(0, |words, w| words | 1 << w);
        Ok(())
    }

    /// Records a race-free access by another block.
    pub const fn note_remote(&mut self, by: RemoteThread) {
        self.remote.last = Some(by);
    }

    /// Returns the thread that stored to a byte last.
    pub(super) fn who_stored(&self, offset: u64) -> Earlier {
        let access = self.remote.lines.get(&(offset / 128)).filter(|g| g.stores >> (offset % 128) & 1 == 1);
        let word = (offset / 4) as usize % 32;
        let own = || self.shared.get((offset / 128) as usize).map_or(Tag::default(), |line| line.storer(word));
        access.map_or_else(|| Earlier::Own(own()), |access| Earlier::RemoteThread(access.storer))
    }

    pub(super) fn remote_conflict(
        &self,
        op: Op,
        offset: u64,
        mask: u128,
        (by, acquired): (RemoteThread, u64),
    ) -> Option<RemoteConflict> {
        let line = self.shared.get((offset / 128) as usize)?;
        let start = offset / 128 * 128;
        let conflict = |fault: Fault, bad: u128, before: Op, who: &dyn Fn(usize) -> Earlier| {
            let at = (bad & mask).trailing_zeros();
            let word = at as usize / 4 % 32;
            (bad & mask != 0).then(|| RemoteConflict { fault, offset: start + u64::from(at), before, who: who(word) })
        };
        let storer = |word: usize| Earlier::Own(line.storer(word));
        let loader = |word: usize| Earlier::Own(line.loader(word));
        let unwritten = if op == Op::Load { !line.written } else { 0 };
        let (coming, going) = self.bulk_in(offset / 128);
        // Reductions into the same bytes do not conflict with each other.
        let coming = if op == Op::Change { coming & !line.merging } else { coming };
        let (loaded, stored, changed) = line.since(self.remote.unknown_to(acquired));
        let plain = if op == Op::Store { loaded } else { 0 };
        let atomics = if op == Op::Store { changed } else { 0 };
        let read = if op == Op::Load { 0 } else { going };
        let own = conflict(Fault::Unwritten, unwritten, Op::Store, &storer)
            .or_else(|| conflict(Fault::Pending, coming, Op::Store, &storer))
            .or_else(|| conflict(Fault::BeingRead, read, Op::Load, &loader))
            .or_else(|| conflict(Fault::Race, stored, Op::Store, &storer))
            .or_else(|| conflict(Fault::Race, atomics, Op::Change, &storer))
            .or_else(|| conflict(Fault::Race, plain, Op::Load, &loader));
        own.or_else(|| {
            let access = self.remote.lines.get(&(offset / 128))?;
            let apart = |other: RemoteThread, bytes: u128| if other.block == by.block { 0 } else { bytes };
            let loads = if op == Op::Store { apart(access.loader, access.loads) } else { 0 };
            conflict(Fault::Race, apart(access.storer, access.stores), Op::Store, &|_| {
                Earlier::RemoteThread(access.storer)
            })
            .or_else(|| conflict(Fault::Race, loads, Op::Load, &|_| Earlier::RemoteThread(access.loader)))
        })
    }

    /// Returns the remote access that makes a local access a hazard, if any.
    pub fn remote_access_of(&self, hazard: &Hazard) -> Option<(RemoteThread, Op)> {
        if hazard.space != Space::Shared {
            return None;
        }
        let access = self.remote.lines.get(&(hazard.offset / 128))?;
        let bit = 1 << (hazard.offset % 128);
        match hazard.fault {
            Fault::Pending if access.stores & bit != 0 => Some((access.storer, Op::Store)),
            Fault::BeingRead if access.loads & bit != 0 => Some((access.loader, Op::Load)),
            _ => None,
        }
    }

    /// Returns the thread of another block whose access came last; that access may be incomplete.
    pub const fn remote_thread(&self) -> Option<RemoteThread> {
        self.remote.last
    }

    /// Whether all blocks of the cluster are known to have started.
    pub const fn cluster_has_started(&self) -> bool {
        self.remote.started
    }

    /// Time at which the block last acquired from other blocks of its cluster.
    pub const fn cluster_acquired(&self) -> u64 {
        self.remote.acquired
    }

    /// Releases the block's accesses so far to the other blocks of its cluster.
    pub fn release_to_cluster(&mut self, grid: &GridShadow) {
        self.remote.release(grid.tick(), self.epoch);
        self.release_epochs(grid);
    }

    /// Acquires all accesses of the other blocks of its cluster.
    pub fn acquire_from_cluster(&mut self, grid: &GridShadow) {
        self.remote.started = true;
        self.remote.acquired = grid.tick();
        self.acquire_cluster(grid);
    }

    /// Forgets the accesses of other blocks.
    pub(super) fn forget_remote(&mut self) {
        self.remote.last = None;
        for (number, access) in std::mem::take(&mut self.remote.lines) {
            let (coming, going) = self.bulk_in(number);
            if let Some(line) = self.shared.get_mut(number as usize) {
                line.pending = line.pending & !access.stores | coming;
                line.being_read = line.being_read & !access.loads | going;
            }
        }
    }

    /// Marks remote accesses again in lines that were cleared by finished bulk copies.
    pub(super) fn mark_remote(&mut self) {
        for (number, access) in &self.remote.lines {
            if let Some(line) = self.shared.get_mut(*number as usize) {
                line.pending |= access.stores;
                line.being_read |= access.loads;
            }
        }
    }
}

impl Line {
    /// Returns the thread and source line of the last store to a word.
    fn storer(&self, word: usize) -> Tag {
        Tag::of_who(self.compact.stores.who[word])
    }

    fn loader(&self, word: usize) -> Tag {
        Tag::of_who(self.compact.loads.who[word])
    }
}
