//! What blocks did to lines of global memory, written down in few words until the launch has ended.
//!
//! A block adds what it did when it tells of it or ends, line by line. Lines side by side that one instruction went over
//! make one record. Nothing is judged here. Where a launch does so much that its log grows too long, every second
//! stretch of memory is left out, then three of four, and so on: which ones depends on the whole launch alone and not
//! on the order in which blocks came.

use super::lines::{WORDS, scattered};
use super::races::Op;
use super::tag::Tag;
use super::when::When;

/// Words of all records of a launch, each line counted for itself, beyond which stretches are left out.
pub const MOST: u64 = 1 << 25;
/// Lines of a stretch.
const STRETCH: u32 = 32;
/// Source lines that a short list of threads can tell apart.
const PALETTE: usize = 4;

/// Whether a line is looked at where one stretch of `2^sparse` is.
pub const fn is_looked_at(number: u32, sparse: u32) -> bool {
    scattered(number / STRETCH).trailing_zeros() >= sparse
}

/// What a block did to one line, an entry for each kind of access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub number: u32,
    pub op: Op,
    /// A bit a byte.
    pub bytes: u128,
    /// What the block had heard before.
    pub heard: When,
    /// Who touched each word, as [`Tag::who`] says it.
    pub who: [u32; WORDS],
    /// A hash of what was stored to each word.
    pub values: [u8; WORDS],
}

/// How a record names the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Word `w` belongs to the thread `w >> shift` behind a first one.
    Run {
        shift: u32,
    },
    /// Lanes of one warp at few source lines.
    Near,
    Each,
}

/// The first words of a record.
#[derive(Debug, Clone, Copy)]
struct Head {
    number: u32,
    op: Op,
    whole: bool,
    names: Names,
    heard: When,
    /// Lines that the record stands for; above one only for whole lines.
    lines: u32,
    base: u32,
}

const HEAD: usize = 3;

impl Head {
    fn encode(self) -> [u32; HEAD] {
        let op = match self.op {
            Op::Load => 0,
            Op::Store => 1,
            Op::Change => 2,
        };
        let names = match self.names {
            Names::Run { shift } => shift,
            Names::Near => 3,
            Names::Each => 4,
        };
        let heard = match self.heard {
            When::Never => 0,
            When::Own => 1,
            When::At(_) => 2,
        };
        [self.number, op | u32::from(self.whole) << 2 | names << 3 | heard << 6 | self.lines << 8, self.base]
    }

    /// Reads a head; the moment of [`When::At`] stands behind it.
    fn decode([number, bits, base]: [u32; HEAD]) -> Self {
        let op = match bits & 3 {
            0 => Op::Load,
            1 => Op::Store,
            _ => Op::Change,
        };
        let names = match bits >> 3 & 7 {
            shift @ 0..=2 => Names::Run { shift },
            3 => Names::Near,
            _ => Names::Each,
        };
        let heard = match bits >> 6 & 3 {
            0 => When::Never,
            1 => When::Own,
            _ => When::At(0),
        };
        Self { number, op, whole: bits & 4 != 0, names, heard, lines: bits >> 8, base }
    }
}

/// Records of one block, or of many one after the other.
#[derive(Debug, Default)]
pub struct Log {
    words: Vec<u32>,
    /// Where the last record starts, while it may still grow.
    last: Option<usize>,
    /// Words if each line were counted for itself.
    weight: u64,
}

/// Bytes as words of a log.
fn packed(bytes: impl Iterator<Item = u8>, words: &mut Vec<u32>) {
    for (at, b) in bytes.enumerate() {
        if at % 4 == 0 {
            words.push(0);
        }
        if let Some(last) = words.last_mut() {
            *last |= u32::from(b) << (8 * (at % 4));
        }
    }
}

/// The words of a line that some bytes lie in.
pub fn words_of(bytes: u128) -> u32 {
    if bytes == u128::MAX {
        return u32::MAX;
    }
    (0..WORDS).filter(|w| bytes >> (4 * w) & 0xf != 0).fold(0, |m, w| m | 1 << w)
}

