//! Bulk copies: bytes on their way until somebody has seen that they came, and bytes that are read until their thread
//! has waited.
//!
//! A copy that a barrier object counts has come for a warp when a wait of that warp for the object has passed; the wait
//! counts as that warp's store, so that others need a wait of their own or a barrier. A copy in a group has been read,
//! and written, when its thread has waited for the group.

use super::lines::{Line, WORDS, byte_mask};
use super::part::Part;
use super::races::{Fault, Hazard, Op, Touch};
use super::tag::Tag;
use super::watch::{ONE_THREAD, Space, Watch, judge};

/// The thread that sends a copy, and from which source line.
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
    /// Counts from the start of the state space.
    pub offset: u64,
    pub bytes: u64,
}

impl Bulk {
    /// Its words, line by line: the line's number, the first word, how many, and how many were before.
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

/// What a copy is waited for by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A phase of the barrier object at this offset of shared memory, which has ended or not.
    Phase { object: u64, ended: bool },
    /// The sender's group.
    Group(u32),
}

/// A copy that was not waited for. The side that matters lies in shared memory.
#[derive(Debug, Clone, Copy)]
struct Open {
    sender: Sender,
    side: Bulk,
    until: Until,
}

/// The bulk copies of a block.
#[derive(Debug, Default)]
pub struct BulkCopies {
    open: Vec<Open>,
    /// Groups that each thread has committed, by warp.
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

impl Watch {
    /// Checks and records one side of a bulk copy; `value` gives what it stores, word by word. Bulk copies do not see
    /// what threads have stored to shared memory unless a fence lies between.
    pub fn bulk(&mut self, by: Sender, side: Bulk, op: Op, value: impl Fn(usize) -> u32) -> Option<Hazard> {
        let base = self.now(by.warp, by.line).of_lane(u64::from(by.lane));
        for (number, from, count, done) in side.pieces() {
            if side.space == Space::Global {
                self.make_room();
            }
            let epoch = self.epoch;
            let line = self.line(side.space, number)?;
            line.widen(epoch);
            let part = Part { op, from, count, done: 0, shift: ONE_THREAD, bytes: byte_mask(from, count), base };
            let unfenced = line.unfenced & part.words();
            if op == Op::Load && side.space == Space::Shared && unfenced != 0 {
                let first = unfenced.trailing_zeros() as usize;
                return Some(part.refused(line, side.space, number, (Fault::Unfenced, byte_mask(first, 1))));
            }
            let touch = |k: usize| Touch { word: from + k, op, tag: base, value: value(done + k), silent: false };
            match judge(line, (side.space, false), number, (&part, epoch), touch) {
                Some(lint) if lint.fault.is_lint() => {
                    part.record(line, epoch, false, |k| value(done + k));
                    self.keep(Some(lint));
                }
                Some(fatal) => return Some(fatal),
                None => part.record(line, epoch, false, |k| value(done + k)),
            }
        }
        None
    }

    /// A copy to shared memory is on its way; its bytes were told to the barrier object at `object`.
    pub fn send_bulk(&mut self, sender: Sender, side: Bulk, object: u64) {
        self.bulk.open.push(Open { sender, side, until: Until::Phase { object, ended: false } });
        self.mark(side, |line, mask| line.pending |= mask);
        for (number, from, count, _) in side.pieces() {
            if let Some(line) = self.shared.get_mut(number as usize) {
                line.unfenced &= !((u32::MAX >> (WORDS - count)) << from);
            }
        }
    }

    /// A copy from shared memory begins, in the group that the sender commits next.
    pub fn lend(&mut self, sender: Sender, side: Bulk) {
        let group = self.bulk.groups(sender.warp)[(sender.lane & 31) as usize];
        self.bulk.open.push(Open { sender, side, until: Until::Group(group) });
        self.mark(side, |line, mask| line.lent |= mask);
    }

    /// A phase of a barrier object has ended: what it counted has come.
    pub fn phase_ended(&mut self, at: u64) {
        for copy in &mut self.bulk.open {
            if copy.until == (Until::Phase { object: at, ended: false }) {
                copy.until = Until::Phase { object: at, ended: true };
            }
        }
    }

