//! Asynchronous copies to shared memory. Their bytes are incomplete until the sending thread has waited.
//!
//! A copy counts as a store that its thread performs at the time of the wait, so other threads need a barrier after the
//! wait before they read the bytes.

use crate::sanitize::block::BlockShadow;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::WORDS;

/// One thread's copy that has not been waited for.
#[derive(Debug, Clone, Copy)]
struct Copy {
    lane: u8,
    bytes: u8,
    line: u16,
    /// Number of the group to which it will belong when committed.
    group: u32,
    offset: u32,
}

#[derive(Debug, Default)]
pub struct Copies {
    open: Vec<Copy>,
    /// Number of groups that each lane has committed.
    committed: [u32; 32],
}

impl Copies {
    pub fn clear(&mut self) {
        self.open.clear();
        self.committed = [0; 32];
    }
}

impl BlockShadow {
    fn copies(&mut self, warp: u32) -> &mut Copies {
        let at = (warp & 31) as usize;
        if self.copies.len() <= at {
            self.copies.resize_with(at + 1, Copies::default);
        }
        &mut self.copies[at]
    }

    /// Records that a lane starts a copy to shared memory. The store itself is recorded elsewhere.
    pub fn send(&mut self, warp: u32, lane: usize, offset: u64, bytes: u32, line: u16) {
        let copies = self.copies(warp);
        let group = copies.committed[lane & 31];
        copies.open.push(Copy { lane: lane as u8, bytes: bytes as u8, line, group, offset: offset as u32 });
        self.mark_pending(offset, bytes, true);
    }

    /// Records that lanes commit their current groups of copies.
    pub fn commit(&mut self, warp: u32, mask: u32) {
        let copies = self.copies(warp);
        (0..32).filter(|lane| mask >> lane & 1 == 1).for_each(|lane| copies.committed[lane] += 1);
    }

    /// Records that lanes wait for all copies except those of the last `but` groups. `None` waits for all copies, even
    /// uncommitted ones.
    pub fn wait(&mut self, warp: u32, mask: u32, but: Option<u32>) {
        let copies = self.copies(warp);
        let committed = copies.committed;
        let arrived = |c: &Copy| {
            let done = but.is_none_or(|but| c.group.saturating_add(but) < committed[usize::from(c.lane) & 31]);
            mask >> c.lane & 1 == 1 && done
        };
        let landed: Vec<Copy> = copies.open.iter().copied().filter(arrived).collect();
        copies.open.retain(|c| !arrived(c));
        for copy in landed {
            let tag = self.now(warp, copy.line).of_lane(u64::from(copy.lane));
            self.mark_pending(u64::from(copy.offset), u32::from(copy.bytes), false);
            self.store_again(u64::from(copy.offset), u32::from(copy.bytes), tag);
        }
    }

    fn mark_pending(&mut self, offset: u64, bytes: u32, pending: bool) {
        // Copies are aligned to their size, which divides the line size.
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        if let Some(line) = self.shared.get_mut((offset / 128) as usize) {
            line.pending = if pending { line.pending | mask } else { line.pending & !mask };
        }
    }

    pub(super) fn store_again(&mut self, offset: u64, bytes: u32, tag: Tag) {
        let first = (offset / 4) as usize % WORDS;
        let Some(line) = self.shared.get_mut((offset / 128) as usize) else { return };
        line.expand(tag.epoch());
        line.store_epoch = tag.epoch();
        for tagged in line.stores.iter_mut().skip(first).take(bytes as usize / 4) {
            *tagged = tag;
        }
    }
}
