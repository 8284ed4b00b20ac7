//! What the blocks of a launch did to global memory, and which of their accesses conflict.
//!
//! Nothing here depends on which block came first: entries are merged in any order while blocks run in parallel, and
//! judged when all have ended. Two blocks are ordered where the first released its access (a fence of the device, a
//! release) after it, and the second acquired (an atomic, a volatile or acquiring load) before its own. While
//! blocks run in parallel "the first" is the one with the lower number, since a block that acquires waits for all
//! earlier blocks; in commit order it is the one whose fence came before the last write to the word that was read.

use super::ledger::Ledger;
use super::lines::scattered;
use super::log::{self, Log};
use super::races::{Fault, Hazard};
use super::request::Op;
use super::summary::{Act, Entry, Summary};
use super::when::When;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts of the shadow state that threads may work on at once.
const SHARDS: usize = 64;
/// Entries of a shard beyond which it looks at every second line only, then at every fourth, and so on.
const MOST: usize = 1 << 14;

/// Accesses of two blocks that are not ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockConflict {
    /// Of the byte, from the start of global memory.
    pub offset: u64,
    /// The access to blame, and the other one.
    pub here: Act,
    pub there: Act,
}

impl BlockConflict {
    /// The later block is blamed.
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
    /// Lines are looked at whose scattered number has so many zeros at its end.
    sparse: u32,
    /// Found while blocks took turns: the first, with its time.
    found: Option<(u64, BlockConflict)>,
}

/// A lint of a block.
pub type Lint = (u32, Hazard);

/// The shadow state of a launch.
#[derive(Debug)]
pub struct GridShadow {
    /// False where there is no other block.
    watching: bool,
    /// The number of blocks, and the first moment of a launch whose blocks run in commit order.
    blocks: u64,
    clock: AtomicU64,
    /// What blocks did while they run in parallel, unjudged.
    ledger: Mutex<Ledger>,
    /// Of how many stretches of memory the ledger keeps one, as a power of two.
    sparse: AtomicU32,
    shards: Vec<Mutex<Shard>>,
    /// The last write, by a block in commit order, to each word that blocks may acquire from.
    signals: Mutex<HashMap<u64, u64>>,
    lints: Mutex<BTreeMap<(Fault, u16, u16), Lint>>,
    /// The number of each function's first source line.
    starts: Vec<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GridShadow {
    /// For `blocks` blocks; `lines` are the counts of source lines of the kernel's functions.
    pub fn new(sanitize: bool, blocks: u64, lines: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        for count in lines {
            let last = starts.last().copied().unwrap_or(0);
            starts.push(last + count as u32);
        }
        Self {
            watching: sanitize && blocks > 1 && blocks < u64::from(u32::MAX),
            blocks,
            clock: AtomicU64::new(blocks),
            ledger: Mutex::new(Ledger::new(log::MOST)),
            sparse: AtomicU32::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            signals: Mutex::default(),
            lints: Mutex::default(),
            starts,
        }
    }

    pub const fn is_watching(&self) -> bool {
        self.watching
    }

    /// The number of a source line of a function.
    pub fn line(&self, function: usize, line: u32) -> u16 {
        u16::try_from(self.starts[function] + line).unwrap_or(super::tag::NO_LINE)
    }

    /// Function and line of a number.
    pub fn position(&self, line: u16) -> Option<(usize, u32)> {
        if line == super::tag::NO_LINE {
            return None;
        }
        let function = self.starts.partition_point(|&s| s <= u32::from(line)) - 1;
        Some((function, u32::from(line) - self.starts[function]))
    }

    /// The next moment, in commit order.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a write that other blocks may acquire from.
    pub fn signal(&self, offset: u64) {
        lock(&self.signals).insert(offset / 4, self.tick());
    }

    /// What a read of a word acquires: everything released before this moment.
    pub fn acquired(&self, offset: u64) -> u64 {
        lock(&self.signals).get(&(offset / 4)).map_or(self.blocks, |t| t + 1)
    }

    /// Of how many stretches of memory one is looked at by now, as a power of two.
    pub fn sparse(&self) -> u32 {
        self.sparse.load(Ordering::Relaxed)
    }

    /// Takes what a block did and when it released it; `in_turn` where blocks run in commit order.
    pub fn publish(&self, block: u32, released: When, logs: &[Log], in_turn: bool) {
        let mut ledger = lock(&self.ledger);
        if in_turn {
            // From now on the order shows.
            let mut publisher = self.publisher(false);
            ledger.close(|number, entry| publisher.add(number, entry));
        }
        for log in logs.iter().filter(|log| !log.is_empty()) {
            if ledger.is_closed() {
                let mut publisher = self.publisher(in_turn);
                let sparse = ledger.sparse();
                let access_records = log::access_records(log.words(), |number| log::is_looked_at(number, sparse));
                access_records.for_each(|record| publisher.add(record.number, Entry::new(&record, block, released)));
            } else {
                ledger.add(block, released, log);
            }
        }
        self.sparse.store(ledger.sparse(), Ordering::Relaxed);
    }

    /// Takes entries one by one; `in_turn` where blocks run in commit order.
    fn publisher(&self, in_turn: bool) -> Publisher<'_> {
        Publisher { grid: self, in_turn, held: None }
    }

