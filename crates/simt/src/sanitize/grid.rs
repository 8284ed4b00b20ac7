//! Accesses of all blocks of a launch to global memory, and the conflicts among them.
//!
//! The result does not depend on the order in which blocks are added: entries are merged in any order while blocks run
//! in parallel, and compared when all blocks have ended. Two blocks are ordered if the first released its access after
//! it (by a fence of device scope, or a release) and the second acquired before its own (by an atomic, a volatile load,
//! or an acquire). While blocks run in parallel, the first is the one with the lower number, because a block that
//! acquires waits for all earlier blocks. In commit order it is the one whose fence came before the last write to the
//! word that the other one read.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sanitize::ignored::Ignored;
use crate::sanitize::launch_log::LaunchLog;
use crate::sanitize::lines::scattered;
use crate::sanitize::log::Log;
use crate::sanitize::races::{Fault, Hazard};
use crate::sanitize::request::Op;
use crate::sanitize::summary::{Act, Entry, Summary};
use crate::sanitize::when::When;
use crate::sanitize::{log, tag};

/// Shards of the shadow state, which threads can change at the same time.
const SHARDS: usize = 64;
/// When a shard has more entries than this, it tracks every second line only, then every fourth, and so on.
const MOST: usize = 1 << 14;

/// Accesses of two blocks that are not ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockConflict {
    /// The offset of the byte from the start of global memory.
    pub offset: u64,
    /// The access that is at fault, and the other one.
    pub here: Act,
    pub there: Act,
}

impl BlockConflict {
    /// Describes a race, in which the later block is the faulting one.
    fn new(offset: u64, a: Act, b: Act) -> Self {
        let (there, here) = if a.block < b.block { (a, b) } else { (b, a) };
        Self { offset, here, there }
    }

    pub fn fault(&self) -> Fault {
        let ops = [self.here.op, self.there.op];
        if ops.contains(&Op::Store) { Fault::Race } else { Fault::Mixed }
    }
}

#[derive(Debug, Default)]
struct Shard {
    summary: Summary,
    /// Lines are tracked whose hashed number ends in this number of zero bits.
    sparse: u32,
    /// The first conflict found in commit order, with its moment.
    found: Option<(u64, BlockConflict)>,
}

/// A lint of a block.
pub type Lint = (u32, Hazard);

/// The shadow state of a launch.
#[derive(Debug)]
pub struct GridShadow {
    /// False if there is no other block.
    tracking: bool,
    /// The number of blocks, which is also the first moment in commit order.
    blocks: u64,
    clock: AtomicU64,
    /// Accesses of blocks that ran in parallel, not compared yet.
    launch_log: Mutex<LaunchLog>,
    /// The log keeps one in 2 to this power stretches of memory.
    sparse: AtomicU32,
    shards: Vec<Mutex<Shard>>,
    /// The last write, by a block in commit order, to each word that blocks may acquire from.
    signals: Mutex<HashMap<u64, u64>>,
    lints: Mutex<BTreeMap<(Fault, u16, u16), Lint>>,
    /// The number of each function's first source line.
    starts: Vec<u32>,
    /// Findings that are not reported.
    ignored: Ignored,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GridShadow {
    /// Returns the state of `blocks` blocks; `lines` has the number of source lines of each of the kernel's functions.
    pub fn new(sanitize: bool, blocks: u64, lines: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        for count in lines {
            let last = starts.last().copied().unwrap_or(0);
            starts.push(last + count as u32);
        }
        Self {
            tracking: sanitize && blocks > 1 && blocks < u64::from(u32::MAX),
            blocks,
            clock: AtomicU64::new(blocks),
            launch_log: Mutex::new(LaunchLog::new(log::MOST)),
            sparse: AtomicU32::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            signals: Mutex::default(),
            lints: Mutex::default(),
            starts,
            ignored: Ignored::default(),
        }
    }

    /// Returns the shadow state without reports of these findings.
    pub fn ignoring(self, ignored: Ignored) -> Self {
        Self { ignored, ..self }
    }

    /// Findings that are not reported.
    pub const fn ignored(&self) -> Ignored {
        self.ignored
    }

    pub const fn is_tracking(&self) -> bool {
        self.tracking
    }

    /// Returns the number of a source line of a function.
    pub fn line(&self, function: usize, line: u32) -> u16 {
        u16::try_from(self.starts[function] + line).unwrap_or(tag::NO_LINE)
    }

    /// Returns the function and line with a number.
    pub fn position(&self, line: u16) -> Option<(usize, u32)> {
        if line == tag::NO_LINE {
            return None;
        }
        let function = self.starts.partition_point(|&s| s <= u32::from(line)) - 1;
        Some((function, u32::from(line) - self.starts[function]))
    }

    /// Returns the next moment in commit order.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Records a write that other blocks may acquire from.
    pub fn signal(&self, offset: u64) {
        lock(&self.signals).insert(offset / 4, self.tick());
    }

    /// Returns the moment before which everything is acquired by a read of this word.
    pub fn acquired(&self, offset: u64) -> u64 {
        lock(&self.signals).get(&(offset / 4)).map_or(self.blocks, |t| t + 1)
    }

    /// Returns `n` where one in 2ⁿ stretches of memory is tracked by now.
    pub fn sparse(&self) -> u32 {
        self.sparse.load(Ordering::Relaxed)
    }

    /// Adds a block's accesses and the moments of their release; `in_commit_order` where blocks run in commit order.
    pub fn publish(&self, block: u32, released: When, logs: &[Log], in_commit_order: bool) {
        let mut launch_log = lock(&self.launch_log);
        if in_commit_order {
            // The order is known from now on.
            let mut publisher = self.publisher(false);
            launch_log.close(|number, entry| publisher.add(number, entry));
        }
        for log in logs.iter().filter(|log| !log.is_empty()) {
            if launch_log.is_closed() {
                let mut publisher = self.publisher(in_commit_order);
                let sparse = launch_log.sparse();
                let access_records = log::access_records(log.words(), |number| log::is_tracked(number, sparse));
                access_records.for_each(|record| publisher.add(record.number, Entry::new(&record, block, released)));
            } else {
                launch_log.add(block, released, log);
            }
        }
        self.sparse.store(launch_log.sparse(), Ordering::Relaxed);
    }

    /// Adds entries one by one; `in_commit_order` where blocks run in commit order.
    fn publisher(&self, in_commit_order: bool) -> Publisher<'_> {
        Publisher { grid: self, in_commit_order, held: None }
    }

