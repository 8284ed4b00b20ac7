//! What is remembered of each 128 bytes: the last accesses to every word, and which bytes were touched at all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::brief::Brief;
use super::tag::Tag;

/// Words of a line.
pub const WORDS: usize = 32;

/// Lines of global memory that a block keeps in detail; then it keeps the summary only.
pub const MOST: usize = 4096;

/// 128 bytes of memory. Masks have a bit a byte.
#[derive(Debug, Clone)]
pub struct Line {
    /// What the present epoch and the last ones did, as long as it can be said in short.
    pub brief: Brief,
    /// Bytes touched by plain stores, plain loads and atomics since the line was begun.
    pub stored: u128,
    pub loaded: u128,
    pub changed: u128,
    /// Bytes that were written by anything.
    pub written: u128,
    /// Bytes that an asynchronous copy is on its way to.
    pub pending: u128,
    /// The last epoch in which a word was stored to, loaded from, changed by an atomic.
    pub store_epoch: u32,
    pub load_epoch: u32,
    pub change_epoch: u32,
    /// Bytes that were loaded in that epoch.
    pub load_bytes: u128,
    /// The last load of several words: by what, of what. The same again adds nothing.
    pub last_load: (Tag, u128),
    pub stores: [Tag; WORDS],
    pub loads: [Tag; WORDS],
    pub changes: [Tag; WORDS],
    /// What was stored.
    pub values: [u32; WORDS],
}

impl Default for Line {
    fn default() -> Self {
        Self {
            brief: Brief::default(),
            stored: 0,
            loaded: 0,
            changed: 0,
            written: 0,
            pending: 0,
            store_epoch: 0,
            load_epoch: 0,
            change_epoch: 0,
            load_bytes: 0,
            last_load: (Tag::default(), 0),
            stores: [Tag::default(); WORDS],
            loads: [Tag::default(); WORDS],
            changes: [Tag::default(); WORDS],
            values: [0; WORDS],
        }
    }
}

impl Line {
    /// Forgets everything, but for tags of earlier epochs, which none takes for its own. `epoch` is the present one: a
    /// line of global memory may be another's storage from a moment ago.
    pub fn begin(&mut self, epoch: u32) {
        for (of, tags) in [
            (self.store_epoch, &mut self.stores),
            (self.load_epoch, &mut self.loads),
            (self.change_epoch, &mut self.changes),
        ] {
            if of == epoch {
                *tags = [Tag::default(); WORDS];
            }
        }
        (self.stored, self.loaded, self.changed, self.written, self.pending) = (0, 0, 0, 0, 0);
        (self.store_epoch, self.load_epoch, self.change_epoch) = (0, 0, 0);
        self.last_load.1 = 0;
        self.brief.forget();
    }
}

/// The bytes of `words` words from word `first` on.
#[inline]
pub const fn byte_mask(first: usize, words: usize) -> u128 {
    (u128::MAX >> (128 - 4 * words)) << (4 * first)
}

/// A number in which every bit depends on all bits of a line's number below it.
pub const fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1) >> 8
}

/// Scatters line numbers over a table; they are dense, so that a multiplication does.
#[derive(Debug, Default, Clone, Copy)]
pub struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u32(u32::from(b));
        }
    }

    fn write_u32(&mut self, n: u32) {
        let mixed = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// By number of a line.
pub type ByLine<T> = HashMap<u32, T, BuildHasherDefault<Scatter>>;

/// Numbers that the table finds without its index.
const SLOTS: usize = 1024;

/// The lines of global memory that one block has touched. Storage stays for the next block.
#[derive(Debug, Default)]
pub struct Table {
    /// Where numbers are that found their slot taken.
    index: ByLine<u32>,
    lines: Vec<Line>,
    numbers: Vec<u32>,
    /// Where the first number with these low bits is. Whether that holds for this block, `numbers` says.
    slots: Vec<u32>,
    /// Numbers and where they are, for those who want them in order.
    sorted: Vec<(u32, u32)>,
}

impl Table {
    /// Forgets all lines.
    pub fn clear(&mut self) {
        self.index.clear();
        self.numbers.clear();
    }

    pub const fn is_full(&self) -> bool {
        self.numbers.len() >= MOST
    }

    /// A line by number, begun in this epoch where it is new.
    #[inline]
    pub fn line(&mut self, number: u32, epoch: u32) -> &mut Line {
        let slot = number as usize % SLOTS;
        let known = self.slots.get(slot).map_or(u32::MAX, |at| *at) as usize;
        let at = match self.numbers.get(known) {
            Some(held) if *held == number => known,
            Some(held) if *held as usize % SLOTS == slot => self.spilled(number, epoch),
            _ => {
                self.slots.resize(SLOTS, u32::MAX);
                self.slots[slot] = self.numbers.len() as u32;
                self.add(number, epoch)
            }
        };
        &mut self.lines[at]
    }

    /// A line whose slot another one has.
    fn spilled(&mut self, number: u32, epoch: u32) -> usize {
        let next = self.numbers.len() as u32;
        let at = *self.index.entry(number).or_insert(next);
        if at == next { self.add(number, epoch) } else { at as usize }
    }

    fn add(&mut self, number: u32, epoch: u32) -> usize {
        let at = self.numbers.len();
        self.numbers.push(number);
        match self.lines.get_mut(at) {
            Some(line) => line.begin(epoch),
            None => self.lines.push(Line::default()),
        }
        at
    }

    /// All lines with their numbers, by number.
    pub fn sorted(&mut self) -> impl Iterator<Item = (u32, &Line)> {
        self.sorted.clear();
        self.sorted.extend(self.numbers.iter().copied().zip(0..));
        self.sorted.sort_unstable();
        self.sorted.iter().map(|&(number, at)| (number, &self.lines[at as usize]))
    }

    /// Forgets every tag, for epochs that start anew.
    pub fn wipe(&mut self) {
        self.clear();
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests;
