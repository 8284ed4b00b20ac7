//! A compact log of blocks' accesses to lines of global memory, kept until the launch has ended.
//!
//! A block adds its accesses line by line when it releases them or ends. Adjacent lines that one instruction accessed
//! share one record. Nothing is compared here. When the log of a launch grows too long, every second range of memory is
//! dropped, then three of four, and so on. Which ranges are dropped depends on the launch as a whole, not on the order
//! of the blocks.

use crate::sanitize::knowledge::{NOTHING, SetId};
use crate::sanitize::lines::scattered;
use crate::sanitize::request::Op;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{BIT, WORDS, bytes_of, each};

/// Maximum number of words of all records of a launch, counted as if each line had its own record. Beyond it, ranges
/// are dropped.
pub const MOST: u64 = 1 << 25;
/// Lines per range.
pub const STRETCH: u32 = 32;
/// Number of source lines that the short encoding of threads can distinguish.
const PALETTE: usize = 4;

/// Whether a line is tracked if only one in `2^sparse` ranges is.
pub const fn is_tracked(number: u32, sparse: u32) -> bool {
    scattered(number / STRETCH).trailing_zeros() >= sparse
}

/// Accesses of one kind by one block to one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRecord {
    pub number: u32,
    pub op: Op,
    /// Accessed bytes, one bit per byte.
    pub bytes: u128,
    /// What the threads knew about other blocks.
    pub acquired: SetId,
    /// Thread that accessed each word, encoded like [`Tag::who`].
    pub who: [u32; WORDS],
    /// Hash of the values stored to each word.
    pub values: [u8; WORDS],
    /// Values of the words that a store wrote only in part.
    pub partial: Option<Box<Partial>>,
}

impl AccessRecord {
    /// Returns only the accesses to the given words.
    pub fn restricted(&self, words: u32) -> Self {
        let bytes = self.bytes & bytes_of(words);
        let mask = words_of(bytes);
        let has = |w: usize| mask & BIT[w] != 0;
        let partial = self.partial.as_ref().filter(|partial| partial.words & mask != 0).map(|partial| {
            let values = std::array::from_fn(|w| if has(w) { partial.values[w] } else { 0 });
            Box::new(Partial { words: partial.words & mask, values })
        });
        Self {
            bytes,
            who: std::array::from_fn(|w| if has(w) { self.who[w] } else { 0 }),
            values: std::array::from_fn(|w| if has(w) { self.values[w] } else { 0 }),
            partial,
            ..*self
        }
    }
}

/// Values of words that were stored in parts. They allow a comparison by byte with other blocks' stores to the other
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Words that were stored in parts, one bit per word.
    pub words: u32,
    pub values: [u32; WORDS],
}

/// How a record encodes its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Word `w` belongs to the thread `w >> shift` after the first one.
    Run {
        shift: u32,
    },
    /// Lanes of one warp, at a small number of source lines.
    Near,
    Each,
}

/// Header of a record.
#[derive(Debug, Clone, Copy)]
struct Head {
    number: u32,
    op: Op,
    whole: bool,
    names: Names,
    acquired: SetId,
    /// Whether values of words that were stored in parts follow.
    partial: bool,
    /// Number of lines in the record. More than one only if whole lines were accessed.
    lines: u32,
    base: u32,
}

const HEAD: usize = 3;
/// Bit position of the number of lines in the second word of a header.
const LINES: u32 = 8;
const MOST_LINES: u32 = 0xffff;
/// Set in the second word of the header if the record has partial words.
const PARTIAL: u32 = 1 << 31;

impl Head {
    fn encode(self) -> [u32; HEAD] {
        let op = match self.op {
            Op::Load => 0,
            Op::Store => 1,
            Op::Change => 2,
            Op::Poll => 3,
        };
        let names = match self.names {
            Names::Run { shift } => shift,
            Names::Near => 3,
            Names::Each => 4,
        };
        let acquired = u32::from(self.acquired != NOTHING);
        let partial = if self.partial { PARTIAL } else { 0 };
        let bits = op | u32::from(self.whole) << 2 | names << 3 | acquired << 6 | self.lines << LINES | partial;
        [self.number, bits, self.base]
    }

    /// Decodes a header. The number of the set of known releases follows it, unless that set is empty.
    fn decode([number, bits, base]: [u32; HEAD]) -> Self {
        let op = match bits & 3 {
            0 => Op::Load,
            1 => Op::Store,
            2 => Op::Change,
            _ => Op::Poll,
        };
        let names = match bits >> 3 & 7 {
            shift @ 0..=2 => Names::Run { shift },
            3 => Names::Near,
            _ => Names::Each,
        };
        let acquired = bits >> 6 & 1;
        let (partial, lines) = (bits & PARTIAL != 0, bits >> LINES & MOST_LINES);
        Self { number, op, whole: bits & 4 != 0, names, acquired, partial, lines, base }
    }
}

