//! Shadow state of one block: which threads accessed what and when, and the notes for the report.

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
use crate::sanitize::knowledge::{NOTHING, SetId};
use crate::sanitize::lines::Line;
use crate::sanitize::log::{AccessRecord, Log, is_tracked, words_of};
use crate::sanitize::order::{Order, Release};
use crate::sanitize::part::{ONE_THREAD, Part, judge};
use crate::sanitize::races::{Fault, Hazard, Ignored, Touch};
use crate::sanitize::request::{Op, Request, Space, Strength};
use crate::sanitize::summary::{NEVER, condense};
use crate::sanitize::table::{Known, LineLoad, Table};
use crate::sanitize::tag::{EPOCHS, Tag};
use crate::sanitize::words::{WORDS, byte_mask};

use bulk::BulkCopies;
use copies::Copies;
use locals::Locals;
use remote::RemoteAccesses;

/// The sanitizer's state for one block.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of a block")]
pub struct BlockShadow {
    pub(super) shared: Vec<Line>,
    pub(super) global: Table,
    /// Current epoch; zero if accesses are not checked.
    pub(super) epoch: u32,
    /// Order of the accesses in this epoch.
    pub(super) order: Order,
    /// Logs, one per kind of access, of the accesses before the last acquire and of those that did not fit into the
    /// detailed lines.
    pending: [Log; 4],
    /// Accesses that no release of the block includes yet, with their words' tags.
    unreleased: Vec<(AccessRecord, Box<[Tag; WORDS]>)>,
    /// Number of releases so far, and key of the last one.
    releases: u32,
    last_release: Option<(u32, u32, u32)>,
    /// Whether the block has had an effect in commit order.
    committed: bool,
    in_turns: bool,
    is_in_cluster: bool,
    cluster: u64,
    block: u32,
    /// Whether no other block can conflict with this one.
    alone: bool,
    /// Which ranges of memory were tracked when the block began: one in `2^sparse`.
    sparse: u32,
    lints: Vec<Hazard>,
    /// Classes of findings that are not reported.
    pub(super) ignored: Ignored,
    /// Asynchronous copies, by warp.
    pub(super) copies: Vec<Copies>,
    pub(super) bulk: BulkCopies,
    pub(super) remote: RemoteAccesses,
    pub(super) locals: Vec<Locals>,
}

impl BlockShadow {
    /// Resets the state for a block that may access the given bytes of its shared memory.
    pub fn begin(&mut self, grid: &GridShadow, block: u32, bytes: Range<usize>, cluster: u64) {
        let lines = if bytes.is_empty() { 0 } else { bytes.end.div_ceil(4 * WORDS) };
        self.shared.resize_with(lines, Line::default);
        self.shared.iter_mut().skip(bytes.start / (4 * WORDS)).for_each(Line::begin);
        self.global.clear();
        self.pending.iter_mut().for_each(Log::clear);
        self.unreleased.clear();
        self.order.begin(grid.knowledge());
        self.advance();
        (self.releases, self.last_release, self.committed, self.in_turns) = (0, None, false, false);
        (self.block, self.cluster, self.is_in_cluster) = (block, cluster, false);
        (self.alone, self.sparse) = (!grid.is_tracking(), grid.sparse());
        self.lints.clear();
        self.ignored = grid.ignored();
        self.copies.iter_mut().for_each(Copies::clear);
        self.bulk.clear();
        self.remote.begin(self.epoch);
        self.locals.iter_mut().for_each(Locals::clear);
    }

    /// Records a race-free write to shared memory.
    pub fn shared_written(&mut self, offset: u64, bytes: u32) {
        if let Some(line) = self.shared.get_mut((offset / 128) as usize) {
            line.written |= (u128::MAX >> (128 - bytes)) << (offset % 128);
        }
    }

    /// Bit mask of the `bytes` bytes at `offset` of shared memory that were never written. They must lie in one line.
    pub fn shared_unwritten(&self, offset: u64, bytes: u32) -> u32 {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.shared.get((offset / 128) as usize).map_or(0, |line| ((mask & !line.written) >> (offset % 128)) as u32)
    }

