//! Shadow state of each 128-byte line: the last accesses to every word, and which bytes were accessed at all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::sanitize::compact::{Compact, Moment, Words};
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{WORDS, bytes_of};

/// Number of lines of global memory that a block tracks in detail. Further lines are only summarised.
pub const MOST: usize = 4096;

/// State of 128 bytes of memory. Masks have one bit per byte.
#[derive(Debug, Clone)]
pub struct Line {
    /// Compact state, used until the line must be expanded for the rest of an epoch.
    pub compact: Compact,
    /// Bytes accessed since the line was begun, by plain stores, by plain loads, and by atomics and strong stores.
    pub stored: u128,
    pub loaded: u128,
    pub changed: u128,
    /// Bytes accessed by strong loads.
    pub polled: u128,
    /// Bytes that were written in any way.
    pub written: u128,
    /// Bytes that an asynchronous copy has yet to write.
    pub pending: u128,
    /// Stored bytes that a reduction combines with memory.
    pub merging: u128,
    /// Bytes that a bulk copy is reading.
    pub being_read: u128,
    /// Words that threads have stored to since the last proxy fence. Bulk copies see these stores only after another
    /// such fence.
    pub unfenced: u32,
    /// Last epoch in which a word was stored, loaded, changed by an atomic or strong store, or loaded by a strong load.
    pub store_epoch: u32,
    pub load_epoch: u32,
    pub change_epoch: u32,
    pub poll_epoch: u32,
    /// Bytes loaded in the epoch `load_epoch`.
    pub load_bytes: u128,
    /// Last load of several words: its threads and words. Repeating the same load adds nothing.
    pub last_load: (Tag, u128),
    pub stores: [Tag; WORDS],
    pub loads: [Tag; WORDS],
    pub changes: [Tag; WORDS],
    pub polls: [Tag; WORDS],
    pub values: [u32; WORDS],
    /// Words that a store has written only in part.
    pub partial: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            compact: Compact::default(),
            stored: 0,
            loaded: 0,
            changed: 0,
            polled: 0,
            written: 0,
            pending: 0,
            merging: 0,
            being_read: 0,
            unfenced: 0,
            store_epoch: 0,
            load_epoch: 0,
            change_epoch: 0,
            poll_epoch: 0,
            load_bytes: 0,
            last_load: (Tag::default(), 0),
            stores: [Tag::default(); WORDS],
            loads: [Tag::default(); WORDS],
            changes: [Tag::default(); WORDS],
            polls: [Tag::default(); WORDS],
            values: [0; WORDS],
            partial: 0,
        }
    }
}

impl Line {
    /// Resets the line. Its storage may have been used for another line of global memory.
    pub fn begin(&mut self) {
        for (of, tags) in [
            (self.store_epoch, &mut self.stores),
            (self.load_epoch, &mut self.loads),
            (self.change_epoch, &mut self.changes),
            (self.poll_epoch, &mut self.polls),
        ] {
            if of != 0 {
                *tags = [Tag::default(); WORDS];
            }
        }
        (self.stored, self.loaded, self.changed, self.polled, self.written) = (0, 0, 0, 0, 0);
        (self.pending, self.merging, self.being_read, self.unfenced, self.partial) = (0, 0, 0, 0, 0);
        (self.store_epoch, self.load_epoch, self.change_epoch, self.poll_epoch) = (0, 0, 0, 0);
        self.last_load.1 = 0;
        self.compact.forget();
    }
}

impl Line {
    /// Records a plain load of whole words and returns true, unless it may conflict or reads bytes that must not be
    /// read. `shared`: the words must have been written.
    #[inline]
    pub fn load_words(&mut self, now: Moment, words: &Words<'_>, shared: bool) -> bool {
        if self.pending != 0 || (shared && bytes_of(words.mask) & !self.written != 0) {
            return false;
        }
        self.compact.load(now, words)
    }

    /// Records a plain store of whole words and returns true, unless it may conflict. `fill` writes the stored values.
    #[inline]
    pub fn store_words(&mut self, now: Moment, words: &Words<'_>, fill: impl FnOnce(&mut [u32; WORDS])) -> bool {
        if self.pending | self.being_read != 0 || !self.compact.store(now, words) {
            return false;
        }
        fill(&mut self.values);
        self.unfenced |= words.mask;
        self.written |= bytes_of(words.mask);
        true
    }

    /// Expands the compact state to the full one, with a tag per word, for the rest of the epoch.
    pub fn expand(&mut self, epoch: u32) {
        if self.compact.epoch == epoch && self.compact.full {
            return;
        }
        if self.compact.epoch == epoch {
            self.settle();
        }
        self.loaded |= bytes_of(std::mem::take(&mut self.compact.loads.ever));
        self.stored |= bytes_of(std::mem::take(&mut self.compact.stores.ever));
        (self.compact.epoch, self.compact.full) = (epoch, true);
    }

    /// Writes the tags for the last epoch in which the line was accessed.
    pub fn settle(&mut self) {
        let compact = &self.compact;
        let times = (compact.time, compact.synced);
        let epoch = compact.epoch;
        if !compact.full && epoch != 0 {
            if compact.loads.now != 0 {
                compact.loads.tag(&mut self.loads, (epoch, compact.warp), times, compact.warps);
                (self.load_epoch, self.load_bytes, self.last_load.1) = (epoch, bytes_of(compact.loads.now), 0);
            }
            if compact.stores.now != 0 {
                compact.stores.tag(&mut self.stores, (epoch, compact.warp), times, 0);
                self.store_epoch = epoch;
            }
        }
    }

    /// Returns the bytes known to be accessed since the start of an epoch, by plain loads, by plain stores and by
    /// atomics.
    pub fn since(&self, epoch: u32) -> (u128, u128, u128) {
        let compact = &self.compact;
        let compacted = compact.epoch >= epoch && !compact.full;
        let of_compact = |words: u32| if compacted { bytes_of(words) } else { 0 };
        let of_tags = |tags: &[Tag; WORDS]| {
            let counts = |tag: &Tag| tag.epoch() >= epoch && !tag.is_volatile();
            let bytes = |(w, tag): (usize, &Tag)| u128::from(if counts(tag) { tag.bytes() } else { 0 }) << (4 * w);
            tags.iter().enumerate().fold(0, |all, it| all | bytes(it))
        };
        (
            of_compact(compact.loads.now) | of_tags(&self.loads),
            of_compact(compact.stores.now) | of_tags(&self.stores),
            of_tags(&self.changes),
        )
    }

    /// Forgets the bytes accessed so far, which a log has recorded.
    pub const fn forget_logged(&mut self) {
        (self.stored, self.loaded, self.changed, self.polled) = (0, 0, 0, 0);
        (self.compact.loads.ever, self.compact.stores.ever, self.last_load.1) = (0, 0, 0);
    }

    /// Returns the bytes accessed since the line was begun, by plain loads and by plain stores.
    pub fn touched(&self) -> (u128, u128) {
        (self.loaded | bytes_of(self.compact.loads.ever), self.stored | bytes_of(self.compact.stores.ever))
    }
}

/// Mixes the bits of a line's number, so that every bit of the result depends on all lower bits.
pub const fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1) >> 8
}

/// Hashes line numbers. Since these are dense, a multiplication suffices.
#[derive(Debug, Default, Clone, Copy)]
pub struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u32(u32::from(b));
        }
    }

    fn write_u32(&mut self, n: u32) {
        let mixed = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

pub type ByLine<T> = HashMap<u32, T, BuildHasherDefault<Scatter>>;