/// Words by number.
fn each(mask: u32) -> impl Iterator<Item = usize> + Clone {
    (0..WORDS).filter(move |w| mask >> w & 1 == 1)
}

impl Log {
    pub fn clear(&mut self) {
        self.words.clear();
        (self.last, self.weight) = (None, 0);
    }

    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub const fn weight(&self) -> u64 {
        self.weight
    }

    /// Adds what was done to a line.
    pub fn add(&mut self, deed: &Deed) {
        let mask = words_of(deed.bytes);
        let (names, base) = named(&deed.who, mask);
        let whole = deed.bytes == u128::MAX;
        let head = Head { number: deed.number, op: deed.op, whole, names, heard: deed.heard, lines: 1, base };
        let before = self.words.len();
        if let (true, Names::Run { shift }) = (whole, names)
            && self.grow(head, shift)
        {
            self.weight += HEAD as u64;
        } else {
            self.last = Some(before);
            self.words.extend(head.encode());
            if let When::At(t) = deed.heard {
                self.words.extend([t as u32, (t >> 32) as u32]);
                self.last = None;
            }
            if !whole {
                self.words.extend((0..4).map(|k| (deed.bytes >> (32 * k)) as u32));
                self.last = None;
            }
            self.list(names, mask, deed);
        }
        if deed.op == Op::Store {
            packed(each(mask).map(|w| deed.values[w]), &mut self.words);
        }
        self.weight += (self.words.len() - before) as u64;
    }

    /// Lets the last record stand for one more line, where that is the next one in every respect.
    fn grow(&mut self, head: Head, shift: u32) -> bool {
        let Some(at) = self.last else { return false };
        let mut last = Head::decode([self.words[at], self.words[at + 1], self.words[at + 2]]);
        let next = Head {
            number: last.number.wrapping_add(last.lines),
            base: last.base.wrapping_add(last.lines * (WORDS as u32 >> shift)),
            lines: 1,
            ..last
        };
        if last.lines >= 0xffff || next.encode() != head.encode() {
            return false;
        }
        last.lines += 1;
        self.words[at..at + HEAD].copy_from_slice(&last.encode());
        true
    }

    fn list(&mut self, names: Names, mask: u32, deed: &Deed) {
        match names {
            Names::Run { .. } => {}
            Names::Near => {
                let (palette, known) = palette(&deed.who, mask);
                debug_assert!(known <= PALETTE);
                self.words.extend([0, 2].map(|k| u32::from(palette[k]) | u32::from(palette[k + 1]) << 16));
                let near = |w: usize| {
                    let who = Tag::of_who(deed.who[w]);
                    let line = palette.iter().position(|&l| l == who.line()).unwrap_or(0);
                    (who.thread() & 31) as u8 | (line as u8) << 5
                };
                packed(each(mask).map(near), &mut self.words);
            }
            Names::Each => self.words.extend(each(mask).map(|w| deed.who[w])),
        }
    }