    /// A lane has seen that a phase of an object has ended; `whole` says that its whole warp has.
    pub fn land(&mut self, at: u64, warp: u32, lane: u32, whole: bool) {
        let seen = Until::Phase { object: at, ended: true };
        if !self.bulk.open.iter().any(|copy| copy.until == seen) {
            return;
        }
        for copy in self.take(|copy| copy.until == seen) {
            let now = self.now(warp, copy.sender.line).of_lane(u64::from(lane));
            let tag = if whole { Tag::at(now.who(), self.epoch, Tag::SYNCED) } else { now };
            for (number, from, count, _) in copy.side.pieces() {
                self.store_again(number * 128 + 4 * from as u64, 4 * count as u32, tag);
            }
        }
    }

    /// Lanes close their group of bulk copies.
    pub fn commit_bulk(&mut self, warp: u32, mask: u32) {
        let groups = self.bulk.groups(warp);
        (0..32).filter(|lane| mask >> lane & 1 == 1).for_each(|lane| groups[lane] += 1);
    }

    /// Lanes wait for all their groups of bulk copies but the last ones.
    pub fn wait_bulk(&mut self, warp: u32, mask: u32, but: u32) {
        let committed = *self.bulk.groups(warp);
        drop(self.take(|copy| {
            let mine = copy.sender.warp == warp && mask >> copy.sender.lane & 1 == 1;
            let done = |group: u32| group.saturating_add(but) < committed[(copy.sender.lane & 31) as usize];
            mine && matches!(copy.until, Until::Group(group) if done(group))
        }));
    }

    /// Threads let bulk copies see what they have stored.
    pub fn fence_bulk(&mut self) {
        self.shared.iter_mut().for_each(|line| line.unfenced = 0);
    }

    /// Names the copy in a hazard of bytes that it is reading.
    pub fn with_reader(&self, hazard: Hazard) -> Hazard {
        let holds = |copy: &&Open| {
            let Bulk { offset, bytes, .. } = copy.side;
            matches!(copy.until, Until::Group(_)) && (offset..offset + bytes).contains(&hazard.offset)
        };
        match self.bulk.open.iter().find(holds) {
            Some(Open { sender, .. }) if hazard.fault == Fault::Lent => {
                let earlier = self.now(sender.warp, sender.line).of_lane(u64::from(sender.lane));
                Hazard { before: Op::Load, earlier, ..hazard }
            }
            _ => hazard,
        }
    }

    /// The block ends: notes a copy that may still be reading its shared memory.
    pub(super) fn leave_copies(&mut self) {
        let left = self.bulk.open.iter().find(|copy| matches!(copy.until, Until::Group(_)));
        if let Some(&Open { sender, side, .. }) = left {
            let tag = self.now(sender.warp, sender.line).of_lane(u64::from(sender.lane));
            let (space, offset) = (Space::Shared, side.offset);
            let (now, before) = (Op::Load, Op::Load);
            self.keep(Some(Hazard { fault: Fault::Left, space, offset, now, tag, before, earlier: tag }));
        }
    }

    /// Takes out copies that were waited for.
    fn take(&mut self, waited: impl Fn(&Open) -> bool) -> Vec<Open> {
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.bulk.open).into_iter().partition(waited);
        for copy in &done {
            match copy.until {
                Until::Phase { .. } => self.mark(copy.side, |line, mask| line.pending &= !mask),
                Until::Group(_) => self.mark(copy.side, |line, mask| line.lent &= !mask),
            }
        }
        // Others may be on their way to the same bytes, or from them.
        for copy in &left {
            match copy.until {
                Until::Phase { .. } => self.mark(copy.side, |line, mask| line.pending |= mask),
                Until::Group(_) => self.mark(copy.side, |line, mask| line.lent |= mask),
            }
        }
        self.bulk.open = left;
        self.mark_guests();
        done
    }

    /// The bytes of a line of shared memory that bulk copies are on their way to, and those that they read.
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

    /// Records that another block sends a copy here, as the last store to its bytes.
    pub fn sent_from_afar(&mut self, sender: Sender, side: Bulk, object: u64) {
        let tag = self.now(sender.warp, sender.line).of_lane(u64::from(sender.lane));
        for (number, from, count, _) in side.pieces() {
            self.store_again(number * 128 + 4 * from as u64, 4 * count as u32, tag);
        }
        self.mark(side, |line, mask| line.written |= mask);
        self.send_bulk(sender, side, object);
    }

    fn mark(&mut self, side: Bulk, mut mark: impl FnMut(&mut Line, u128)) {
        for (number, from, count, _) in side.pieces() {
            if let Some(line) = self.shared.get_mut(number as usize) {
                mark(line, byte_mask(from, count));
            }
        }
    }
}
