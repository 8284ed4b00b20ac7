//! The logs of all blocks of a launch, kept until the launch ends or blocks run in commit order.
//!
//! Most lines are accessed by only one block, or only read. Marks per word and block filter them out, and only the rest
//! is compared in full.

use crate::sanitize::lines::ByLine;
use crate::sanitize::log::{Log, access_records, access_records_among, is_tracked, spans};
use crate::sanitize::request::Op;
use crate::sanitize::summary::Entry;

/// Lines per page of marks.
const PAGE: u32 = 1024;

/// What one call added to the log for a block.
#[derive(Debug, Clone, Copy)]
struct BlockLog {
    block: u32,
    /// Number of the block's first release after the accesses.
    released: u32,
    /// End index of the block's words.
    end: usize,
}

#[derive(Debug)]
pub struct LaunchLog {
    /// Maximum weight, above which ranges of memory are dropped.
    most: u64,
    words: Vec<u32>,
    logs: Vec<BlockLog>,
    weight: u64,
    sparse: u32,
    closed: bool,
}

/// Summary of which blocks accessed the words of a line, and how.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Number of the first block that accessed the line, plus one; zero if none did.
    block: u32,
    several: bool,
    /// Whether some word has a store and another access, or an atomic and a plain access.
    overlap: bool,
    loads: u32,
    stores: u32,
    changes: u32,
    polls: u32,
}

impl Mark {
    fn add(&mut self, block: u32, op: Op, mask: u32) {
        self.several |= self.block != 0 && self.block != block + 1;
        if self.block == 0 {
            self.block = block + 1;
        }
        let (others, mine) = match op {
            Op::Load => (self.stores | self.changes, &mut self.loads),
            Op::Store => (self.loads | self.stores | self.changes | self.polls, &mut self.stores),
            Op::Change => (self.loads | self.stores, &mut self.changes),
            Op::Poll => (self.stores, &mut self.polls),
        };
        self.overlap |= others & mask != 0;
        *mine |= mask;
    }

    const fn may_conflict(self) -> bool {
        self.several && self.overlap
    }
}

/// Marks of lines, in pages.
#[derive(Debug, Default)]
struct Marks(ByLine<Box<[Mark]>>);

impl Marks {
    /// Returns the page of a line. A load creates none, because loads alone do not conflict.
    fn page(&mut self, number: u32, op: Op) -> Option<&mut [Mark]> {
        if matches!(op, Op::Load | Op::Poll) {
            return self.0.get_mut(&(number / PAGE)).map(AsMut::as_mut);
        }
        let fresh = || vec![Mark::default(); PAGE as usize].into_boxed_slice();
        Some(self.0.entry(number / PAGE).or_insert_with(fresh))
    }

    /// Marks a block's accesses. Loads must be added last.
    fn add(&mut self, block: u32, (first, count): (u32, u32), op: Op, mask: u32) {
        let mut number = first;
        let end = first.saturating_add(count);
        while number < end {
            let upto = end.min((number / PAGE + 1).saturating_mul(PAGE));
            let (from, to) = ((number % PAGE) as usize, (number % PAGE + (upto - number)) as usize);
            if let Some(page) = self.page(number, op) {
                page[from..to].iter_mut().for_each(|mark| mark.add(block, op, mask));
            }
            number = upto;
        }
    }

    /// Whether any of these lines, or a line near them, is marked.
    fn are_near(&self, first: u32, count: u32) -> bool {
        (first / PAGE..=first.saturating_add(count - 1) / PAGE).any(|page| self.0.contains_key(&page))
    }

    fn may_conflict(&self, number: u32) -> bool {
        let page = self.0.get(&(number / PAGE));
        page.is_some_and(|page| page[(number % PAGE) as usize].may_conflict())
    }
}

impl LaunchLog {
    /// Returns an empty log with this maximum weight.
    pub const fn new(most: u64) -> Self {
        Self { most, words: Vec::new(), logs: Vec::new(), weight: 0, sparse: 0, closed: false }
    }

    pub const fn sparse(&self) -> u32 {
        self.sparse
    }

    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Adds a block's accesses. If the log then exceeds its maximum weight, drops ranges of memory.
    pub fn add(&mut self, block: u32, released: u32, log: &Log) {
        if self.sparse == 0 {
            self.push(block, released, log);
        } else {
            // If ranges were dropped after the block began, the block has logged more than is tracked now.
            let kept = self.thinned(log.words());
            self.push(block, released, &kept);
        }
        while self.weight > self.most {
            self.sparse += 1;
            self.thin();
        }
    }

    fn push(&mut self, block: u32, released: u32, log: &Log) {
        if !log.is_empty() {
            self.words.extend_from_slice(log.words());
            self.logs.push(BlockLog { block, released, end: self.words.len() });
            self.weight += log.weight();
        }
    }

    fn logs(&self) -> impl Iterator<Item = (BlockLog, &[u32])> {
        let starts = std::iter::once(0).chain(self.logs.iter().map(|c| c.end));
        starts.zip(&self.logs).map(|(start, log_of_block)| (*log_of_block, &self.words[start..log_of_block.end]))
    }

    /// Returns the part of a log that is in tracked ranges.
    fn thinned(&self, words: &[u32]) -> Log {
        let mut kept = Log::default();
        access_records(words, |number| is_tracked(number, self.sparse)).for_each(|record| kept.add(&record));
        kept
    }

    fn thin(&mut self) {
        let mut kept = Self { sparse: self.sparse, ..Self::new(self.most) };
        for (log_of_block, words) in self.logs() {
            kept.push(log_of_block.block, log_of_block.released, &self.thinned(words));
        }
        *self = kept;
    }

    /// Passes all entries to `sink` and closes the log.
    pub fn close(&mut self, sink: impl FnMut(u32, Entry)) {
        self.closed = true;
        self.empty(|_, _| true, |_| true, sink);
    }

    /// Passes the entries of lines on which blocks may conflict to `sink`.
    pub fn judge(&mut self, sink: impl FnMut(u32, Entry)) {
        let mut marks = Marks::default();
        for loads in [false, true] {
            for (log_of_block, words) in self.logs() {
                for (first, count, op, mask) in
                    spans(words).filter(|(_, _, op, _)| matches!(op, Op::Load | Op::Poll) == loads)
                {
                    marks.add(log_of_block.block, (first, count), op, mask);
                }
            }
        }
        self.empty(|first, count| marks.are_near(first, count), |number| marks.may_conflict(number), sink);
    }

    fn empty(
        &mut self,
        some: impl Fn(u32, u32) -> bool,
        wanted: impl Fn(u32) -> bool + Copy,
        mut sink: impl FnMut(u32, Entry),
    ) {
        // Blocks that ran in parallel may have ended in any order.
        let mut logs: Vec<_> = self.logs().collect();
        logs.sort_by_key(|(log_of_block, _)| log_of_block.block);
        for (log_of_block, words) in logs {
            access_records_among(words, &some, wanted)
                .for_each(|record| sink(record.number, Entry::new(&record, log_of_block.block, log_of_block.released)));
        }
        (self.words, self.logs, self.weight) = (Vec::new(), Vec::new(), 0);
    }
}

#[cfg(test)]
mod tests;