/// A record to which lines can be added: its start, and the header that the next line must have.
#[derive(Debug, Clone, Copy)]
struct Open {
    at: usize,
    next: [u32; HEAD],
    acquired: SetId,
}

/// Records of one block, or of several blocks one after another.
#[derive(Debug, Default)]
pub struct Log {
    words: Vec<u32>,
    /// The last record, as long as it can still grow.
    last: Option<Open>,
    /// Number of words there would be if each line had its own record.
    weight: u64,
}

/// Packs bytes of a line's words into words of a log.
fn packed(bytes: impl Iterator<Item = u8>, words: &mut Vec<u32>) {
    let mut row = [0; WORDS];
    let mut count = 0_usize;
    for (to, byte) in row.iter_mut().zip(bytes) {
        *to = byte;
        count += 1;
    }
    let (whole, _) = row.as_chunks();
    words.extend(whole.iter().take(count.div_ceil(4)).map(|four| u32::from_le_bytes(*four)));
}

/// Returns the words of a line that contain any of these bytes.
pub fn words_of(bytes: u128) -> u32 {
    if bytes == u128::MAX {
        return u32::MAX;
    }
    let half = |bytes: u64| {
        // Move bit `4 k` to bit `k`.
        let mut x = (bytes | bytes >> 1 | bytes >> 2 | bytes >> 3) & 0x1111_1111_1111_1111;
        x = (x | x >> 3) & 0x0303_0303_0303_0303;
        x = (x | x >> 6) & 0x000f_000f_000f_000f;
        x = (x | x >> 12) & 0x0000_00ff_0000_00ff;
        (x | x >> 24) as u32 & 0xffff
    };
    half(bytes as u64) | half((bytes >> 64) as u64) << 16
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

    pub fn add(&mut self, record: &AccessRecord) {
        let mask = words_of(record.bytes);
        let (names, base) = named(&record.who, mask);
        let whole = record.bytes == u128::MAX;
        let &AccessRecord { number, op, acquired, .. } = record;
        let head = Head { number, op, whole, names, acquired, partial: record.partial.is_some(), lines: 1, base };
        let before = self.words.len();
        if let (true, Names::Run { shift }) = (whole, names)
            && self.grow(head, shift)
        {
            self.weight += HEAD as u64;
        } else {
            self.begin(head);
            if !whole {
                self.words.extend((0..4).map(|k| (record.bytes >> (32 * k)) as u32));
            }
            self.list(names, mask, record);
        }
        if record.op == Op::Store {
            packed(each(mask).map(|w| record.values[w]), &mut self.words);
        }
        if let Some(Partial { words, values }) = record.partial.as_deref() {
            self.words.push(*words);
            self.words.extend(each(*words).map(|w| values[w]));
        }
        self.weight += (self.words.len() - before) as u64;
    }

    /// Adds a load of a whole line, in which word `w` is loaded by the thread `w >> shift` after the first one.
    pub fn add_whole_load(&mut self, number: u32, acquired: SetId, (base, shift): (u32, u32)) {
        let names = Names::Run { shift };
        let head = Head { number, op: Op::Load, whole: true, names, acquired, partial: false, lines: 1, base };
        let before = self.words.len();
        if self.grow(head, shift) {
            self.weight += HEAD as u64;
        } else {
            self.begin(head);
            self.weight += (self.words.len() - before) as u64;
        }
    }

    /// Begins a record. It can grow if its header describes it completely.
    fn begin(&mut self, head: Head) {
        let at = self.words.len();
        self.words.extend(head.encode());
        self.last = match head.names {
            Names::Run { shift } if head.whole && !head.partial => {
                let (number, base) = (head.number.wrapping_add(1), head.base.wrapping_add(WORDS as u32 >> shift));
                Some(Open { at, next: Head { number, base, ..head }.encode(), acquired: head.acquired })
            }
            _ => None,
        };
        if head.acquired != NOTHING {
            self.words.push(head.acquired);
        }
    }

    /// Extends the last record by one line if that line follows it and is otherwise the same.
    fn grow(&mut self, head: Head, shift: u32) -> bool {
        let Some(Open { at, next, acquired }) = &mut self.last else { return false };
        let bits = &mut self.words[*at + 1];
        if *next != head.encode() || *acquired != head.acquired || *bits >> LINES >= MOST_LINES {
            return false;
        }
        *bits += 1 << LINES;
        next[0] = next[0].wrapping_add(1);
        next[2] = next[2].wrapping_add(WORDS as u32 >> shift);
        true
    }

    fn list(&mut self, names: Names, mask: u32, record: &AccessRecord) {
        match names {
            Names::Run { .. } => {}
            Names::Near => {
                let Some((palette, which)) = palette(&record.who, mask) else { return };
                self.words.extend([0, 2].map(|k| u32::from(palette[k]) | u32::from(palette[k + 1]) << 16));
                let near = |w: usize| (record.who[w] & 31 | which[w] << 5) as u8;
                packed(each(mask).map(near), &mut self.words);
            }
            Names::Each => self.words.extend(each(mask).map(|w| record.who[w])),
        }
    }

    pub fn words(&self) -> &[u32] {
        &self.words
    }
}

