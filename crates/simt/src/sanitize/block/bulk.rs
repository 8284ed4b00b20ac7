//! Bulk copies, `st.async` and `red.async`. The bytes that they write are incomplete until a thread has observed the
//! completion; the bytes that they read are in use until the sending thread has waited.
//!
//! A copy that completes on an mbarrier object is complete for a warp once that warp has successfully waited on the
//! object. The copy then counts as that warp's store: other warps need their own wait, or a barrier. A copy in a bulk
//! group is complete once its thread has waited for the group.

use crate::sanitize::block::BlockShadow;
use crate::sanitize::block::remote::{RemoteConflict, RemoteThread};
use crate::sanitize::lines::Line;
use crate::sanitize::part::{ONE_THREAD, Part, judge};
use crate::sanitize::races::{Fault, Hazard, Touch};
use crate::sanitize::request::{Op, Space};
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{WORDS, byte_mask};

/// Thread that sends a copy, with its source line.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    pub warp: u32,
    pub lane: u32,
    pub line: u16,
}

/// One side of a bulk copy.
#[derive(Debug, Clone, Copy)]
pub struct Bulk {
    pub space: Space,
    /// Offset from the start of the state space.
    pub offset: u64,
    pub bytes: u64,
}

impl Bulk {
    /// Splits the words into lines. Yields the line's number, the first word, the number of words, and the number of
    /// preceding words.
    fn pieces(self) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let total = (self.bytes / 4) as usize;
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = self.offset + 4 * done as u64;
            let from = (at / 4) as usize % WORDS;
            let count = (WORDS - from).min(total - done);
            let piece = (at / 128, from, count, done);
            done += count;
            (count > 0).then_some(piece)
        })
    }
}

/// How bytes are written to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Whether a reduction combines the bytes with memory; other reductions may do so at the same time.
    pub reduces: bool,
    /// Whether a bulk copy accesses the bytes. Bulk copies see the stores of threads only after a proxy fence.
    pub bulk: bool,
}

impl Way {
    pub const fn op(self) -> Op {
        if self.reduces { Op::Change } else { Op::Store }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A phase of the mbarrier object at this offset in shared memory, and whether the phase has completed.
    Phase { object: u64, ended: bool },
    /// The sender's bulk group.
    Group(u32),
}

/// A copy that has not been waited for. Describes its side in shared memory.
#[derive(Debug, Clone, Copy)]
struct Open {
    sender: Sender,
    side: Bulk,
    until: Until,
    reduces: bool,
}

#[derive(Debug, Default)]
pub struct BulkCopies {
    open: Vec<Open>,
    /// Number of groups that each thread has committed, by warp.
    committed: Vec<[u32; 32]>,
}

impl BulkCopies {
    pub fn clear(&mut self) {
        self.open.clear();
        self.committed.clear();
    }

    fn groups(&mut self, warp: u32) -> &mut [u32; 32] {
        let at = (warp & 31) as usize;
        if self.committed.len() <= at {
            self.committed.resize(at + 1, [0; 32]);
        }
        &mut self.committed[at]
    }
}

impl BlockShadow {
    /// Checks and records one side of a bulk copy, `st.async` or `red.async`. `value` returns the stored words. `bulk`
    /// marks bulk copies, which see the stores of threads to shared memory only after a proxy fence. A reduction also
    /// reads the words that it changes.
    pub fn bulk(
        &mut self,
        by: Sender,
        side: Bulk,
        (op, bulk): (Op, bool),
        value: impl Fn(usize) -> u32,
    ) -> Option<Hazard> {
        let base = self.now(by.warp, by.line).of_lane(u64::from(by.lane));
        for (number, from, count, done) in side.pieces() {
            if side.space == Space::Global {
                self.make_room();
            }
            let (epoch, ignored, synced) = (self.epoch, self.ignored, self.order.synced(by.warp));
            let (line, order) = self.line_and_order(side.space, number)?;
            line.expand(epoch);
            let bytes = byte_mask(from, count);
            let part = Part { op, from, count, done: 0, shift: ONE_THREAD, bytes, base, synced };
            if let Some(fault) = unreadable(line, side.space, &part, bulk).filter(|(fault, _)| ignored.reports(*fault))
            {
                return Some(part.refused(line, side.space, number, fault));
            }
            let touch = |k: usize| Touch { word: from + k, op, tag: base, value: value(done + k), silent: false };
            match judge(line, (side.space, number), (&part, epoch, ignored), order, touch) {
                Some(lint) if lint.fault.is_lint() => {
                    part.record(line, epoch, |k| value(done + k));
                    self.keep(Some(lint));
                }
                Some(fatal) => return Some(fatal),
                None => part.record(line, epoch, |k| value(done + k)),
            }
        }
        None
    }

