//! Which accesses of one block conflict, and how badly.
//!
//! Two accesses are ordered when a barrier, a fence or a completed asynchronous wait of the block lies between them,
//! or, for lanes of one warp, a synchronisation of that warp. This counts any of them for the whole block and the
//! whole warp, so that a program which synchronises a part of the threads is never blamed; races there are missed.

use super::lines::Line;
use super::request::Op;
use super::request::Space;
use super::tag::Tag;

/// What is wrong with an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A read of bytes that nothing wrote.
    Unwritten,
    /// An asynchronous copy to these bytes has not been waited for.
    Pending,
    /// A bulk copy is still reading these bytes.
    Lent,
    /// A bulk copy reads what threads have stored, with no fence between the two.
    Unfenced,
    /// Accesses of two warps, or of two blocks, conflict, and one of them stores.
    Race,
    /// Accesses of lanes of one warp conflict, without a synchronisation of the warp.
    Warp,
    /// A plain load conflicts with an atomic: the value read is of no certain time.
    Mixed,
    /// Threads wait at one barrier from different lines.
    Places,
    /// The block has ended before a bulk copy from its shared memory was waited for.
    Left,
    /// Lanes of a warp store different values to one address in one instruction.
    Lanes,
}

impl Fault {
    /// Whether the launch goes on and the report has a note.
    pub const fn is_lint(self) -> bool {
        matches!(self, Self::Warp | Self::Mixed | Self::Places | Self::Left | Self::Lanes)
    }
}

/// A fault of one access, with the earlier access that it conflicts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hazard {
    pub fault: Fault,
    pub space: Space,
    /// Counts from the start of the state space.
    pub offset: u64,
    pub now: Op,
    pub tag: Tag,
    pub before: Op,
    pub earlier: Tag,
}

/// Judges an access against an earlier one of the same word.
fn conflict(earlier: Tag, before: Op, tag: Tag, now: Op) -> Option<Fault> {
    if earlier.epoch() != tag.epoch() || earlier.bytes() & tag.bytes() == 0 {
        return None;
    }
    let other_warp = earlier.warp() != tag.warp() || earlier.several_warps();
    let other_lane = earlier.thread() != tag.thread() || earlier.several_lanes() || tag.several_lanes();
    let plain = !earlier.is_volatile() && !tag.is_volatile();
    if !other_warp && (!other_lane || !earlier.unsynced(tag)) {
        return None;
    }
    match (before, now) {
        (Op::Load, Op::Load) | (Op::Change, Op::Change) => None,
        (Op::Load, Op::Change) | (Op::Change, Op::Load) => plain.then_some(Fault::Mixed),
        _ if !other_warp => Some(Fault::Warp),
        _ => plain.then_some(Fault::Race),
    }
}

/// One thread's access to one word.
#[derive(Debug, Clone, Copy)]
pub struct Touch {
    pub word: usize,
    pub op: Op,
    pub tag: Tag,
    /// What a store leaves; for the bytes of the tag.
    pub value: u32,
    /// The store leaves the value that is in memory already.
    pub silent: bool,
}

/// Checks an access to a word of a line, which has this number in its state space.
pub fn check(line: &Line, space: Space, number: u64, touch: Touch) -> Option<Hazard> {
    let Touch { word, op, tag, value, silent } = touch;
    let found = |before: Op, earlier: Tag| {
        let fault = conflict(earlier, before, tag, op)?;
        let byte = u64::from((earlier.bytes() & tag.bytes()).trailing_zeros());
        Some(Hazard { fault, space, offset: 128 * number + 4 * word as u64 + byte, now: op, tag, before, earlier })
    };
    let same_value = || {
        let both = tag.bytes() & line.stores[word].bytes();
        (line.values[word] ^ value) & spread(both) == 0
    };
    let stored = found(Op::Store, line.stores[word]).filter(|_| op != Op::Store || !(silent || same_value()));
    let changed = found(Op::Change, line.changes[word]);
    let loaded = found(Op::Load, line.loads[word]).filter(|_| op != Op::Store || !silent);
    let hazards = [stored, changed, loaded];
    // A race weighs more than a lint.
    hazards.into_iter().flatten().min_by_key(|h| h.fault)
}

/// One bit a byte to eight.
pub const fn spread(bytes: u8) -> u32 {
    let b = bytes as u32;
    ((b & 1) | (b & 2) << 7 | (b & 4) << 14 | (b & 8) << 21) * 0xff
}
