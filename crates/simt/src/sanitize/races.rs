//! Which accesses of one block conflict, and how severe that is.
//!
//! Two accesses conflict if one of them is a write and they are not both strong. Strong accesses are atomics, and
//! volatile, relaxed, acquiring or releasing loads and stores. [`Order`] decides which accesses are ordered.

use crate::sanitize::lines::Line;
use crate::sanitize::order::Order;
use crate::sanitize::request::{Op, Space};
use crate::sanitize::tag::Tag;

/// A class of findings, which can be switched off for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Races of threads and blocks, and notes on accesses whose order is unknown.
    Race,
    /// Reads of bytes that were never written.
    Uninitialised,
    /// Accesses to what an asynchronous or bulk copy still reads or writes.
    Asynchronous,
    /// Shuffles that read from inactive lanes.
    Shuffle,
}

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A read of bytes that were never written.
    Unwritten,
    /// An access to bytes of an asynchronous copy that was not waited for.
    Pending,
    /// An access to bytes that a bulk copy is still reading.
    BeingRead,
    /// A bulk copy reads bytes that threads have stored, without a fence in between.
    Unfenced,
    /// Conflicting accesses of two warps or two blocks; at least one is a store.
    Race,
    /// Conflicting accesses of lanes of one warp, without a synchronisation of the warp in between.
    Warp,
    /// A plain load conflicts with an atomic: the load may read the value before or after it.
    Mixed,
    /// Threads wait at one barrier from different source lines.
    Places,
    /// The block ended without waiting for a bulk copy from its shared memory.
    Left,
    /// Lanes of a warp store different values to one address in one instruction.
    Lanes,
    /// A lane in the mask of a warp operation has exited without executing it.
    Absent,
}

impl Fault {
    /// Returns the fault's class; `None` for one that cannot be switched off.
    pub const fn class(self) -> Option<Class> {
        match self {
            Self::Unwritten => Some(Class::Uninitialised),
            Self::Pending | Self::BeingRead | Self::Unfenced | Self::Left => Some(Class::Asynchronous),
            Self::Race | Self::Warp | Self::Mixed | Self::Lanes => Some(Class::Race),
            Self::Absent => Some(Class::Shuffle),
            Self::Places => None,
        }
    }

    /// Whether it is a note in the report and the launch continues.
    pub const fn is_lint(self) -> bool {
        matches!(self, Self::Warp | Self::Mixed | Self::Places | Self::Left | Self::Lanes | Self::Absent)
    }
}

/// A fault of one access, with the earlier access that it conflicts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hazard {
    pub fault: Fault,
    pub space: Space,
    /// Offset from the start of the state space.
    pub offset: u64,
    pub now: Op,
    pub tag: Tag,
    pub before: Op,
    pub earlier: Tag,
}

/// Returns the fault if two accesses to the same word are not ordered. `one_warp`: they are by one warp. Volatile
/// accesses of one warp are strong, but old programs use them instead of a synchronisation.
fn conflict(earlier: Tag, before: Op, tag: Tag, now: Op, one_warp: bool) -> Option<Fault> {
    let (volatile, both) = (earlier.is_volatile() || tag.is_volatile(), earlier.is_volatile() && tag.is_volatile());
    match (before, now) {
        (Op::Load | Op::Poll, Op::Load | Op::Poll) => None,
        (Op::Change | Op::Poll, Op::Change | Op::Poll) => (one_warp && both).then_some(Fault::Warp),
        (Op::Load, Op::Change) | (Op::Change, Op::Load) if !(one_warp && volatile) => Some(Fault::Mixed),
        _ => Some(if one_warp { Fault::Warp } else { Fault::Race }),
    }
}

/// Returns the kind of an access for messages, in which a strong store is a store.
const fn named(op: Op, tag: Tag) -> Op {
    if tag.is_write() { Op::Store } else { op }
}

/// An access of one thread to one word.
#[derive(Debug, Clone, Copy)]
pub struct Touch {
    pub word: usize,
    pub op: Op,
    pub tag: Tag,
    /// Stored value of the tag's bytes.
    pub value: u32,
    /// Whether the store leaves memory unchanged.
    pub silent: bool,
}

/// Checks an access to a word of a line; `number` is the word's in its state space.
pub fn check(line: &Line, space: Space, number: u64, touch: Touch, order: &Order) -> Option<Hazard> {
    let Touch { word, op, tag, value, silent } = touch;
    let found = |before: Op, earlier: Tag| {
        if earlier.epoch() != tag.epoch() || earlier.bytes() & tag.bytes() == 0 {
            return None;
        }
        let one_warp = earlier.warp() == tag.warp() && !earlier.several_warps();
        let fault = conflict(earlier, before, tag, op, one_warp).filter(|_| !order.is_before(earlier, tag))?;
        let byte = u64::from((earlier.bytes() & tag.bytes()).trailing_zeros());
        let (now, before) = (named(op, tag), named(before, earlier));
        Some(Hazard { fault, space, offset: 128 * number + 4 * word as u64 + byte, now, tag, before, earlier })
    };
    let same_value = || {
        let both = tag.bytes() & line.stores[word].bytes();
        (line.values[word] ^ value) & spread(both) == 0
    };
    let stored = found(Op::Store, line.stores[word]).filter(|_| op != Op::Store || !(silent || same_value()));
    let changed = found(Op::Change, line.changes[word]).filter(|_| !(tag.is_write() && silent));
    let loaded = found(Op::Load, line.loads[word]).filter(|_| op != Op::Store || !silent);
    let polled = found(Op::Poll, line.polls[word]).filter(|_| !silent);
    let hazards = [stored, changed, loaded, polled];
    // A race is more severe than a lint.
    hazards.into_iter().flatten().min_by_key(|h| h.fault)
}

/// Expands each bit, one per byte, to eight.
pub const fn spread(bytes: u8) -> u32 {
    let b = bytes as u32;
    ((b & 1) | (b & 2) << 7 | (b & 4) << 14 | (b & 8) << 21) * 0xff
}
