//! Compact shadow state of a line in an epoch. It suffices for whole words that any number of warps load and a single
//! warp stores.
//!
//! Nearly all accesses are of this kind, and cost a few operations on masks of words. An access that may conflict, is
//! not plain, or does not cover whole words is rejected. The line is then expanded to the full form, with a tag per
//! word, until the epoch ends.

use crate::sanitize::tag::Tag;
use crate::sanitize::words::{BIT, WORDS, each};

/// Bits of the thread index in the result of [`Tag::who`].
const THREAD: u32 = 0x3ff;
/// Up to this many words, a loop over the set bits is faster than one over the whole line.
const FEW: u32 = 4;

/// When a warp makes an access.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub epoch: u32,
    pub warp: u32,
    /// Time of the warp in this epoch.
    pub time: u32,
    /// Time at which the whole warp last synchronised.
    pub synced: u32,
    /// Time of the last advance for any other reason.
    pub event: u32,
    /// Whether threads have synchronised in this epoch in other ways than as whole warps.
    pub busy: bool,
}

/// The whole words that a request accesses in one line.
#[derive(Debug)]
pub struct Words<'w> {
    /// Accessed words, one bit per word.
    pub mask: u32,
    /// Lane that accesses each word, or one of several.
    pub lanes: &'w [u8; WORDS],
    /// Words that more than one lane accesses.
    pub doubled: u32,
    /// Lane zero of the warp, encoded like [`Tag::who`].
    pub base: u32,
}

impl Words<'_> {
    #[inline]
    const fn who(&self, word: usize) -> u32 {
        self.base + self.lanes[word] as u32
    }
}

/// Accesses of one kind, loads or stores.
#[derive(Debug, Clone, Default)]
pub struct Track {
    /// Words accessed in this epoch.
    pub now: u32,
    /// Words accessed in this epoch by the line's warp since its last synchronisation.
    fresh: u32,
    /// Words accessed in this epoch by more than one lane of the warp.
    lanes: u32,
    /// Words of plain accesses since the line was begun that are not in its byte masks yet.
    pub ever: u32,
    /// Thread that last accessed each word, in any epoch.
    pub who: [u32; WORDS],
}

impl Track {
    /// Whether any of these words was last accessed by a different thread.
    #[inline]
    fn differs(&self, mask: u32, words: &Words<'_>) -> bool {
        let apart = |w: usize| (self.who[w] ^ words.who(w)) & THREAD;
        if mask.count_ones() <= FEW {
            return each(mask).any(|w| apart(w) != 0);
        }
        let all = BIT.iter().enumerate();
        all.fold(0, |found, (w, bit)| found | if mask & bit == 0 { 0 } else { apart(w) }) != 0
    }

    /// Returns the words that were last accessed by a different thread.
    fn different(&self, mask: u32, words: &Words<'_>) -> u32 {
        each(mask).filter(|&w| (self.who[w] ^ words.who(w)) & THREAD != 0).fold(0, |m, w| m | BIT[w])
    }

    #[inline]
    fn name(&mut self, mask: u32, words: &Words<'_>) {
        if mask.count_ones() <= FEW {
            return each(mask).for_each(|w| self.who[w] = words.who(w));
        }
        // Computing the tags separately from the stores lets both loops vectorise.
        let new: [u32; WORDS] = std::array::from_fn(|w| words.who(w));
        if mask == u32::MAX {
            self.who = new;
            return;
        }
        for ((who, new), bit) in self.who.iter_mut().zip(new).zip(BIT) {
            *who = if mask & bit == 0 { *who } else { new };
        }
    }

