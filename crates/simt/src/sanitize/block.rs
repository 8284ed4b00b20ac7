//! The shadow state of one block: who accessed what since when, and the notes for the report.

mod bulk;
mod copies;
mod locals;
mod plain;
mod remote;

pub use bulk::{Bulk, Sender, Way};
pub use plain::{Piece, Run};
pub use remote::{Earlier, RemoteConflict, RemoteThread};

use std::ops::Range;

use crate::sanitize::grid::GridShadow;
use crate::sanitize::ignored::Ignored;
use crate::sanitize::lines::Line;
use crate::sanitize::log::{Log, is_tracked};
use crate::sanitize::part::{ONE_THREAD, Part, judge};
use crate::sanitize::races::{Fault, Hazard, Touch};
use crate::sanitize::request::{Op, Request, Space, Strength};
use crate::sanitize::summary::condense;
use crate::sanitize::table::{Known, LineLoad, Table};
use crate::sanitize::tag::{EPOCHS, Tag};
use crate::sanitize::when::When;
use crate::sanitize::words::{WORDS, byte_mask};

use bulk::BulkCopies;
use copies::Copies;
use locals::Locals;
use remote::RemoteAccesses;

/// The shadow state that the sanitizer keeps for one block.
#[derive(Debug, Default)]
pub struct BlockShadow {
    pub(super) shared: Vec<Line>,
    pub(super) global: Table,
    /// Counts barriers and fences; zero where accesses are not checked.
    pub(super) epoch: u32,
    /// Synchronisations of each warp in this epoch.
    pub(super) syncs: [u32; 32],
    /// Accesses from before the last acquire, or beyond the lines that are kept in detail; by kind of access.
    pending: [Log; 3],
    acquired: When,
    /// The block has had an effect in commit order.
    committed: bool,
    block: u32,
    /// No other block can conflict with it.
    alone: bool,
    /// When the block began, one in 2 to this power stretches of memory was tracked.
    sparse: u32,
    lints: Vec<Hazard>,
    /// Findings that are not reported.
    pub(super) ignored: Ignored,
    /// The copies of each warp.
    pub(super) copies: Vec<Copies>,
    pub(super) bulk: BulkCopies,
    pub(super) remote: RemoteAccesses,
    pub(super) locals: Vec<Locals>,
}

impl BlockShadow {
    /// Resets the state for a block that accesses these bytes of its shared memory.
    pub fn begin(&mut self, grid: &GridShadow, block: u32, bytes: Range<usize>) {
        let lines = if bytes.is_empty() { 0 } else { bytes.end.div_ceil(4 * WORDS) };
        self.shared.resize_with(lines, Line::default);
        let accessed = self.shared.iter_mut().skip(bytes.start / (4 * WORDS));
        accessed.for_each(|line| line.begin(self.epoch));
        self.global.clear();
        self.pending.iter_mut().for_each(Log::clear);
        self.advance();
        (self.acquired, self.committed, self.block) = (When::Never, false, block);
        (self.alone, self.sparse) = (!grid.is_tracking(), grid.sparse());
        self.lints.clear();
        self.ignored = grid.ignored();
        self.copies.iter_mut().for_each(Copies::clear);
        self.bulk.clear();
        self.remote.begin(self.epoch);
        self.locals.iter_mut().for_each(Locals::clear);
    }

    /// Records a write to shared memory that does not race with anything.
    pub fn shared_written(&mut self, offset: u64, bytes: u32) {
        if let Some(line) = self.shared.get_mut((offset / 128) as usize) {
            line.written |= (u128::MAX >> (128 - bytes)) << (offset % 128);
        }
    }

    /// Returns which bytes of shared memory, which are in one line, were never written: a bit per byte.
    pub fn shared_unwritten(&self, offset: u64, bytes: u32) -> u32 {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.shared.get((offset / 128) as usize).map_or(0, |line| ((mask & !line.written) >> (offset % 128)) as u32)
    }

    /// Records that bytes of shared memory, which are in one line, have undefined values: a bit per byte.
    pub fn shared_undefined(&mut self, offset: u64, bytes: u32) {
        if let Some(line) = self.shared.get_mut((offset / 128) as usize) {
            line.written &= !(u128::from(bytes) << (offset % 128));
        }
    }