    /// Adds the lints of a block.
    pub fn note(&self, block: u32, lints: &[Hazard]) {
        let mut known = lock(&self.lints);
        for hazard in lints {
            let of = (hazard.fault, hazard.tag.line(), hazard.earlier.line());
            let first = known.entry(of).or_insert((block, *hazard));
            if block < first.0 {
                *first = (block, *hazard);
            }
        }
    }

    /// Returns the lints of all blocks, by source lines; for each pair that of the first block.
    pub fn lints(&self) -> Vec<Lint> {
        lock(&self.lints).values().copied().collect()
    }

    /// Compares the accesses after all blocks have ended. Returns those that are not ordered, by address, one per pair
    /// of source lines.
    pub fn conflicts(&self) -> Vec<BlockConflict> {
        let mut publisher = self.publisher(false);
        lock(&self.launch_log).judge(|number, entry| publisher.add(number, entry));
        drop(publisher);
        let mut conflicts = BTreeMap::new();
        let mut add = |when: u64, m: BlockConflict| {
            let order = (m.fault(), when, m.offset, m.here, m.there);
            let of = (m.here.line, m.there.line);
            let known = conflicts.entry(of).or_insert((order, m));
            if order < known.0 {
                *known = (order, m);
            }
        };
        for shard in &self.shards {
            let shard = lock(shard);
            if let Some((when, conflict)) = shard.found {
                add(when, conflict);
            }
            for (&number, entries) in &shard.summary.lines {
                if entries.len() < 2 || entries.iter().all(|e| matches!(e.op, Op::Load | Op::Poll)) {
                    continue;
                }
                for (k, x) in entries.iter().enumerate() {
                    for y in &entries[k + 1..] {
                        if let Some((byte, a, b)) = x.conflict(y) {
                            let offset = u64::from(number) * 128 + byte as u64;
                            add(u64::MAX, BlockConflict::new(offset, a, b));
                        }
                    }
                }
            }
        }
        let mut all: Vec<_> = conflicts.into_values().collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, conflict)| conflict).collect()
    }

    /// Returns `n` where one in `n` stretches of memory was tracked; `None` if all were.
    pub fn sampled(&self) -> Option<u64> {
        let sparse = self.sparse() + self.shards.iter().map(|s| lock(s).sparse).max().unwrap_or(0);
        (sparse > 0).then_some(1 << sparse)
    }
}

/// Adds entries; keeps the lock of the shard that it used last.
#[derive(Debug)]
struct Publisher<'b> {
    grid: &'b GridShadow,
    in_commit_order: bool,
    held: Option<(usize, MutexGuard<'b, Shard>)>,
}

impl Publisher<'_> {
    fn add(&mut self, number: u32, entry: Entry) {
        let at = (number / 32) as usize % SHARDS;
        let time = self.in_commit_order.then(|| self.grid.clock.load(Ordering::Relaxed));
        if let Some((held, shard)) = &mut self.held
            && *held == at
        {
            return shard.add(number, entry, time);
        }
        // Releases one lock before it takes the next.
        self.held = None;
        let mut shard = lock(&self.grid.shards[at]);
        shard.add(number, entry, time);
        self.held = Some((at, shard));
    }
}

impl Shard {
    fn add(&mut self, number: u32, entry: Entry, time: Option<u64>) {
        if scattered(number).trailing_zeros() < self.sparse {
            return;
        }
        let Some(time) = time else {
            self.summary.add(number, entry);
            self.thin();
            return;
        };
        if let Some((byte, a, b)) = self.summary.add_in_commit_order(number, entry) {
            let conflict = BlockConflict::new(u64::from(number) * 128 + byte as u64, a, b);
            let worse = self.found.is_none_or(|(_, old)| conflict.fault() < old.fault());
            if worse {
                self.found = Some((time, conflict));
            }
        }
        self.thin();
    }

    /// Drops every second line while there are too many entries. The result depends on their final number only, not on
    /// the order in which they came.
    fn thin(&mut self) {
        while self.summary.entries > MOST {
            self.sparse += 1;
            let sparse = self.sparse;
            self.summary.lines.retain(|&number, _| scattered(number).trailing_zeros() >= sparse);
            self.summary.entries = self.summary.lines.values().map(Vec::len).sum();
        }
    }
}

#[cfg(test)]
mod tests;