    /// Marks bytes of shared memory as undefined, given as a bit mask from `offset`. They must lie in one line.
    pub fn shared_undefined(&mut self, offset: u64, bytes: u32) {
        if let Some(line) = self.shared.get_mut((offset / 128) as usize) {
            line.written &= !(u128::from(bytes) << (offset % 128));
        }
    }

    /// Classes of findings that are currently not reported.
    pub const fn ignored(&self) -> Ignored {
        self.ignored
    }

    /// Sets the classes of findings that are not reported from now on.
    pub const fn set_ignored(&mut self, ignored: Ignored) {
        self.ignored = ignored;
    }

    /// Whether these bytes of shared memory, within one line, were all written.
    pub fn is_shared_written(&self, offset: u64, bytes: u32) -> bool {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.shared.get((offset / 128) as usize).is_none_or(|line| line.written & mask == mask)
    }

    /// Starts a new epoch, which orders all earlier accesses of the block before all later ones.
    pub fn barrier(&mut self) {
        if self.epoch != 0 {
            if self.order.is_foreign() {
                self.collect(None, true);
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.order.begin_epoch(self.epoch);
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

    /// Orders all earlier accesses of the lanes in `mask` before their later ones. `alive` are the lanes that have not
    /// exited.
    #[inline]
    pub fn warp_sync(&mut self, warp: u32, mask: u32, alive: u32) {
        if self.order.is_foreign() && self.order.lanes_differ(warp, mask) {
            self.collect(None, true);
        }
        self.order.sync(warp, mask, alive);
    }

    /// Executes a fence for the lanes in `mask`, or only its acquiring or releasing half.
    pub fn fence(&mut self, warp: u32, mask: u32, halves: (bool, bool), device: bool) {
        if self.order.has_pending_blocks(warp) {
            self.collect(None, true);
        }
        self.order.fence(warp, mask, halves, device);
    }

    /// Applies a strong store or an atomic to the order within the block. `lanes` yields lanes with their offsets.
    pub fn strong_write(
        &mut self,
        space: Space,
        lanes: impl Iterator<Item = (usize, u64)>,
        warp: u32,
        (releases, atomic): (bool, bool),
    ) {
        if releases || !self.order.is_quiet() {
            self.order.write(space, lanes, warp, (releases, atomic));
        }
    }

    /// Applies a strong load, or the load of an atomic, to the order within the block.
    pub fn strong_read(&mut self, space: Space, lanes: impl Iterator<Item = (usize, u64)>, warp: u32, acquires: bool) {
        if self.order.is_foreign() && acquires {
            self.collect(None, true);
        }
        self.order.read(space, lanes, warp, acquires);
    }

    pub fn arrive(&mut self, object: u64, thread: (u32, usize)) {
        self.order.arrive(object, thread);
    }

    /// Arrives at a barrier without waiting.
    pub fn arrive_at_barrier(&mut self, id: u32, warp: u32, mask: u32) {
        self.order.arrive_at_barrier(id, warp, mask);
    }

    /// Opens a barrier for part of the block, given the waiting warps and their lanes.
    pub fn open_barrier(&mut self, id: u32, waiting: impl Iterator<Item = (u32, u32)> + Clone) {
        if self.order.is_foreign() {
            self.collect(None, true);
        }
        self.order.open_barrier(id, waiting);
    }

    /// Checks and records a thread's access to an mbarrier object.
    pub fn object(&mut self, by: Sender, offset: u64, op: Op) -> Option<Hazard> {
        let tag = self.now(by.warp, by.line).of_lane(u64::from(by.lane));
        let (epoch, ignored, synced) = (self.epoch, self.ignored, self.order.synced(by.warp));
        let (number, from) = (offset / 128, (offset / 4) as usize % WORDS);
        let (line, order) = self.line_and_order(Space::Shared, number)?;
        line.expand(epoch);
        let bytes = byte_mask(from, 2);
        let part = Part { op, from, count: 2, done: 0, shift: ONE_THREAD, bytes, base: tag, synced };
        let touch = |k: usize| Touch { word: from + k, op, tag, value: k as u32, silent: false };
        let found = part.conflict(line, (Space::Shared, number), (epoch, ignored), order, touch);
        if found.is_none_or(|hazard| hazard.fault.is_lint()) {
            part.record(line, epoch, |_| 0);
            self.keep(found);
            return None;
        }
        found
    }

    /// Returns a tag with the current moment, for thread zero of a warp.
    pub(super) fn now(&self, warp: u32, line: u16) -> Tag {
        Tag::new(self.epoch, self.order.time(warp), warp, line)
    }

    /// Records a request. `value` is the word that a lane stores; `silent` is whether a lane's store leaves memory
    /// unchanged. Returns the fault that ends the launch, if any; lints are only recorded.
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
        let tag = if r.strength == Strength::Volatile { tag.volatile() } else { tag };
        let tag = if r.is_strong_store() { tag.write() } else { tag };
        let first = r.mask.trailing_zeros();
        if r.together && matches!(r.op, Op::Load | Op::Poll) {
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
        self.line_and_order(space, number).map(|(line, _)| line)
    }

    #[inline]
    pub(super) fn line_and_order(&mut self, space: Space, number: u64) -> Option<(&mut Line, &Order)> {
        let line = match space {
            Space::Shared => self.shared.get_mut(number as usize)?,
            Space::Global => self.global.line(number as u32),
        };
        Some((line, &self.order))
    }

    /// Checks and records a request whose words are contiguous.
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
            let synced = self.order.synced(r.warp);
            let part = Part { op: r.op, from, count, done, shift: each.trailing_zeros(), bytes, base, synced };
            let lane_and_word = |k: usize| (first + (done + k) / each, (done + k) % each);
            let touch = |k: usize| {
                let (lane, word) = lane_and_word(k);
                let silent = r.stores() && silent(lane);
                Touch { word: from + k, op: r.op, tag: part.tag(k), value: value(lane, word), silent }
            };
            let (epoch, ignored, block) = (self.epoch, self.ignored, self.block);
            let Some((line, order)) = self.line_and_order(r.space, number) else { break };
            line.expand(epoch);
            let mut lint = None;
            match judge(line, (r.space, number), (&part, epoch, ignored), order, touch) {
                Some(hazard) if hazard.fault.is_lint() => lint = Some(hazard),
                None => {}
                fatal => return fatal,
            }
            part.record(line, epoch, |k| value(lane_and_word(k).0, lane_and_word(k).1));
            if r.narrow {
                part.narrow(line, block);
            }
            self.keep(lint);
            done += count;
        }
        None
    }

    /// Checks and records a request lane by lane. Lanes of one instruction do not conflict with each other, so if two
    /// of them may store to the same word, all lanes are checked before any is recorded.
    fn touch_each(
        &mut self,
        r: &Request<'_>,
        mask: u32,
        tag: Tag,
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        if !r.stores() || r.is_rising(mask) {
            return self.pass(r, (mask, tag), (true, true), &value, &silent);
        }
        let found = self.pass(r, (mask, tag), (true, false), &value, &silent);
        found.or_else(|| self.pass(r, (mask, tag), (false, true), &value, &silent))
    }

    /// Makes one pass over the lanes of a request, which checks them, records them, or does both.
    fn pass(
        &mut self,
        r: &Request<'_>,
        (mask, tag): (u32, Tag),
        (checks, records): (bool, bool),
        value: impl Fn(usize, usize) -> u32,
        silent: impl Fn(usize) -> bool,
    ) -> Option<Hazard> {
        let (epoch, ignored, synced) = (self.epoch, self.ignored, self.order.synced(r.warp));
        let block = self.block;
        let narrow = if r.bytes < 4 { (1_u8 << r.bytes) - 1 } else { 0xf };
        let count = (r.bytes as usize).div_ceil(4);
        let mut lanes = mask;
        while lanes != 0 {
            let number = r.offset(lanes.trailing_zeros() as usize) / 128;
            let mut lint = None;
            let Some((line, order)) = self.line_and_order(r.space, number) else { break };
            line.expand(epoch);
            while lanes != 0 {
                let lane = (lanes.trailing_zeros() & 31) as usize;
                let offset = r.offset(lane);
                if offset / 128 != number {
                    break;
                }
                lanes &= lanes - 1;
                // Accesses are aligned to their size, so each lies within one line.
                let base = tag.of_lane(lane as u64).of_bytes(narrow << (offset & 3));
                let from = (offset / 4) as usize % WORDS;
                let bytes = (u128::MAX >> (128 - r.bytes)) << (offset % 128);
                let part = Part { op: r.op, from, count, done: 0, shift: ONE_THREAD, bytes, base, synced };
                let value = |word: usize| value(lane, word) << (8 * (offset & 3));
                if checks {
                    let touch = |word: usize| Touch {
                        word: from + word,
                        op: r.op,
                        tag: base,
                        value: value(word),
                        silent: r.stores() && silent(lane),
                    };
                    match judge(line, (r.space, number), (&part, epoch, ignored), order, touch) {
                        Some(hazard) if hazard.fault.is_lint() => lint = lint.or(Some(hazard)),
                        None => {}
                        fatal => return fatal,
                    }
                }
                if records {
                    part.record(line, epoch, value);
                    if r.narrow {
                        part.narrow(line, block);
                    }
                }
            }
            self.keep(lint);
        }
        None
    }

    /// Records a lint, unless one with the same fault and source lines is known.
    pub(super) fn keep(&mut self, lint: Option<Hazard>) {
        let parts = |h: &Hazard| (h.fault, h.tag.line(), h.earlier.line());
        // In a cluster, waiting for a bulk copy orders lanes in ways that are not tracked.
        if let Some(lint) = lint
            && !(self.is_in_cluster && lint.fault == Fault::Warp)
            && self.ignored.reports(lint.fault)
            && !self.lints.iter().any(|known| parts(known) == parts(&lint))
        {
            self.lints.push(lint);
        }
    }

    /// Records two arrivals at one barrier from different source lines. Both are given as warp, lane and line.
    pub fn note_places(&mut self, first: (u32, u32, u16), now: (u32, u32, u16)) {
        let tag = |(warp, lane, line): (u32, u32, u16)| self.now(warp, line).of_lane(u64::from(lane));
        let (tag, earlier) = (tag(now), tag(first));
        let (space, op) = (Space::Shared, Op::Load);
        self.keep(Some(Hazard { fault: Fault::Places, space, offset: 0, now: op, tag, before: op, earlier }));
    }

    /// Records that two lanes of a warp store different values to the same address in one instruction.
    pub fn note_lanes(&mut self, (space, offset): (Space, u64), (warp, line): (u32, u16), lanes: (usize, usize)) {
        let tag = |lane: usize| self.now(warp, line).of_lane(lane as u64);
        let (tag, earlier) = (tag(lanes.1), tag(lanes.0));
        self.keep(Some(Hazard { fault: Fault::Lanes, space, offset, now: Op::Store, tag, before: Op::Store, earlier }));
    }

    /// Records that lanes exited without executing a warp operation that names them. `here` is the warp, a lane that
    /// did execute it, and the source line.
    pub fn note_absent(&mut self, lanes: u32, here: (u32, u32, u16)) {
        let (warp, lane, line) = here;
        let tag = self.now(warp, line).of_lane(u64::from(lane));
        let (space, op, offset) = (Space::Shared, Op::Load, u64::from(lanes));
        self.keep(Some(Hazard { fault: Fault::Absent, space, offset, now: op, tag, before: op, earlier: tag }));
    }

    /// Records that the block takes turns with others from the start.
    pub const fn run_in_turns(&mut self) {
        (self.committed, self.in_turns, self.is_in_cluster) = (true, true, true);
    }

    /// Records that the block has had an effect in commit order.
    pub const fn note_commit(&mut self) {
        self.committed = true;
    }

    /// Handles reads of words through which other blocks may have released something. `lanes` yields lanes with their
    /// offsets.
    pub fn acquire(
        &mut self,
        grid: &GridShadow,
        fair: bool,
        lanes: impl Iterator<Item = (usize, u64)>,
        (warp, acquires): (u32, bool),
    ) {
        self.forget_remote();
        self.in_turns |= fair && self.committed;
        if !grid.is_tracking() || !grid.has_releases() {
            return;
        }
        for (lane, at) in lanes {
            let set = grid.read(at);
            if set == NOTHING {
                continue;
            }
            if acquires {
                self.collect(None, true);
            }
            self.order.acquire_blocks((warp, lane), set, acquires);
        }
    }

    /// Handles writes to words through which other blocks may acquire something. `lanes` yields lanes with their
    /// offsets.
    pub fn release(
        &mut self,
        grid: &GridShadow,
        fair: bool,
        lanes: impl Iterator<Item = (usize, u64)>,
        (warp, releases, atomic): (u32, bool, bool),
    ) {
        self.in_turns |= fair && self.committed;
        if !grid.is_tracking() {
            return;
        }
        for (lane, at) in lanes {
            match self.order.release(self.epoch, (warp, lane), releases) {
                Some(release) => {
                    if release.key.is_none() || release.key != self.last_release {
                        self.publish(grid, &release);
                    }
                    grid.write(at, (release.blocks(), self.block, self.releases), atomic);
                }
                None if atomic => {}
                None => grid.clear(at),
            }
        }
    }

    /// Releases all earlier epochs to the other blocks of the cluster.
    fn release_epochs(&mut self, grid: &GridShadow) {
        if grid.is_tracking() {
            let release = Release::of_epochs_before(self.epoch, self.order.base());
            self.publish(grid, &release);
            grid.release_to_cluster(self.cluster, (release.blocks(), self.block, self.releases));
        }
    }

    /// Acquires what the other blocks of the cluster have released.
    fn acquire_cluster(&mut self, grid: &GridShadow) {
        self.forget_remote();
        if grid.is_tracking() {
            self.collect(None, true);
            self.order.acquire_for_all(grid.acquire_from_cluster(self.cluster));
        }
    }

    pub fn end(&mut self, grid: &GridShadow) {
        self.leave_copies();
        if grid.is_tracking() {
            self.condense();
            for (record, _) in self.unreleased.drain(..) {
                self.pending[record.op as usize].add(&record);
            }
            grid.publish(self.block, NEVER, &self.pending, self.in_turns);
            self.pending.iter_mut().for_each(Log::clear);
        }
        if !self.lints.is_empty() {
            grid.note(self.block, &self.lints);
        }
    }

    /// Logs the block's accesses to global memory and drops the details.
    pub(super) fn condense(&mut self) {
        self.collect(None, false);
    }

    /// Logs the block's accesses to global memory. Accesses that `release` does not include are kept with their tags,
    /// and if `keeps` is set, so are all accesses of this epoch.
    fn collect(&mut self, release: Option<&Release>, keeps: bool) {
        let Self { global, pending, unreleased, order, epoch, .. } = self;
        if !self.alone {
            let (sparse, base, epoch) = (self.sparse, order.base(), *epoch);
            let exact = release.is_some() || keeps;
            if exact {
                global.settle();
            }
            let mut router =
                Router { pending, unreleased, order, release, since: if keeps { epoch } else { u32::MAX } };
            let is_early = |of: u32| match release {
                _ if order.is_foreign() => false,
                Some(release) => release.includes(of),
                None => !keeps || of != epoch,
            };
            for (number, known) in global.sorted().filter(|(number, _)| is_tracked(*number, sparse)) {
                match known {
                    Known::LineLoad(load) if is_early(load.epoch) => {
                        router.pending[Op::Load as usize].add_whole_load(number, base, (load.base, load.shift));
                    }
                    Known::LineLoad(load) => router.route_load(number, load, base),
                    Known::Details(line) => condense(line, number, base, |record, tags| router.route(record, tags)),
                }
            }
        }
        if release.is_some() || keeps {
            self.global.forget_logged();
        } else {
            self.global.clear();
        }
    }

    /// Publishes the accesses that a release includes.
    fn publish(&mut self, grid: &GridShadow, release: &Release) {
        let earlier = std::mem::take(&mut self.unreleased);
        self.collect(Some(release), false);
        for (record, tags) in earlier {
            let late = words_of(record.bytes) & late_words(&tags, |tag| !release.covers(tag));
            let punctual = record.restricted(!late);
            if punctual.bytes != 0 {
                self.pending[record.op as usize].add(&punctual);
            }
            if late != 0 {
                self.unreleased.push((record.restricted(late), tags));
            }
        }
        (self.releases, self.last_release) = (self.releases + 1, release.key);
        grid.publish(self.block, self.releases, &self.pending, self.in_turns);
        self.pending.iter_mut().for_each(Log::clear);
    }
}

/// Maximum number of records that a block keeps until a release includes them. Further ones count as part of the next
/// release.
const MOST_UNRELEASED: usize = 4096;

/// Separates the accesses of a block that its next release includes from its other accesses.
struct Router<'r> {
    pending: &'r mut [Log; 4],
    unreleased: &'r mut Vec<(AccessRecord, Box<[Tag; WORDS]>)>,
    order: &'r Order,
    release: Option<&'r Release>,
    /// First epoch whose accesses are kept until a release.
    since: u32,
}