    /// Returns the findings that are not reported now.
    pub const fn ignored(&self) -> Ignored {
        self.ignored
    }

    /// Sets the findings that are not reported from now on.
    pub const fn set_ignored(&mut self, ignored: Ignored) {
        self.ignored = ignored;
    }

    /// Whether these bytes of shared memory, which are in one line, were written.
    pub fn is_shared_written(&self, offset: u64, bytes: u32) -> bool {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.shared.get((offset / 128) as usize).is_none_or(|line| line.written & mask == mask)
    }

    /// Starts a new epoch: orders all earlier accesses of the block before all later ones.
    pub fn barrier(&mut self) {
        if self.epoch != 0 {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.syncs = [0; 32];
        self.epoch += 1;
        if self.epoch == EPOCHS {
            self.condense();
            self.global.wipe();
            for line in &mut self.shared {
                let Line { written, pending, merging, being_read, unfenced, .. } = *line;
                *line = Line { written, pending, merging, being_read, unfenced, ..Line::default() };
            }
            self.epoch = 1;
            self.remote.wrap();
        }
    }

    /// Orders all earlier accesses of the lanes of a warp before their later ones.
    #[inline]
    pub const fn warp_sync(&mut self, warp: u32) {
        self.syncs[(warp & 31) as usize] += 1;
    }

    /// Returns the present moment, for thread zero of a warp.
    pub(super) fn now(&self, warp: u32, line: u16) -> Tag {
        Tag::new(self.epoch, self.syncs[(warp & 31) as usize], warp, line)
    }

    /// Records a request; `value` returns what a lane stores to a word of its access, `silent` whether a lane's store
    /// leaves memory unchanged. Returns the fault that ends the launch, and keeps lints.
    pub fn touch(
        &mut self,
        r: &Request<'_>,
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        if r.space == Space::Global && self.global.is_full() {
            self.condense();
        }
        let tag = self.now(r.warp, r.line);
        let tag = if r.strength == Strength::Plain { tag } else { tag.volatile() };
        let first = r.mask.trailing_zeros();
        if r.together && r.op == Op::Load {
            let tag = if r.mask.is_power_of_two() { tag } else { tag.by_lanes() };
            return self.touch_each(r, 1 << first, tag, value, silent);
        }
        let unbroken = r.mask == u32::MAX || ((r.mask >> first) + 1).is_power_of_two();
        if r.contiguous && unbroken && r.bytes >= 4 {
            return self.touch_run(r, tag, value, silent);
        }
        self.touch_each(r, r.mask, tag, value, silent)
    }

    #[inline]
    pub(super) fn line(&mut self, space: Space, number: u64) -> Option<&mut Line> {
        match space {
            Space::Shared => self.shared.get_mut(number as usize),
            Space::Global => Some(self.global.line(number as u32, self.epoch)),
        }
    }

    /// Returns a request whose words are contiguous.
    fn touch_run(
        &mut self,
        r: &Request<'_>,
        tag: Tag,
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        let each = r.bytes as usize / 4;
        let first = r.mask.trailing_zeros() as usize & 31;
        let (start, total) = (r.offset(first), r.mask.count_ones() as usize * each);
        let base = tag.of_lane(first as u64);
        let mut done = 0;
        while done < total {
            let at = start + 4 * done as u64;
            let (number, from) = (at / 128, (at / 4) as usize % WORDS);
            let count = (WORDS - from).min(total - done);
            let bytes = byte_mask(from, count);
            let part = Part { op: r.op, from, count, done, shift: each.trailing_zeros(), bytes, base };
            let lane_and_word = |k: usize| (first + (done + k) / each, (done + k) % each);
            let touch = |k: usize| {
                let (lane, word) = lane_and_word(k);
                let silent = r.op == Op::Store && silent(lane);
                Touch { word: from + k, op: r.op, tag: part.tag(k), value: value(lane, word), silent }
            };
            let (epoch, ignored) = (self.epoch, self.ignored);
            let Some(line) = self.line(r.space, number) else { break };
            line.expand(epoch);
            let mut lint = None;
            match judge(line, (r.space, r.quiet), number, (&part, epoch, ignored), touch) {
                Some(hazard) if hazard.fault.is_lint() => lint = Some(hazard),
                None => {}
                fatal => return fatal,
            }
            part.record(line, epoch, r.strength == Strength::Relaxed, |k| {
                value(lane_and_word(k).0, lane_and_word(k).1)
            });
            self.keep(lint);
            done += count;
        }
        None
    }

    /// Checks and records a request lane by lane. Lanes of one instruction do not conflict with each other: if two may store to
    /// one word, all are checked before any is recorded.
    fn touch_each(
        &mut self,
        r: &Request<'_>,
        mask: u32,
        tag: Tag,
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        if r.op != Op::Store || r.is_rising(mask) {
            return self.pass(r, (mask, tag), (true, true), &value, &silent);
        }
        let found = self.pass(r, (mask, tag), (true, false), &value, &silent);
        found.or_else(|| self.pass(r, (mask, tag), (false, true), &value, &silent))
    }

    /// Passes over the lanes of a request once, and checks or records them, or both.
    fn pass(
        &mut self,
        r: &Request<'_>,
        (mask, tag): (u32, Tag),
        (checks, records): (bool, bool),
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        let (epoch, ignored, relaxed) = (self.epoch, self.ignored, r.strength == Strength::Relaxed);
        let narrow = if r.bytes < 4 { (1_u8 << r.bytes) - 1 } else { 0xf };
        let count = (r.bytes as usize).div_ceil(4);
        let mut lanes = mask;
        while lanes != 0 {
            let number = r.offset(lanes.trailing_zeros() as usize) / 128;
            let mut lint = None;
            let Some(line) = self.line(r.space, number) else { break };
            if !relaxed {
                line.expand(epoch);
            }
            while lanes != 0 {
                let lane = (lanes.trailing_zeros() & 31) as usize;
                let offset = r.offset(lane);
                if offset / 128 != number {
                    break;
                }
                lanes &= lanes - 1;
                // An access is aligned to its size, so that it stays in its line.
                let base = tag.of_lane(lane as u64).of_bytes(narrow << (offset & 3));
                let from = (offset / 4) as usize % WORDS;
                let bytes = (u128::MAX >> (128 - r.bytes)) << (offset % 128);
                let part = Part { op: r.op, from, count, done: 0, shift: ONE_THREAD, bytes, base };
                let value = |word: usize| value(lane, word) << (8 * (offset & 3));
                if checks {
                    let touch = |word: usize| Touch {
                        word: from + word,
                        op: r.op,
                        tag: base,
                        value: value(word),
                        silent: r.op == Op::Store && silent(lane),
                    };
                    match judge(line, (r.space, r.quiet), number, (&part, epoch, ignored), touch) {
                        Some(hazard) if hazard.fault.is_lint() => lint = lint.or(Some(hazard)),
                        None => {}
                        fatal => return fatal,
                    }
                }
                if records {
                    part.record(line, epoch, relaxed, value);
                }
            }
            self.keep(lint);
        }
        None
    }

    /// Whether an access at a source line could cause a lint that is not known yet: relaxed ones never conflict,
    /// volatile ones cause a lint at most.
    pub fn is_reported(&self, strength: Strength, line: u16) -> bool {
        let known = |h: &Hazard| h.fault == Fault::Warp && h.tag.line() == line;
        strength == Strength::Relaxed || strength == Strength::Volatile && self.lints.iter().any(known)
    }

    /// Keeps a lint, one per pair of source lines.
    pub(super) fn keep(&mut self, lint: Option<Hazard>) {
        let parts = |h: &Hazard| (h.fault, h.tag.line(), h.earlier.line());
        if let Some(lint) = lint
            && self.ignored.reports(lint.fault)
            && !self.lints.iter().any(|known| parts(known) == parts(&lint))
        {
            self.lints.push(lint);
        }
    }

    /// Records two arrivals at one barrier from different source lines; each is warp, lane and line.
    pub fn note_places(&mut self, first: (u32, u32, u16), now: (u32, u32, u16)) {
        let tag = |(warp, lane, line): (u32, u32, u16)| self.now(warp, line).of_lane(u64::from(lane));
        let (tag, earlier) = (tag(now), tag(first));
        let (space, op) = (Space::Shared, Op::Load);
        self.keep(Some(Hazard { fault: Fault::Places, space, offset: 0, now: op, tag, before: op, earlier }));
    }

    /// Records that two lanes of a warp store different values to one address in one instruction.
    pub fn note_lanes(&mut self, (space, offset): (Space, u64), (warp, line): (u32, u16), lanes: (usize, usize)) {
        let tag = |lane: usize| self.now(warp, line).of_lane(lane as u64);
        let (tag, earlier) = (tag(lanes.1), tag(lanes.0));
        self.keep(Some(Hazard { fault: Fault::Lanes, space, offset, now: Op::Store, tag, before: Op::Store, earlier }));
    }

    /// Records that lanes have exited without executing an operation of the warp that names them; `here` is the warp, a lane
    /// that has executed it, and its line.
    pub fn note_absent(&mut self, lanes: u32, here: (u32, u32, u16)) {
        let (warp, lane, line) = here;
        let tag = self.now(warp, line).of_lane(u64::from(lane));
        let (space, op, offset) = (Space::Shared, Op::Load, u64::from(lanes));
        self.keep(Some(Hazard { fault: Fault::Absent, space, offset, now: op, tag, before: op, earlier: tag }));
    }

    /// Records that the block has an effect in commit order.
    pub const fn note_commit(&mut self) {
        self.committed = true;
    }

    /// Whether blocks run in commit order now; `fair` is how the block is scheduled.
    const fn in_commit_order(&self, fair: bool) -> bool {
        self.committed && fair
    }

    /// Acquires: the block reads a word through which another block may signal.
    pub fn acquire(&mut self, grid: &GridShadow, fair: bool, offsets: impl Iterator<Item = u64>) {
        if !grid.is_tracking() {
            return;
        }
        let acquired = if self.in_commit_order(fair) {
            let released = offsets.map(|at| grid.acquired(at)).max().unwrap_or(0);
            When::At(released.max(self.acquired.acquired(self.block)))
        } else {
            When::Own
        };
        self.acquire_all(acquired);
    }

    /// Acquires all that was released before a moment.
    pub(super) fn acquire_all(&mut self, acquired: When) {
        self.forget_remote();
        if acquired > self.acquired {
            self.condense();
            self.acquired = acquired;
        }
    }

    /// Releases the accesses of the block so far.
    pub fn release(&mut self, grid: &GridShadow, fair: bool) {
        if grid.is_tracking() {
            let released = if self.in_commit_order(fair) { When::At(grid.tick()) } else { When::Own };
            self.publish(grid, released);
        }
    }

    /// Records that the block writes a word through which it may signal another block.
    pub fn signal(&self, grid: &GridShadow, fair: bool, offsets: impl Iterator<Item = u64>) {
        if grid.is_tracking() && self.in_commit_order(fair) {
            offsets.for_each(|at| grid.signal(at));
        }
    }

    /// Records that the block has ended.
    pub fn end(&mut self, grid: &GridShadow) {
        self.leave_copies();
        if grid.is_tracking() {
            self.publish(grid, When::Never);
        }
        if !self.lints.is_empty() {
            grid.note(self.block, &self.lints);
        }
    }

    /// Logs the block's accesses to global memory, and drops the details.
    pub(super) fn condense(&mut self) {
        if !self.alone {
            let sparse = self.sparse;
            for (number, known) in self.global.sorted().filter(|(number, _)| is_tracked(*number, sparse)) {
                match known {
                    Known::LineLoad(LineLoad { base, shift, .. }) => {
                        self.pending[Op::Load as usize].add_whole_load(number, self.acquired, (base, shift));
                    }
                    Known::Details(line) => {
                        condense(line, number, self.acquired, |record| self.pending[record.op as usize].add(record));
                    }
                }
            }
        }
        self.global.clear();
    }

    fn publish(&mut self, grid: &GridShadow, released: When) {
        self.condense();
        let in_commit_order = matches!(released, When::At(_)) || matches!(self.acquired, When::At(_));
        grid.publish(self.block, released, &self.pending, in_commit_order);
        self.pending.iter_mut().for_each(Log::clear);
    }
}

#[cfg(test)]
mod tests;