    /// Takes the lints of a block.
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

    /// The lints of all blocks, by source lines; of each the first block's.
    pub fn lints(&self) -> Vec<Lint> {
        lock(&self.lints).values().copied().collect()
    }

    /// All blocks have ended: accesses that are not ordered, by address. One for each pair of source lines.
    pub fn conflicts(&self) -> Vec<BlockConflict> {
        let mut publisher = self.publisher(false);
        lock(&self.ledger).judge(|number, entry| publisher.add(number, entry));
        drop(publisher);
        let mut met = BTreeMap::new();
        let mut add = |when: u64, m: BlockConflict| {
            let order = (m.fault(), when, m.offset, m.here, m.there);
            let of = (m.here.line, m.there.line);
            let known = met.entry(of).or_insert((order, m));
            if order < known.0 {
                *known = (order, m);
            }
        };
        for shard in &self.shards {
            let shard = lock(shard);
            if let Some((when, meeting)) = shard.found {
                add(when, meeting);
            }
            for (&number, entries) in &shard.summary.lines {
                if entries.len() < 2 || entries.iter().all(|e| e.op == Op::Load) {
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
        let mut all: Vec<_> = met.into_values().collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, meeting)| meeting).collect()
    }

    /// How many stretches of memory there are for each one that was looked at, where that is not one.
    pub fn sampled(&self) -> Option<u64> {
        let sparse = self.sparse() + self.shards.iter().map(|s| lock(s).sparse).max().unwrap_or(0);
        (sparse > 0).then_some(1 << sparse)
    }
}

/// Adds entries; keeps the lock of the shard that it used last.
#[derive(Debug)]
struct Publisher<'b> {
    grid: &'b GridShadow,
    in_turn: bool,
    held: Option<(usize, MutexGuard<'b, Shard>)>,
}

impl Publisher<'_> {
    fn add(&mut self, number: u32, entry: Entry) {
        let at = (number / 32) as usize % SHARDS;
        let time = self.in_turn.then(|| self.grid.clock.load(Ordering::Relaxed));
        if let Some((held, shard)) = &mut self.held
            && *held == at
        {
            return shard.add(number, entry, time);
        }
        // The one is let go before the other is taken.
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
        if let Some((byte, a, b)) = self.summary.add_in_turn(number, entry) {
            let meeting = BlockConflict::new(u64::from(number) * 128 + byte as u64, a, b);
            let worse = self.found.is_none_or(|(_, old)| meeting.fault() < old.fault());
            if worse {
                self.found = Some((time, meeting));
            }
        }
        self.thin();
    }

    /// Drops every second line while there are too many entries. How far that goes depends on their final number only,
    /// not on the order in which they came.
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
