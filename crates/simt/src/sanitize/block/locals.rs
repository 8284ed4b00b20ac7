//! Tracks which words of local memory each thread has written.
//!
//! Lanes usually access the same offset, so each word has one bit per lane. A load is a fault only if none of its words
//! was ever written, because compilers copy structures including their padding.

use crate::sanitize::block::BlockShadow;

/// For each four-byte word, the lanes that have written it.
#[derive(Debug, Default, Clone)]
pub struct Locals(Vec<u32>);

impl Locals {
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

fn words(offset: u64, bytes: u32) -> std::ops::Range<usize> {
    (offset / 4) as usize..(offset + u64::from(bytes)).div_ceil(4) as usize
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

impl BlockShadow {
    fn local(&mut self, warp: u32) -> &mut Locals {
        let at = (warp & 31) as usize;
        if self.locals.len() <= at {
            self.locals.resize(at + 1, Locals::default());
        }
        &mut self.locals[at]
    }

    fn set(&mut self, warp: u32, range: std::ops::Range<usize>, mask: u32, written: bool) {
        let Locals(known) = self.local(warp);
        if known.len() < range.end {
            known.resize(range.end, 0);
        }
        for word in &mut known[range] {
            *word = if written { *word | mask } else { *word & !mask };
        }
    }

    /// Records that lanes store to local memory.
    pub fn local_store(&mut self, warp: u32, offsets: &[u64; 32], mask: u32, bytes: u32, together: bool) {
        if together {
            let first = offsets[(mask.trailing_zeros() & 31) as usize];
            return self.set(warp, words(first, bytes), mask, true);
        }
        lanes(mask).for_each(|lane| self.set(warp, words(offsets[lane], bytes), 1 << lane, true));
    }

    /// Records a write to a lane's local memory by something other than the lane's own program.
    pub fn local_written(&mut self, warp: u32, lane: usize, offset: u64, bytes: u32) {
        self.set(warp, words(offset, bytes), 1 << (lane & 31), true);
    }

    /// Handles loads from local memory. Returns the lanes whose loads read no word that was ever written.
    pub fn local_load(&mut self, warp: u32, offsets: &[u64; 32], mask: u32, bytes: u32, together: bool) -> u32 {
        let Locals(known) = self.local(warp);
        let written = |offset: u64| words(offset, bytes).fold(0, |m, w| m | known.get(w).copied().unwrap_or(0));
        if together {
            return mask & !written(offsets[(mask.trailing_zeros() & 31) as usize]);
        }
        lanes(mask).filter(|&lane| written(offsets[lane]) >> lane & 1 == 0).fold(0, |m, lane| m | 1 << lane)
    }

    /// Returns which bytes of a lane's local memory are in words that it has not written, one bit per byte.
    pub fn local_unwritten(&mut self, warp: u32, lane: usize, offset: u64, bytes: u32) -> u32 {
        let Locals(known) = self.local(warp);
        let written = |at: u64| known.get((at / 4) as usize).is_some_and(|lanes| lanes >> lane & 1 == 1);
        (0..bytes).filter(|&k| !written(offset + u64::from(k))).fold(0, |m, k| m | 1 << k)
    }

    /// Records which bytes of a lane's local memory are undefined, one bit per byte.
    pub fn local_undefined(&mut self, warp: u32, lane: usize, offset: u64, bytes: u32) {
        for at in (0..32).filter(|k| bytes >> k & 1 == 1).map(|k| offset + k) {
            self.set(warp, words(at, 1), 1 << (lane & 31), false);
        }
    }

    /// Records that lanes enter a function whose locals are in `frame`. The arguments, given by offset and size, count
    /// as written.
    pub fn enter_frame(&mut self, warp: u32, mask: u32, frame: std::ops::Range<u32>, args: &[(u32, u32)]) {
        self.set(warp, words(u64::from(frame.start), frame.end - frame.start), mask, false);
        for &(offset, bytes) in args {
            self.set(warp, words(u64::from(frame.start + offset), bytes), mask, true);
        }
    }
}
