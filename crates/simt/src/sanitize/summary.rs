//! Blocks' accesses to a line, in a form in which many blocks share one entry.
//!
//! An entry is added only after all entries that happen before it. It is therefore compared only with the known
//! entries, and a store replaces all entries that happen before it.

use std::sync::Arc;

use crate::sanitize::knowledge::{Knowledge, SetId};
use crate::sanitize::lines::{ByLine, Line};
use crate::sanitize::log::{AccessRecord, Partial, words_of};
use crate::sanitize::races::spread;
use crate::sanitize::request::Op;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::WORDS;

/// Number of a release that never happens.
pub const NEVER: u32 = u32::MAX;

/// One block's part in an entry.
#[derive(Debug, Clone)]
struct Side {
    block: u32,
    /// Number of the block's first release after the accesses.
    released: u32,
    /// What the threads knew about other blocks.
    acquired: SetId,
    /// Last access to each word: the source line and the thread of its tag.
    who: Arc<[u32; WORDS]>,
}

impl Side {
    /// Whether one block's accesses happen before another's.
    fn is_before(&self, later: &Self, knowledge: &Knowledge) -> bool {
        self.released != NEVER && knowledge.of(later.acquired, self.block) >= self.released
    }
}

/// A block's access to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Act {
    pub op: Op,
    pub block: u32,
    pub thread: u32,
    pub line: u16,
}

/// What is known about the value of a word.
enum Stored {
    Hash(u8),
    Bytes(u32),
}

/// Accesses that several blocks have in common.
#[derive(Debug, Clone)]
pub struct Entry {
    pub op: Op,
    pub bytes: u128,
    /// Hash of the values stored to each word.
    pub values: [u8; WORDS],
    /// Values of the words that a store wrote only in part.
    partial: Option<Box<Partial>>,
    /// The blocks, ordered by number.
    sides: Vec<Side>,
}

impl Entry {
    /// Returns an entry with one block's accesses and the release after them.
    pub fn new(record: &AccessRecord, block: u32, released: u32) -> Self {
        let &AccessRecord { op, bytes, values, acquired, who, .. } = record;
        let side = Side { block, released, acquired, who: Arc::new(who) };
        Self { op, bytes, values, partial: record.partial.clone(), sides: vec![side] }
    }

    pub fn block(&self) -> u32 {
        self.sides.first().map_or(0, |side| side.block)
    }

    /// Returns a pair of unordered, conflicting accesses, by the first such block in this entry and by the block of
    /// `new`, with their byte in the line. The block of `new` knows about changes to the bytes in `own`, because it has
    /// read their results.
    fn conflict(&self, new: &Self, own: u128, knowledge: &Knowledge) -> Option<Conflict> {
        // An atomic with a result is recorded both as a change and as a poll.
        let known = if matches!(self.op, Op::Change | Op::Poll) { own } else { 0 };
        let both = self.bytes & new.bytes & !known;
        let ops = [self.op, new.op];
        if both == 0 || !(ops.contains(&Op::Store) || ops.contains(&Op::Load) && ops.contains(&Op::Change)) {
            return None;
        }
        let byte = self.unequal(new, both)?;
        let mine = new.sides.first()?;
        let apart = |side: &&Side| {
            side.block != mine.block && !side.is_before(mine, knowledge) && !mine.is_before(side, knowledge)
        };
        let side = self.sides.iter().find(apart)?;
        let act = |op: Op, side: &Side| {
            let who = Tag::of_who(side.who[byte / 4]);
            Act { op, block: side.block, thread: who.thread(), line: who.line() }
        };
        let synchronised = knowledge.of(mine.acquired, side.block) > 0 || knowledge.of(side.acquired, mine.block) > 0;
        Some(Conflict { byte, old: act(self.op, side), new: act(new.op, mine), synchronised })
    }

    /// Returns the first byte of `both` whose values differ or are not known to be equal. If only hashes are known,
    /// returns the first common byte of the word.
    fn unequal(&self, other: &Self, both: u128) -> Option<usize> {
        let stores = self.op == Op::Store && other.op == Op::Store;
        (0..WORDS).find_map(|w| {
            let common = (both >> (4 * w) & 0xf) as u8;
            let unequal = if stores && common != 0 { common & !self.equal_bytes(other, w) } else { common };
            (unequal != 0).then(|| 4 * w + unequal.trailing_zeros() as usize)
        })
    }

