//! The part of a request that is in one line, and how the line records it.

use crate::sanitize::lines::Line;
use crate::sanitize::order::Order;
use crate::sanitize::races::{Fault, Hazard, Ignored, Touch, check, spread};
use crate::sanitize::request::{Op, Space};
use crate::sanitize::tag::Tag;
use crate::sanitize::words::WORDS;

/// Consecutive words of one line. Word `k` belongs to the thread `(done + k) >> shift` after the thread of `base`.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub op: Op,
    pub from: usize,
    pub count: usize,
    /// Number of the request's words before this part.
    pub done: usize,
    pub shift: u32,
    pub bytes: u128,
    pub base: Tag,
    /// Time at which the whole warp last synchronised.
    pub synced: u32,
}

impl Part {
    /// Mask of accessed words, one bit per word.
    pub const fn words(&self) -> u32 {
        (u32::MAX >> (WORDS - self.count)) << self.from
    }

    #[inline]
    pub const fn tag(&self, k: usize) -> Tag {
        self.base.of_lane(((self.done + k) >> self.shift) as u64)
    }

    /// Returns a hazard that does not depend on earlier threads: a read of bytes that were never written, or an access
    /// to bytes that are being copied.
    #[inline]
    pub fn forbidden(&self, line: &Line, space: Space, number: u64) -> Option<Hazard> {
        let reads = matches!(self.op, Op::Load | Op::Poll);
        let unwritten = if space == Space::Shared && reads { self.bytes & !line.written } else { 0 };
        // Atomics do not conflict with reductions into the same bytes.
        let combines = self.op == Op::Change && !self.base.is_write();
        let minded = if combines { line.pending & !line.merging } else { line.pending };
        let pending = self.bytes & minded;
        let being_read = if reads { 0 } else { self.bytes & line.being_read };
        if unwritten | pending | being_read == 0 {
            return None;
        }
        let (fault, bad) = match (pending, being_read) {
            (0, 0) => (Fault::Unwritten, unwritten),
            (0, _) => (Fault::BeingRead, being_read),
            _ => (Fault::Pending, pending),
        };
        Some(self.refused(line, space, number, (fault, bad)))
    }

    #[cold]
    pub(super) fn refused(&self, line: &Line, space: Space, number: u64, (fault, bad): (Fault, u128)) -> Hazard {
        let word = bad.trailing_zeros() as usize / 4;
        let (offset, tag) = (number * 128 + u64::from(bad.trailing_zeros()), self.tag(word - self.from));
        let earlier = match fault {
            Fault::Pending => line.stores[word],
            Fault::Unfenced => Tag::of_who(line.compact.stores.who[word]),
            _ => Tag::default(),
        };
        Hazard { fault, space, offset, now: self.op, tag, before: Op::Store, earlier }
    }

    /// Whether a word was already accessed in this epoch by a thread other than its own.
    #[inline]
    pub fn may_conflict(&self, line: &Line, epoch: u32) -> bool {
        let conflicts = |of: u32, tags: &[Tag; WORDS]| {
            if of != epoch {
                return false;
            }
            if self.count == 1 {
                return tags[self.from % WORDS].may_conflict(self.tag(0), self.synced);
            }
            let tags = tags.iter().skip(self.from).take(self.count);
            tags.enumerate().fold(false, |conflicts, (k, tag)| conflicts | tag.may_conflict(self.tag(k), self.synced))
        };
        (conflicts(line.store_epoch, &line.stores))
            || ((self.op != Op::Change || self.base.is_volatile()) && conflicts(line.change_epoch, &line.changes))
            || (matches!(self.op, Op::Store | Op::Change) && conflicts(line.load_epoch, &line.loads))
            || ((self.op == Op::Store || self.base.is_volatile()) && conflicts(line.poll_epoch, &line.polls))
    }

    /// Returns the conflict with an earlier access that ends the launch, or else the first lint.
    #[inline]
    pub fn conflict(
        &self,
        line: &Line,
        (space, number): (Space, u64),
        (epoch, ignored): (u32, Ignored),
        order: &Order,
        touch: impl Fn(usize) -> Touch,
    ) -> Option<Hazard> {
        if !self.may_conflict(line, epoch) {
            return None;
        }
        let mut lint = None;
        for k in 0..self.count {
            match check(line, space, number, touch(k), order) {
                Some(hazard) if !ignored.reports(hazard.fault) => {}
                Some(hazard) if hazard.fault.is_lint() => lint = lint.or(Some(hazard)),
                None => {}
                fatal => return fatal,
            }
        }
        lint
    }

