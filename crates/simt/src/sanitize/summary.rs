//! Accesses of blocks to a line, in a form in which many blocks share one entry.
//!
//! Blocks run on several host threads, so that entries must merge in any order: an entry keeps the first and the last
//! of all blocks with the same accesses to the same bytes. Blocks share an entry only where their moments are equal
//! relative to the block's number. Moments in commit order are unique.

use crate::sanitize::lines::{ByLine, Line};
use crate::sanitize::log::{AccessRecord, Partial, words_of};
use crate::sanitize::races::spread;
use crate::sanitize::request::Op;
use crate::sanitize::tag::Tag;
use crate::sanitize::when::When;
use crate::sanitize::words::WORDS;

/// The part of an entry that belongs to one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    block: u32,
    /// The last access to each word: the source line and the thread of its tag.
    who: [u32; WORDS],
}

/// A block's access to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Act {
    pub op: Op,
    pub block: u32,
    pub thread: u32,
    pub line: u16,
}

/// What is known of the value of a word.
enum Stored {
    Hash(u8),
    Bytes(u32),
}

/// The accesses in which several blocks are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub op: Op,
    pub bytes: u128,
    /// A hash of the values stored to each word.
    pub values: [u8; WORDS],
    /// The values of words of which a store wrote a part.
    partial: Option<Box<Partial>>,
    /// What the blocks had acquired before.
    pub acquired: When,
    /// When they released the accesses.
    pub released: When,
    pub first: Side,
    /// `None` if only one block has them.
    pub last: Option<Box<Side>>,
}

/// Whether the accesses of block `a` of `x` and block `b` of `y` are ordered.
fn ordered(x: &Entry, a: u32, y: &Entry, b: u32) -> bool {
    x.released.released(a) < y.acquired.acquired(b) || y.released.released(b) < x.acquired.acquired(a)
}

impl Entry {
    /// Returns an entry of one block's accesses and their release. An atomic releases itself, to all blocks that
    /// acquire later.
    pub fn new(record: &AccessRecord, block: u32, released: When) -> Self {
        let &AccessRecord { op, bytes, values, acquired, who, .. } = record;
        let released = if op == Op::Change { When::Own } else { released };
        let partial = record.partial.clone();
        Self { op, bytes, values, partial, acquired, released, first: Side { block, who }, last: None }
    }

    #[cfg(test)]
    pub const fn first_block(&self) -> u32 {
        self.first.block
    }

    fn last(&self) -> &Side {
        self.last.as_deref().unwrap_or(&self.first)
    }

    /// Returns two accesses that conflict and are not ordered, if the entries have any, and the byte of the line.
    pub fn conflict(&self, other: &Self) -> Option<(usize, Act, Act)> {
        let both = self.bytes & other.bytes;
        let pair = [self.op, other.op];
        if both == 0 || !(pair.contains(&Op::Store) || pair.contains(&Op::Load) && pair.contains(&Op::Change)) {
            return None;
        }
        let byte = self.unequal(other, both)?;
        let word = byte / 4;
        let (mine, theirs) = ([&self.first, self.last()], [&other.first, other.last()]);
        let pairs = mine.into_iter().flat_map(|a| theirs.into_iter().map(move |b| (a, b)));
        let bad = |(a, b): &(&Side, &Side)| a.block != b.block && !ordered(self, a.block, other, b.block);
        let act = |op: Op, side: &Side| {
            let who = Tag::of_who(side.who[word]);
            Act { op, block: side.block, thread: who.thread(), line: who.line() }
        };
        let pair = pairs.filter(bad).min_by_key(|(a, b)| (a.block.min(b.block), a.block.max(b.block)))?;
        Some((byte, act(self.op, pair.0), act(other.op, pair.1)))
    }

    /// Returns the first byte of `both` whose values differ or are not known to be equal. Where only hashes are known,
    /// it is the first byte of the word.
    fn unequal(&self, other: &Self, both: u128) -> Option<usize> {
        let stores = self.op == Op::Store && other.op == Op::Store;
        (0..WORDS).find_map(|w| {
            let common = (both >> (4 * w) & 0xf) as u8;
            let unequal = if stores && common != 0 { common & !self.equal_bytes(other, w) } else { common };
            (unequal != 0).then(|| 4 * w + unequal.trailing_zeros() as usize)
        })
    }

    /// Returns the bytes of a word that both stored with equal values.
    fn equal_bytes(&self, other: &Self, w: usize) -> u8 {
        let bits = |entry: &Self| (entry.bytes >> (4 * w) & 0xf) as u8;
        match (self.stored_to(w), other.stored_to(w)) {
            (Stored::Bytes(mine), Stored::Bytes(theirs)) => {
                (mine ^ theirs).to_le_bytes().into_iter().zip(0..).fold(0, |m, (b, k)| m | u8::from(b == 0) << k)
            }
            (Stored::Hash(mine), Stored::Hash(theirs)) if bits(self) == bits(other) && mine == theirs => 0xf,
            (Stored::Hash(hashed), Stored::Bytes(value)) | (Stored::Bytes(value), Stored::Hash(hashed))
                if bits(self) & bits(other) == 0xf && hashed == hash(value) =>
            {
                0xf
            }
            _ => 0,
        }
    }