    /// All records.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}

/// Looks at every record of a log: the first line, how many, what is done to which of their words.
pub fn spans(words: &[u32]) -> impl Iterator<Item = (u32, u32, Op, u32)> {
    let mut reader = Reader { words, at: 0 };
    std::iter::from_fn(move || {
        let record = reader.record()?;
        Some((record.head.number, record.head.lines, record.head.op, record.mask))
    })
}

/// All that the records of a log say of the lines that are wanted, one by one.
pub fn deeds(words: &[u32], wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = Deed> {
    let mut reader = Reader { words, at: 0 };
    let mut open: Option<(Record<'_>, u32)> = None;
    std::iter::from_fn(move || {
        loop {
            let (record, done) = match open.take() {
                Some((record, done)) if done < record.head.lines => (record, done),
                _ => (reader.record()?, 0),
            };
            open = Some((record, done + 1));
            if wanted(record.head.number.wrapping_add(done)) {
                return Some(record.deed(done));
            }
        }
    })
}

/// The lines of source in who touched some words, and how many there are: more than fit, at most one more.
fn palette(who: &[u32; WORDS], mask: u32) -> ([u16; PALETTE], usize) {
    let (mut lines, mut known) = ([0; PALETTE], 0);
    for w in each(mask) {
        let line = Tag::of_who(who[w]).line();
        if lines[..known].contains(&line) {
            continue;
        }
        if known == PALETTE {
            return (lines, PALETTE + 1);
        }
        lines[known] = line;
        known += 1;
    }
    (lines, known)
}

/// The shortest way to name the threads of some words, and the thread that it starts from.
fn named(who: &[u32; WORDS], mask: u32) -> (Names, u32) {
    let first = mask.trailing_zeros() as usize % WORDS;
    for shift in 0..3 {
        let base = who[first].wrapping_sub(first as u32 >> shift);
        let mut apart = 0;
        for (w, who) in who.iter().enumerate() {
            let differs = who ^ base.wrapping_add(w as u32 >> shift);
            apart |= if mask >> w & 1 == 0 { 0 } else { differs };
        }
        if apart == 0 {
            return (Names::Run { shift }, base);
        }
    }
    let warp = Tag::of_who(who[first]).warp();
    let near = each(mask).all(|w| Tag::of_who(who[w]).warp() == warp) && palette(who, mask).1 <= PALETTE;
    (if near { Names::Near } else { Names::Each }, warp << 5)
}

/// A record with what follows its head.
#[derive(Debug, Clone, Copy)]
struct Record<'l> {
    head: Head,
    bytes: u128,
    mask: u32,
    names: &'l [u32],
    values: &'l [u32],
}

struct Reader<'l> {
    words: &'l [u32],
    at: usize,
}

impl<'l> Reader<'l> {
    fn take(&mut self, count: usize) -> &'l [u32] {
        let taken = &self.words[self.at..self.at + count];
        self.at += count;
        taken
    }

    fn record(&mut self) -> Option<Record<'l>> {
        if self.at >= self.words.len() {
            return None;
        }
        let head = self.take(HEAD);
        let mut head = Head::decode([head[0], head[1], head[2]]);
        if let When::At(_) = head.heard {
            let t = self.take(2);
            head.heard = When::At(u64::from(t[0]) | u64::from(t[1]) << 32);
        }
        let bytes = if head.whole {
            u128::MAX
        } else {
            self.take(4).iter().rev().fold(0, |bytes, &w| bytes << 32 | u128::from(w))
        };
        let mask = words_of(bytes);
        let count = mask.count_ones() as usize;
        let names = match head.names {
            Names::Run { .. } => self.take(0),
            Names::Near => self.take(2 + count.div_ceil(4)),
            Names::Each => self.take(count),
        };
        let values = if head.op == Op::Store { count.div_ceil(4) * head.lines as usize } else { 0 };
        Some(Record { head, bytes, mask, names, values: self.take(values) })
    }
}

fn byte(words: &[u32], k: usize) -> u8 {
    (words[k / 4] >> (8 * (k % 4))) as u8
}

impl Record<'_> {
    /// The `k`-th line of the record.
    fn deed(&self, k: u32) -> Deed {
        let head = self.head;
        let (mut who, mut values) = ([0; WORDS], [0; WORDS]);
        let count = self.mask.count_ones() as usize;
        let stored = self.values.get(count.div_ceil(4) * k as usize..).unwrap_or_default();
        for (n, w) in each(self.mask).enumerate() {
            who[w] = match head.names {
                Names::Run { shift } => head.base.wrapping_add((k * WORDS as u32 + w as u32) >> shift),
                Names::Near => {
                    let near = byte(&self.names[2..], n);
                    let line = self.names[usize::from(near >> 6)] >> (16 * (near >> 5 & 1)) & 0xffff;
                    line << 10 | head.base | u32::from(near & 31)
                }
                Names::Each => self.names[n],
            };
            if head.op == Op::Store {
                values[w] = byte(stored, n);
            }
        }
        Deed { number: head.number.wrapping_add(k), op: head.op, bytes: self.bytes, heard: head.heard, who, values }
    }
}

#[cfg(test)]
mod tests;