    /// Returns the bytes of a word to which both entries stored equal values.
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
        let same_values = self.values == other.values && self.partial == other.partial;
        self.op == other.op && self.bytes == other.bytes && same_values
    }

    /// Adds the blocks of an equal entry. A block's later accesses replace its earlier ones, which happen before them.
    fn absorb(&mut self, other: Self) {
        for mut side in other.sides {
            if let Some(first) = self.sides.first().filter(|first| first.who == side.who) {
                side.who = Arc::clone(&first.who);
            }
            match self.sides.binary_search_by_key(&side.block, |known| known.block) {
                Ok(at) => self.sides[at] = side,
                Err(at) => self.sides.insert(at, side),
            }
        }
    }
}

/// Two unordered accesses.
#[derive(Debug, Clone, Copy)]
pub struct Conflict {
    /// Index of the byte in the line.
    pub byte: usize,
    pub old: Act,
    pub new: Act,
    /// Whether one of the blocks has acquired something from the other.
    pub synchronised: bool,
}

impl Conflict {
    /// Sort key: severity, then location.
    fn order(&self) -> (bool, usize, Act, Act) {
        let is_mixed = !self.synchronised && [self.old.op, self.new.op].iter().all(|op| *op != Op::Store);
        (is_mixed, self.byte, self.old, self.new)
    }
}

/// Condenses one block's accesses to a line into one record per kind of access. `sink` also gets the tag of the last
/// access to each word.
pub fn condense(line: &Line, number: u32, acquired: SetId, mut sink: impl FnMut(AccessRecord, &[Tag; WORDS])) {
    let (loaded, stored) = line.touched();
    for (op, bytes) in [(Op::Change, line.changed), (Op::Poll, line.polled), (Op::Store, stored), (Op::Load, loaded)] {
        if bytes == 0 {
            continue;
        }
        let (who, tags) = match op {
            Op::Store => (line.compact.stores.who, &line.stores),
            Op::Load => (line.compact.loads.who, &line.loads),
            Op::Change => (line.changes.map(Tag::who), &line.changes),
            Op::Poll => (line.polls.map(Tag::who), &line.polls),
        };
        let values = if op == Op::Store { hashes(bytes, &line.values) } else { [0; WORDS] };
        let partial = (op == Op::Store).then(|| partial(bytes, line)).flatten();
        sink(AccessRecord { number, op, bytes, acquired, who, values, partial }, tags);
    }
}

/// Lowest bit of every word.
const LOWEST: u128 = u128::MAX / 15;

const fn hash(value: u32) -> u8 {
    (value.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// Returns the values of words that plain stores wrote only in part. `bytes` are the written bytes.
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

/// Accesses of one block, or of all blocks, to each line.
#[derive(Debug, Default)]
pub struct Summary {
    pub lines: ByLine<Vec<Entry>>,
    pub entries: usize,
}

impl Summary {
    /// Adds an entry to a line, after all entries that happen before it. A store replaces these. Returns the worst
    /// conflict with an earlier entry.
    pub fn add(&mut self, number: u32, entry: Entry, knowledge: &Knowledge) -> Option<Conflict> {
        let known = self.lines.entry(number).or_default();
        // A block knows about the atomics on a word whose results it has read, by a strong load or by an atomic with a
        // result.
        let strong = |e: &&Entry| e.op == Op::Poll && e.sides.binary_search_by_key(&entry.block(), |s| s.block).is_ok();
        let own = known.iter().filter(strong).fold(0, |bytes, e| bytes | e.bytes);
        let found = known.iter().filter_map(|e| e.conflict(&entry, own, knowledge));
        let conflict = found.min_by_key(Conflict::order);
        if entry.op == Op::Store && conflict.is_none() {
            let before = known.len();
            for e in known.iter_mut().filter(|e| e.bytes & entry.bytes != 0) {
                let mine = &entry.sides[0];
                if e.sides.iter().all(|side| side.block == mine.block || side.is_before(mine, knowledge)) {
                    e.bytes &= !entry.bytes;
                }
            }
            known.retain(|e| e.bytes != 0);
            self.entries -= before - known.len();
        }
        if let Some(like) = known.iter_mut().find(|e| e.is_like(&entry)) {
            like.absorb(entry);
        } else {
            // Most lines have only one or two entries.
            known.reserve_exact(usize::from(known.len() < 4));
            known.push(entry);
            self.entries += 1;
        }
        conflict
    }
}