fn records(words: &[u32]) -> impl Iterator<Item = EncodedRecord<'_>> {
    let mut reader = Reader { words, at: 0 };
    std::iter::from_fn(move || reader.record())
}

/// Iterates over the records of a log: first line, number of lines, kind of access, and accessed words.
pub fn spans(words: &[u32]) -> impl Iterator<Item = (u32, u32, Op, u32)> {
    records(words).map(|record| (record.head.number, record.head.lines, record.head.op, record.mask))
}

/// Iterates over the logged accesses to wanted lines, one by one.
pub fn access_records(words: &[u32], wanted: impl Fn(u32) -> bool + Copy) -> impl Iterator<Item = AccessRecord> {
    access_records_among(words, |_, _| true, wanted)
}

/// Iterates over the logged accesses to wanted lines, one by one. `some` says whether a range of lines may contain
/// wanted ones.
pub fn access_records_among(
    words: &[u32],
    some: impl Fn(u32, u32) -> bool,
    wanted: impl Fn(u32) -> bool + Copy,
) -> impl Iterator<Item = AccessRecord> {
    records(words).filter(move |record| some(record.head.number, record.head.lines)).flat_map(move |record| {
        let wanted = move |k: &u32| wanted(record.head.number.wrapping_add(*k));
        (0..record.head.lines).filter(wanted).map(move |k| record.line(k))
    })
}

/// Returns the source lines of the accesses to the given words, and for each word the index of its source line. `None`
/// if there are too many source lines.
fn palette(who: &[u32; WORDS], mask: u32) -> Option<([u16; PALETTE], [u32; WORDS])> {
    let (mut lines, mut which) = ([0; PALETTE], [0; WORDS]);
    let mut left = mask;
    for (number, known) in (0..).zip(&mut lines) {
        if left == 0 {
            break;
        }
        *known = Tag::of_who(who[left.trailing_zeros() as usize % WORDS]).line();
        let line = u32::from(*known);
        for w in 0..WORDS {
            let same = who[w] >> Tag::WHO_LINE == line;
            which[w] = if same { number } else { which[w] };
            left &= if same { !BIT[w] } else { u32::MAX };
        }
    }
    (left == 0).then_some((lines, which))
}

/// Whether `apart` is zero for all words in `mask`.
fn same(mask: u32, apart: impl Fn(usize) -> u32) -> bool {
    BIT.iter().enumerate().fold(0, |all, (w, bit)| all | if mask & bit == 0 { 0 } else { apart(w) }) == 0
}

/// Returns the shortest encoding of the given words' threads, and the first thread of the encoding.
fn named(who: &[u32; WORDS], mask: u32) -> (Names, u32) {
    let first = mask.trailing_zeros() as usize % WORDS;
    for shift in 0..3 {
        let base = who[first].wrapping_sub(first as u32 >> shift);
        if same(mask, |w| who[w] ^ base.wrapping_add(w as u32 >> shift)) {
            return (Names::Run { shift }, base);
        }
    }
    let warp = Tag::of_who(who[first]).warp();
    let near = same(mask, |w| Tag::of_who(who[w]).warp() ^ warp) && palette(who, mask).is_some();
    (if near { Names::Near } else { Names::Each }, warp << 5)
}

/// A record of a log, with the words that follow its header.
#[derive(Debug, Clone, Copy)]
struct EncodedRecord<'l> {
    head: Head,
    bytes: u128,
    mask: u32,
    names: &'l [u32],
    values: &'l [u32],
    /// Words that were stored in parts, and their values.
    partial: (u32, &'l [u32]),
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

    fn record(&mut self) -> Option<EncodedRecord<'l>> {
        if self.at >= self.words.len() {
            return None;
        }
        let head = self.take(HEAD);
        let mut head = Head::decode([head[0], head[1], head[2]]);
        if head.acquired != NOTHING {
            head.acquired = self.take(1)[0];
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
        let values = self.take(values);
        let words = if head.partial { self.take(1)[0] } else { 0 };
        let partial = (words, self.take(words.count_ones() as usize));
        Some(EncodedRecord { head, bytes, mask, names, values, partial })
    }
}

fn byte(words: &[u32], k: usize) -> u8 {
    (words[k / 4] >> (8 * (k % 4))) as u8
}

impl EncodedRecord<'_> {
    fn line(&self, k: u32) -> AccessRecord {
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
        let (words, stored) = self.partial;
        let partial = head.partial.then(|| {
            let mut values = [0; WORDS];
            each(words).zip(stored).for_each(|(w, value)| values[w] = *value);
            Box::new(Partial { words, values })
        });
        let number = head.number.wrapping_add(k);
        AccessRecord { number, op: head.op, bytes: self.bytes, acquired: head.acquired, who, values, partial }
    }
}

#[cfg(test)]
mod tests;