impl Router<'_> {
    fn route(&mut self, record: AccessRecord, tags: &[Tag; WORDS]) {
        if self.release.is_none() && self.since == u32::MAX && !self.order.is_foreign() {
            return self.pending[record.op as usize].add(&record);
        }
        let is_late = |tag: Tag| match self.release {
            Some(release) => !release.covers(tag),
            None => tag.epoch() >= self.since,
        };
        let late = late_words(tags, is_late);
        for record in by_knowledge(record, self.order) {
            let late = words_of(record.bytes) & late;
            if late == 0 || self.unreleased.len() >= MOST_UNRELEASED {
                self.pending[record.op as usize].add(&record);
                continue;
            }
            let punctual = record.restricted(!late);
            if punctual.bytes != 0 {
                self.pending[record.op as usize].add(&punctual);
            }
            self.unreleased.push((record.restricted(late), Box::new(*tags)));
        }
    }

    /// Routes the load of a whole line.
    fn route_load(&mut self, number: u32, load: LineLoad, acquired: SetId) {
        let who = std::array::from_fn(|w| load.base + (w as u32 >> load.shift));
        let tags = who.map(|who| Tag::at(who, load.epoch, load.time));
        let (op, bytes, values) = (Op::Load, u128::MAX, [0; WORDS]);
        self.route(AccessRecord { number, op, bytes, acquired, who, values, partial: None }, &tags);
    }
}

/// Returns the words whose tags are late, i.e. not included in the release.
fn late_words(tags: &[Tag; WORDS], is_late: impl Fn(Tag) -> bool) -> u32 {
    tags.iter().zip(0..).fold(0, |late, (tag, w)| late | u32::from(is_late(*tag)) << w)
}

/// Splits a record into parts whose threads have the same knowledge of other blocks.
fn by_knowledge(record: AccessRecord, order: &Order) -> Vec<AccessRecord> {
    if !order.is_foreign() {
        return vec![record];
    }
    let mut left = words_of(record.bytes);
    let acquired = record.who.map(|who| order.acquired(Tag::of_who(who).thread()));
    let mut parts = Vec::new();
    while left != 0 {
        let set = acquired[left.trailing_zeros() as usize % WORDS];
        let alike = acquired.iter().zip(0..).fold(0, |m, (other, w)| m | u32::from(*other == set) << w) & left;
        parts.push(AccessRecord { acquired: set, ..record.restricted(alike) });
        left &= !alike;
    }
    parts
}

#[cfg(test)]
mod tests;