    fn stored_to(&self, w: usize) -> Stored {
        match self.partial.as_deref() {
            Some(Partial { words, values }) if words >> w & 1 == 1 => Stored::Bytes(values[w]),
            _ => Stored::Hash(self.values[w]),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let timed = |e: &Self| matches!(e.acquired, When::At(_)) || matches!(e.released, When::At(_));
        let same_time =
            if timed(self) { timed(other) } else { (self.acquired, self.released) == (other.acquired, other.released) };
        let same_values = self.values == other.values && self.partial == other.partial;
        same_time && self.op == other.op && self.bytes == other.bytes && same_values
    }

    fn absorb(&mut self, other: &Self) {
        let timed = |e: &Self| matches!(e.acquired, When::At(_)) || matches!(e.released, When::At(_));
        let (first, last) = (self.first.block, self.last().block);
        let (others_first, others_last) = (other.first.block, other.last().block);
        if timed(self) || timed(other) {
            if self.released.released(last) < other.acquired.acquired(others_first) {
                // A conflict with the earlier blocks is also one with the later blocks.
                *self = other.clone();
                return;
            }
            let merge = |a: When, b: When, merged: u64| {
                if matches!(a, When::At(_)) || matches!(b, When::At(_)) { When::At(merged) } else { a }
            };
            let acquired = self.acquired.acquired(last).max(other.acquired.acquired(others_last));
            let released = self.released.released(first).min(other.released.released(others_first));
            (self.acquired, self.released) =
                (merge(self.acquired, other.acquired, acquired), merge(self.released, other.released, released));
        }
        if others_first < first {
            let mine = std::mem::replace(&mut self.first, other.first.clone());
            self.last.get_or_insert_with(|| Box::new(mine));
        }
        if others_last > last {
            self.last = Some(Box::new(other.last().clone()));
        }
    }
}

/// Condenses one block's accesses to a line into a record per kind of access.
pub fn condense(line: &Line, number: u32, acquired: When, mut sink: impl FnMut(&AccessRecord)) {
    let (loaded, stored) = line.touched();
    for (op, bytes) in [(Op::Store, stored), (Op::Load, loaded), (Op::Change, line.changed), (Op::Poll, line.polled)] {
        if bytes == 0 {
            continue;
        }
        let who = match op {
            Op::Store => line.compact.stores.who,
            Op::Load => line.compact.loads.who,
            Op::Change => line.changes.map(Tag::who),
            Op::Poll => line.polls.map(Tag::who),
        };
        let values = if op == Op::Store { hashes(bytes, &line.values) } else { [0; WORDS] };
        let partial = (op == Op::Store).then(|| partial(bytes, line)).flatten();
        sink(&AccessRecord { number, op, bytes, acquired, who, values, partial });
    }
}

/// The lowest bit of every word.
const LOWEST: u128 = u128::MAX / 15;

const fn hash(value: u32) -> u8 {
    (value.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// Returns the values of the words of a line that plain stores wrote in parts; `bytes` are the written ones.
fn partial(bytes: u128, line: &Line) -> Option<Box<Partial>> {
    let words = line.partial & words_of(bytes);
    (words != 0).then(|| {
        let value = |w: usize| line.values[w] & spread((bytes >> (4 * w) & 0xf) as u8);
        let values = std::array::from_fn(|w| if words >> w & 1 == 1 { value(w) } else { 0 });
        Box::new(Partial { words, values })
    })
}

fn hashes(bytes: u128, values: &[u32; WORDS]) -> [u8; WORDS] {
    if bytes == u128::MAX {
        return values.map(hash);
    }
    let whole = bytes & bytes >> 1 & bytes >> 2 & bytes >> 3 & LOWEST;
    if whole.wrapping_mul(15) == bytes {
        return std::array::from_fn(|w| if bytes >> (4 * w) & 1 == 0 { 0 } else { hash(values[w]) });
    }
    std::array::from_fn(|w| hash(values[w] & spread((bytes >> (4 * w) & 0xf) as u8)))
}

/// The accesses of one block, or of all blocks, to each line.
#[derive(Debug, Default)]
pub struct Summary {
    pub lines: ByLine<Vec<Entry>>,
    pub entries: usize,
}

impl Summary {
    /// Adds an entry to a line.
    pub fn add(&mut self, number: u32, entry: Entry) {
        let known = self.lines.entry(number).or_default();
        if let Some(like) = known.iter_mut().find(|e| e.is_like(&entry)) {
            like.absorb(&entry);
        } else {
            // Most lines have one or two entries.
            known.reserve_exact(usize::from(known.len() < 4));
            known.push(entry);
            self.entries += 1;
        }
    }

    /// Adds an entry of a block in commit order. It comes after all entries that it is ordered with, so that a store
    /// without conflicts replaces them. Returns the first conflict.
    pub fn add_in_commit_order(&mut self, number: u32, entry: Entry) -> Option<(usize, Act, Act)> {
        let known = self.lines.entry(number).or_default();
        let conflict = known.iter().find_map(|e| e.conflict(&entry));
        if conflict.is_none() && entry.op == Op::Store {
            let before = known.len();
            for e in known.iter_mut() {
                e.bytes &= !entry.bytes;
            }
            known.retain(|e| e.bytes != 0);
            self.entries -= before - known.len();
        }
        self.add(number, entry);
        conflict
    }
}