    /// Writes the tags of the words accessed in this epoch. The line's warp accessed words that are not fresh before
    /// its last synchronisation; other warps may have accessed them at any time.
    pub fn tag(&self, tags: &mut [Tag; WORDS], (epoch, warp): (u32, u32), (time, synced): (u32, u32), warps: u32) {
        for w in each(self.now) {
            let time = match self.fresh & BIT[w] {
                0 if (self.who[w] & THREAD) / 32 != warp => Tag::UNKNOWN,
                0 => synced.saturating_sub(1),
                _ => time,
            };
            let tag = Tag::at(self.who[w], epoch, time);
            let tag = if self.lanes & BIT[w] == 0 { tag } else { tag.by_lanes() };
            tags[w] = if warps & BIT[w] == 0 { tag } else { tag.by_warps() };
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Compact {
    pub epoch: u32,
    /// The first warp that accessed the line in this epoch. No other warp has stored to it.
    pub warp: u32,
    /// Time of that warp's last access, and the time at which the whole warp had last synchronised by then.
    pub time: u32,
    pub synced: u32,
    /// Whether the line is expanded. Its tags are then valid for this epoch.
    pub full: bool,
    pub loads: Track,
    pub stores: Track,
    /// Words that exactly one warp, other than the line's, has loaded in this epoch.
    others: u32,
    /// Words that more than one warp has loaded in this epoch.
    pub warps: u32,
}

impl Compact {
    pub const fn forget(&mut self) {
        (self.epoch, self.loads.ever, self.stores.ever) = (0, 0, 0);
    }

    /// Returns whether the access is by the line's warp; `None` if this form cannot record an access now.
    #[inline]
    fn enter(&mut self, now: Moment) -> Option<bool> {
        if self.epoch != now.epoch {
            (self.epoch, self.warp, self.full) = (now.epoch, now.warp, false);
            (self.time, self.synced) = (now.time, now.synced);
            (self.others, self.warps) = (0, 0);
            for track in [&mut self.loads, &mut self.stores] {
                (track.now, track.fresh, track.lanes) = (0, 0, 0);
            }
            return Some(true);
        }
        if self.full {
            return None;
        }
        if self.warp == now.warp && self.time != now.time {
            // Some lanes released or synchronised in between. Only the full form can record both moments.
            if now.event > self.time {
                return None;
            }
            (self.time, self.synced) = (now.time, now.synced);
            for track in [&mut self.loads, &mut self.stores] {
                (track.fresh, track.lanes) = (0, 0);
            }
        }
        Some(self.warp == now.warp)
    }

    /// Records a load and returns true, unless it may conflict.
    #[inline]
    pub fn load(&mut self, now: Moment, words: &Words<'_>) -> bool {
        let mask = words.mask;
        match self.enter(now) {
            None => return false,
            Some(true) => {}
            Some(false) if self.stores.now & mask != 0 || now.busy => return false,
            Some(false) => {
                self.share(now, words);
                return true;
            }
        }
        let common = self.stores.fresh & mask;
        if common != 0 && (common & words.doubled != 0 || self.stores.differs(common, words)) {
            return false;
        }
        let again = self.loads.fresh & mask;
        if again != 0 && self.loads.differs(again, words) {
            self.loads.lanes |= self.loads.different(again, words);
        }
        self.warps |= self.others & mask;
        self.others &= !mask;
        self.loads.name(mask, words);
        self.loads.now |= mask;
        self.loads.fresh |= mask;
        self.loads.lanes |= words.doubled;
        self.loads.ever |= mask;
        true
    }

    /// Records a load by a warp other than the line's.
    fn share(&mut self, now: Moment, words: &Words<'_>) {
        let new = words.mask & !self.loads.now;
        let again = words.mask & self.loads.now & !self.warps;
        let apart = |w: &usize| (self.loads.who[*w] & THREAD) / 32 != now.warp;
        self.warps |= each(again).filter(apart).fold(0, |m, w| m | BIT[w]);
        self.others &= !self.warps;
        self.loads.name(new, words);
        self.others |= new;
        self.loads.now |= new;
        self.loads.ever |= new;
    }

    /// Records a store by one lane per word and returns true, unless it may conflict.
    #[inline]
    pub fn store(&mut self, now: Moment, words: &Words<'_>) -> bool {
        let mask = words.mask;
        if self.enter(now) != Some(true) || mask & (self.others | self.warps) != 0 {
            return false;
        }
        let (loaded, stored) = (self.loads.fresh & mask, self.stores.fresh & mask);
        if loaded != 0 && (self.loads.lanes & mask != 0 || self.loads.differs(loaded, words)) {
            return false;
        }
        if stored != 0 && self.stores.differs(stored, words) {
            return false;
        }
        self.stores.name(mask, words);
        self.stores.now |= mask;
        self.stores.fresh |= mask;
        self.stores.ever |= mask;
        true
    }
}
