//! Accesses of all blocks of a launch to global memory, and the conflicts among them.
//!
//! Blocks that run in parallel wait for all earlier blocks before they have an effect that others can see. Their
//! accesses are therefore kept until all blocks have ended, and then compared in block order. If blocks take turns,
//! accesses are compared as they come. Two accesses are ordered if the second one's thread knows of a release that the
//! first block made after the first access.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sanitize::knowledge::{Knowledge, NOTHING, SetId};
use crate::sanitize::launch_log::LaunchLog;
use crate::sanitize::lines::scattered;
use crate::sanitize::log::Log;
use crate::sanitize::races::{Fault, Hazard, Ignored};
use crate::sanitize::request::Op;
use crate::sanitize::summary::{Act, Conflict, Entry, Summary};
use crate::sanitize::{log, tag};

/// Number of shards of the shadow state, which threads can change concurrently.
const SHARDS: usize = 64;
/// Maximum number of entries of a shard. Beyond it, the shard tracks only every second line, then every fourth, and so
/// on.
const MOST: usize = 1 << 14;

/// Unordered accesses by two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockConflict {
    /// Offset of the byte from the start of global memory.
    pub offset: u64,
    /// The access that is reported as the fault, and the other one.
    pub here: Act,
    pub there: Act,
    /// Whether one of the blocks has acquired something from the other, and so relies on an order.
    pub synchronised: bool,
}

impl BlockConflict {
    fn new(number: u32, conflict: &Conflict) -> Self {
        let &Conflict { byte, old, new, synchronised } = conflict;
        let (there, here) = if old.block < new.block { (old, new) } else { (new, old) };
        Self { offset: u64::from(number) * 128 + byte as u64, here, there, synchronised }
    }

    pub fn fault(&self) -> Fault {
        let ops = [self.here.op, self.there.op];
        if self.synchronised || ops.contains(&Op::Store) { Fault::Race } else { Fault::Mixed }
    }
}

#[derive(Debug, Default)]
struct Shard {
    summary: Summary,
    /// The shard tracks only lines whose hashed number ends in at least this many zero bits.
    sparse: u32,
    /// Worst conflict for each pair of source lines.
    found: BTreeMap<(u16, u16), BlockConflict>,
}

pub type Lint = (u32, Hazard);

/// Shadow state of a launch.
#[derive(Debug)]
pub struct GridShadow {
    /// Whether the launch has more than one block, so that conflicts between blocks are possible.
    tracking: bool,
    clock: AtomicU64,
    /// Whether any block has released something.
    releases: AtomicBool,
    /// Accesses of blocks that ran in parallel and have not been compared yet.
    launch_log: Mutex<LaunchLog>,
    /// One in `2^sparse` ranges of memory is kept in the log.
    sparse: AtomicU32,
    shards: Vec<Mutex<Shard>>,
    /// What threads know about other blocks.
    knowledge: Arc<Mutex<Knowledge>>,
    /// For each address in global memory, what the last strong store and the atomics after it released; then what each
    /// cluster released.
    released: Mutex<(HashMap<u64, SetId>, HashMap<u64, SetId>)>,
    lints: Mutex<BTreeMap<(Fault, u16, u16), Lint>>,
    /// For each function, the number of its first source line.
    starts: Vec<u32>,
    /// Classes of findings that are not reported.
    ignored: Ignored,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GridShadow {
    /// Returns the state for `blocks` blocks. `lines` has the number of source lines of each function of the kernel.
    pub fn new(sanitize: bool, blocks: u64, lines: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        for count in lines {
            let last = starts.last().copied().unwrap_or(0);
            starts.push(last + count as u32);
        }
        Self {
            tracking: sanitize && blocks > 1 && blocks < u64::from(u32::MAX),
            clock: AtomicU64::new(1),
            releases: AtomicBool::new(false),
            launch_log: Mutex::new(LaunchLog::new(log::MOST)),
            sparse: AtomicU32::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            knowledge: Arc::new(Mutex::new(Knowledge::new(blocks))),
            released: Mutex::default(),
            lints: Mutex::default(),
            starts,
            ignored: Ignored::default(),
        }
    }

    /// Sets the classes of findings that are not reported.
    pub fn ignoring(self, ignored: Ignored) -> Self {
        Self { ignored, ..self }
    }

    /// Classes of findings that are not reported.
    pub const fn ignored(&self) -> Ignored {
        self.ignored
    }

    pub const fn is_tracking(&self) -> bool {
        self.tracking
    }

    /// Returns the number that stands for a source line of a function.
    pub fn line(&self, function: usize, line: u32) -> u16 {
        u16::try_from(self.starts[function] + line).unwrap_or(tag::NO_LINE)
    }

    /// Returns the function and source line that a number stands for.
    pub fn position(&self, line: u16) -> Option<(usize, u32)> {
        if line == tag::NO_LINE {
            return None;
        }
        let function = self.starts.partition_point(|&s| s <= u32::from(line)) - 1;
        Some((function, u32::from(line) - self.starts[function]))
    }

    /// Returns the next moment of the clock that orders blocks of a cluster.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    pub fn knowledge(&self) -> Arc<Mutex<Knowledge>> {
        Arc::clone(&self.knowledge)
    }

    /// Whether any block has released anything.
    pub fn has_releases(&self) -> bool {
        self.releases.load(Ordering::Relaxed)
    }

    /// Records a strong store that releases nothing.
    pub fn clear(&self, offset: u64) {
        if self.has_releases() {
            lock(&self.released).0.remove(&offset);
        }
    }