    /// Records bytes that are sent to shared memory and complete on the mbarrier object at `object`.
    pub fn send_bulk(&mut self, sender: Sender, side: Bulk, object: u64, way: Way) {
        let until = Until::Phase { object, ended: false };
        self.open(Open { sender, side, until, reduces: way.reduces });
        if way.bulk {
            for (number, from, count, _) in side.pieces() {
                if let Some(line) = self.shared.get_mut(number as usize) {
                    line.unfenced &= !words(from, count);
                }
            }
        }
    }

    /// Records a copy. Adjacent copies by the lanes of one instruction are merged.
    fn open(&mut self, copy: Open) {
        self.mark_open(&copy);
        let side = copy.side;
        let goes_on = |last: &&mut Open| {
            let same = (last.until, last.reduces, last.sender.warp, last.sender.line, last.side.space)
                == (copy.until, copy.reduces, copy.sender.warp, copy.sender.line, side.space);
            same && last.side.offset + last.side.bytes == side.offset && matches!(copy.until, Until::Phase { .. })
        };
        match self.bulk.open.last_mut().filter(goes_on) {
            Some(last) => last.side.bytes += side.bytes,
            None => self.bulk.open.push(copy),
        }
    }

    /// Records a copy from shared memory, which belongs to the group that the sender commits next.
    pub fn send_from(&mut self, sender: Sender, side: Bulk) {
        let group = self.bulk.groups(sender.warp)[(sender.lane & 31) as usize];
        self.open(Open { sender, side, until: Until::Group(group), reduces: false });
    }

    /// Records that a phase of an mbarrier object has completed, and with it the copies of that phase.
    pub fn phase_ended(&mut self, at: u64) {
        self.order.end_phase(at);
        for copy in &mut self.bulk.open {
            if copy.until == (Until::Phase { object: at, ended: false }) {
                copy.until = Until::Phase { object: at, ended: true };
            }
        }
    }

    /// Records that a lane has observed the completion of an object's phase. The phase's copies count as stores of the
    /// first lane that observes it, and are known to later lanes.
    pub fn phase_observed(&mut self, at: u64, warp: u32, lane: u32) {
        self.order.observe_phase(at, (warp, lane as usize));
        let seen = Until::Phase { object: at, ended: true };
        if !self.bulk.open.iter().any(|copy| copy.until == seen) {
            return;
        }
        let copies = self.take(|copy| copy.until == seen);
        let base = self.now(warp, 0).of_lane(u64::from(lane));
        self.order.add_to_phase(at, (warp, lane as usize));
        for copy in copies {
            let tag = base.at_line(copy.sender.line);
            for (number, from, count, _) in copy.side.pieces() {
                self.store_again(number * 128 + 4 * from as u64, 4 * count as u32, tag);
            }
        }
    }

    /// Records that lanes commit their current bulk groups.
    pub fn commit_bulk(&mut self, warp: u32, mask: u32) {
        let groups = self.bulk.groups(warp);
        (0..32).filter(|lane| mask >> lane & 1 == 1).for_each(|lane| groups[lane] += 1);
    }

    /// Records that lanes wait for all but the last `but` of their bulk groups.
    pub fn wait_bulk(&mut self, warp: u32, mask: u32, but: u32) {
        let committed = *self.bulk.groups(warp);
        drop(self.take(|copy| {
            let mine = copy.sender.warp == warp && mask >> copy.sender.lane & 1 == 1;
            let done = |group: u32| group.saturating_add(but) < committed[(copy.sender.lane & 31) as usize];
            mine && matches!(copy.until, Until::Group(group) if done(group))
        }));
    }

    /// Executes a proxy fence, after which bulk copies see the earlier stores of threads.
    pub fn fence_bulk(&mut self) {
        self.shared.iter_mut().for_each(|line| line.unfenced = 0);
    }

    /// Replaces the earlier access of a hazard with the copy that reads or has yet to write the bytes, if there is one.
    pub fn with_copy(&self, hazard: Hazard) -> Hazard {
        let before = match hazard.fault {
            Fault::BeingRead => Op::Load,
            Fault::Pending => Op::Store,
            _ => return hazard,
        };
        let holds = |copy: &&Open| {
            let Bulk { offset, bytes, .. } = copy.side;
            let reads = matches!(copy.until, Until::Group(_));
            reads == (before == Op::Load) && (offset..offset + bytes).contains(&hazard.offset)
        };
        match self.bulk.open.iter().find(holds) {
            Some(Open { sender, .. }) => {
                let earlier = self.now(sender.warp, sender.line).of_lane(u64::from(sender.lane));
                Hazard { before, earlier, ..hazard }
            }
            None => hazard,
        }
    }

    /// Records a lint if a copy may still be reading the block's shared memory when the block ends.
    pub(super) fn leave_copies(&mut self) {
        let left = self.bulk.open.iter().find(|copy| matches!(copy.until, Until::Group(_)));
        if let Some(&Open { sender, side, .. }) = left {
            let tag = self.now(sender.warp, sender.line).of_lane(u64::from(sender.lane));
            let (space, offset) = (Space::Shared, side.offset);
            let (now, before) = (Op::Load, Op::Load);
            self.keep(Some(Hazard { fault: Fault::Left, space, offset, now, tag, before, earlier: tag }));
        }
    }