    /// Records the accesses. `value` is what is stored to word `k` of the part.
    #[inline]
    pub fn record(&self, line: &mut Line, epoch: u32, value: impl Fn(usize) -> u32) {
        match self.op {
            Op::Load => {
                self.name(&mut line.compact.loads.who);
                if line.load_epoch != epoch {
                    (line.load_epoch, line.load_bytes) = (epoch, 0);
                }
                if line.last_load == (self.base, self.bytes) && line.load_bytes & self.bytes == self.bytes {
                    return;
                }
                if line.load_bytes & self.bytes == 0 && self.base.bytes() == 0xf {
                    self.fill(&mut line.loads);
                } else {
                    self.merge(&mut line.loads);
                }
                line.loaded |= self.bytes;
                line.load_bytes |= self.bytes;
                line.last_load = (self.base, self.bytes);
            }
            Op::Store => {
                line.unfenced |= self.words();
                self.name(&mut line.compact.stores.who);
                self.store(line, value);
                line.stored |= self.bytes;
                line.written |= self.bytes;
                line.store_epoch = epoch;
            }
            Op::Poll => {
                self.merge(&mut line.polls);
                line.polled |= self.bytes;
                line.poll_epoch = epoch;
            }
            Op::Change => {
                line.unfenced |= self.words();
                self.merge(&mut line.changes);
                line.changed |= self.bytes;
                line.written |= self.bytes;
                line.change_epoch = epoch;
            }
        }
    }

    /// Records strong accesses that are plain for other blocks. `block` makes their values differ from those of other
    /// blocks.
    pub fn narrow(&self, line: &mut Line, block: u32) {
        if self.op == Op::Poll {
            self.name(&mut line.compact.loads.who);
            line.loaded |= self.bytes;
            return;
        }
        self.name(&mut line.compact.stores.who);
        line.values.iter_mut().skip(self.from).take(self.count).for_each(|value| *value = !block);
        line.stored |= self.bytes;
    }

    /// Records the thread and the source line for the comparison with other blocks. These are kept longer than the
    /// tags.
    fn name(&self, who: &mut [u32; WORDS]) {
        for (k, who) in who.iter_mut().skip(self.from).take(self.count).enumerate() {
            *who = self.tag(k).who();
        }
    }

    #[inline]
    fn fill(&self, tags: &mut [Tag; WORDS]) {
        if self.count == 1 {
            tags[self.from % WORDS] = self.tag(0);
            return;
        }
        for (k, tag) in tags.iter_mut().skip(self.from).take(self.count).enumerate() {
            *tag = self.tag(k);
        }
    }

    fn merge(&self, tags: &mut [Tag; WORDS]) {
        if self.count == 1 {
            let tag = &mut tags[self.from % WORDS];
            *tag = tag.merged(self.tag(0), self.synced);
            return;
        }
        for (k, tag) in tags.iter_mut().skip(self.from).take(self.count).enumerate() {
            *tag = tag.merged(self.tag(k), self.synced);
        }
    }

    #[inline]
    fn store(&self, line: &mut Line, value: impl Fn(usize) -> u32) {
        if self.base.bytes() == 0xf {
            self.fill(&mut line.stores);
            for (k, to) in line.values.iter_mut().skip(self.from).take(self.count).enumerate() {
                *to = value(k);
            }
            return;
        }
        // The part consists of one word.
        let word = self.from % WORDS;
        let bits = spread(self.base.bytes());
        let kept = if (line.stored >> (4 * word)).trailing_zeros() >= 4 { 0 } else { line.values[word] & !bits };
        line.values[word] = kept | value(0) & bits;
        line.partial |= 1 << word;
        line.stores[word] = self.base.with_bytes_of(line.stores[word]);
    }
}

/// Shift that assigns all words of a part to one thread.
pub const ONE_THREAD: u32 = 6;

/// Compares part of a request with the state of the line. Returns the fault that ends the launch, or else the first
/// lint.
#[inline]
pub fn judge(
    line: &Line,
    (space, number): (Space, u64),
    (part, epoch, ignored): (&Part, u32, Ignored),
    order: &Order,
    touch: impl Fn(usize) -> Touch,
) -> Option<Hazard> {
    let forbidden = part.forbidden(line, space, number).filter(|hazard| ignored.reports(hazard.fault));
    if forbidden.is_some() {
        return forbidden;
    }
    part.conflict(line, (space, number), (epoch, ignored), order, touch)
}