    /// Records a block's strong store or atomic, along with its release and the knowledge that it passes on.
    pub fn write(&self, offset: u64, (set, block, release): (SetId, u32, u32), atomic: bool) {
        self.releases.store(true, Ordering::Relaxed);
        let set = lock(&self.knowledge).with(set, block, release);
        let places = &mut lock(&self.released).0;
        if atomic {
            let known = places.entry(offset).or_insert(NOTHING);
            *known = lock(&self.knowledge).join(*known, set);
        } else {
            places.insert(offset, set);
        }
    }

    /// Returns what a strong load from this address acquires.
    pub fn read(&self, offset: u64) -> SetId {
        lock(&self.released).0.get(&offset).copied().unwrap_or(NOTHING)
    }

    /// Records a block's release to all blocks of its cluster.
    pub fn release_to_cluster(&self, cluster: u64, (set, block, release): (SetId, u32, u32)) {
        let set = lock(&self.knowledge).with(set, block, release);
        let clusters = &mut lock(&self.released).1;
        let known = clusters.entry(cluster).or_insert(NOTHING);
        *known = lock(&self.knowledge).join(*known, set);
    }

    /// Returns what the blocks of a cluster have released to each other.
    pub fn acquire_from_cluster(&self, cluster: u64) -> SetId {
        lock(&self.released).1.get(&cluster).copied().unwrap_or(NOTHING)
    }

    /// Returns `n` if one in `2^n` ranges of memory is currently tracked.
    pub fn sparse(&self) -> u32 {
        self.sparse.load(Ordering::Relaxed)
    }

    /// Adds the accesses that a block made before its release number `released`. `in_turns`: blocks take turns.
    pub fn publish(&self, block: u32, released: u32, logs: &[Log], in_turns: bool) {
        let mut launch_log = lock(&self.launch_log);
        if in_turns {
            // From now on, accesses come in order.
            let mut publisher = self.publisher();
            launch_log.close(|number, entry| publisher.add(number, entry));
        }
        // Strong accesses are published first.
        let ops = [Op::Change, Op::Poll, Op::Store, Op::Load];
        for log in ops.iter().filter_map(|op| logs.get(*op as usize)).filter(|log| !log.is_empty()) {
            if launch_log.is_closed() {
                let mut publisher = self.publisher();
                let sparse = launch_log.sparse();
                let access_records = log::access_records(log.words(), |number| log::is_tracked(number, sparse));
                access_records.for_each(|record| publisher.add(record.number, Entry::new(&record, block, released)));
            } else {
                launch_log.add(block, released, log);
            }
        }
        self.sparse.store(launch_log.sparse(), Ordering::Relaxed);
    }

    fn publisher(&self) -> Publisher<'_> {
        Publisher { grid: self, knowledge: lock(&self.knowledge), held: None }
    }

    /// Records a block's lints, keeping the first block for each pair of lines.
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

    /// Returns the lints of all blocks, ordered by source lines. Of several lints for a pair of lines, returns the
    /// first block's.
    pub fn lints(&self) -> Vec<Lint> {
        lock(&self.lints).values().copied().collect()
    }

    /// Called after all blocks have ended. Compares their accesses and returns one unordered pair for each pair of
    /// source lines, ordered by address.
    pub fn conflicts(&self) -> Vec<BlockConflict> {
        let mut publisher = self.publisher();
        lock(&self.launch_log).judge(|number, entry| publisher.add(number, entry));
        drop(publisher);
        let order = |c: &BlockConflict| (c.fault(), c.offset, c.here, c.there);
        let mut conflicts: BTreeMap<(u16, u16), BlockConflict> = BTreeMap::new();
        for shard in &self.shards {
            for (lines, conflict) in &lock(shard).found {
                let known = conflicts.entry(*lines).or_insert(*conflict);
                if order(conflict) < order(known) {
                    *known = *conflict;
                }
            }
        }
        let mut all: Vec<_> = conflicts.into_values().collect();
        all.sort_by_key(order);
        all
    }

    /// Returns `n` if only one in `n` ranges of memory was tracked.
    pub fn sampled(&self) -> Option<u64> {
        let sparse = self.sparse() + self.shards.iter().map(|s| lock(s).sparse).max().unwrap_or(0);
        (sparse > 0).then_some(1 << sparse)
    }
}

/// Adds entries. Keeps the lock of the shard that it used last.
#[derive(Debug)]
struct Publisher<'b> {
    grid: &'b GridShadow,
    knowledge: MutexGuard<'b, Knowledge>,
    held: Option<(usize, MutexGuard<'b, Shard>)>,
}

impl Publisher<'_> {
    fn add(&mut self, number: u32, entry: Entry) {
        let at = (number / 32) as usize % SHARDS;
        if let Some((held, shard)) = &mut self.held
            && *held == at
        {
            return shard.add(number, entry, &self.knowledge);
        }
        // Release one lock before taking the next.
        self.held = None;
        let mut shard = lock(&self.grid.shards[at]);
        shard.add(number, entry, &self.knowledge);
        self.held = Some((at, shard));
    }
}

impl Shard {
    fn add(&mut self, number: u32, entry: Entry, knowledge: &Knowledge) {
        if scattered(number).trailing_zeros() < self.sparse {
            return;
        }
        if let Some(conflict) = self.summary.add(number, entry, knowledge) {
            let conflict = BlockConflict::new(number, &conflict);
            let known = self.found.entry((conflict.here.line, conflict.there.line)).or_insert(conflict);
            let order = |c: &BlockConflict| (c.fault(), c.offset, c.here, c.there);
            if order(&conflict) < order(known) {
                *known = conflict;
            }
        }
        self.thin();
    }

    /// Drops about half of the lines while there are too many entries. The result does not depend on the order of the
    /// entries.
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