    /// Removes and returns the copies that have been waited for.
    fn take(&mut self, waited: impl Fn(&Open) -> bool) -> Vec<Open> {
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.bulk.open).into_iter().partition(waited);
        for copy in &done {
            match copy.until {
                Until::Phase { .. } => self.mark(copy.side, |line, mask| {
                    line.pending &= !mask;
                    line.merging &= !mask;
                }),
                Until::Group(_) => self.mark(copy.side, |line, mask| line.being_read &= !mask),
            }
        }
        // The remaining copies may read or write the same bytes.
        for copy in &left {
            self.mark_open(copy);
        }
        self.bulk.open = left;
        self.mark_remote();
        done
    }

    /// Returns the bytes of a line of shared memory that bulk copies have yet to write, and the bytes that they read.
    pub(super) fn bulk_in(&self, number: u64) -> (u128, u128) {
        let mut found = (0, 0);
        for copy in &self.bulk.open {
            let here = copy.side.pieces().filter(|piece| piece.0 == number);
            let mask = here.fold(0, |mask, (_, from, count, _)| mask | byte_mask(from, count));
            match copy.until {
                Until::Phase { .. } => found.0 |= mask,
                Until::Group(_) => found.1 |= mask,
            }
        }
        found
    }

    /// Checks and records data that a thread of another block sends to this one. `since` is the last acquire of that
    /// block.
    pub fn receive_remote(
        &mut self,
        remote: (RemoteThread, u64),
        sender: Sender,
        side: Bulk,
        object: u64,
        way: Way,
    ) -> Result<(), RemoteConflict> {
        for (number, from, count, _) in side.pieces() {
            if let Some(conflict) = self.remote_write_conflict(way, number * 128, (from, count), remote) {
                return Err(conflict);
            }
        }
        self.mark(side, |line, mask| line.written |= mask);
        if !way.bulk {
            for (number, from, count, _) in side.pieces() {
                if let Some(line) = self.shared.get_mut(number as usize) {
                    line.unfenced |= words(from, count);
                }
            }
        }
        self.send_bulk(sender, side, object, way);
        Ok(())
    }

    /// Returns the reason why another block may not send data to words of the line at `start`, if any.
    fn remote_write_conflict(
        &self,
        way: Way,
        start: u64,
        (from, count): (usize, usize),
        remote: (RemoteThread, u64),
    ) -> Option<RemoteConflict> {
        let line = self.shared.get((start / 128) as usize)?;
        let (base, bytes) = (Tag::default(), byte_mask(from, count));
        let part = Part { op: way.op(), from, count, done: 0, shift: ONE_THREAD, bytes, base, synced: 0 };
        if let Some((fault, bad)) = unreadable(line, Space::Shared, &part, way.bulk) {
            let offset = start + u64::from(bad.trailing_zeros());
            return Some(RemoteConflict { fault, offset, before: Op::Store, who: self.who_stored(offset) });
        }
        self.remote_conflict(way.op(), start, part.bytes, remote)
    }

    /// Marks the bytes that a copy has yet to write, or the bytes that it reads.
    fn mark_open(&mut self, copy: &Open) {
        let reduces = copy.reduces;
        match copy.until {
            Until::Phase { .. } => self.mark(copy.side, |line, mask| {
                line.pending |= mask;
                line.merging |= if reduces { mask } else { 0 };
            }),
            Until::Group(_) => self.mark(copy.side, |line, mask| line.being_read |= mask),
        }
    }

    fn mark(&mut self, side: Bulk, mut mark: impl FnMut(&mut Line, u128)) {
        for (number, from, count, _) in side.pieces() {
            if let Some(line) = self.shared.get_mut(number as usize) {
                mark(line, byte_mask(from, count));
            }
        }
    }
}

/// Returns a mask of words in a line, one bit per word.
const fn words(from: usize, count: usize) -> u32 {
    (u32::MAX >> (WORDS - count)) << from
}

/// Returns the bytes of a part that must not be read yet. For a reduction, these are bytes that were never written; for
/// a bulk copy, bytes that threads have stored without a later proxy fence.
fn unreadable(line: &Line, space: Space, part: &Part, bulk: bool) -> Option<(Fault, u128)> {
    if space != Space::Shared || part.op == Op::Store {
        return None;
    }
    let unwritten = if part.op == Op::Change { part.bytes & !line.written } else { 0 };
    let unfenced = if bulk { line.unfenced & part.words() } else { 0 };
    if unwritten != 0 {
        return Some((Fault::Unwritten, unwritten));
    }
    (unfenced != 0).then(|| (Fault::Unfenced, byte_mask(unfenced.trailing_zeros() as usize, 1)))
}
