//! Which accesses within a block conflict, and how severe that is.
//!
//! Two accesses conflict if at least one of them is a write and they are not both strong. Strong accesses are atomics,
//! and loads and stores that are volatile, relaxed, acquiring or releasing. [`Order`] determines which accesses are
//! ordered.

use crate::sanitize::lines::Line;
use crate::sanitize::order::Order;
use crate::sanitize::request::{Op, Space};
use crate::sanitize::tag::Tag;

/// A class of findings that can be switched off for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Races between threads or blocks, and notes on accesses whose order is unknown.
    Race,
    /// Reads of bytes that were never written.
    Uninitialised,
    /// Accesses to memory that an asynchronous or bulk copy is still reading or writing.
    Asynchronous,
    /// Shuffles that read from inactive lanes.
    Shuffle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A read of bytes that were never written.
    Unwritten,
    /// An access to the bytes of an asynchronous copy that has not been waited for.
    Pending,
    /// An access to bytes that a bulk copy is still reading.
    BeingRead,
    /// A bulk copy that reads bytes stored by threads, without a fence in between.
    Unfenced,
    /// Conflicting accesses by two warps or two blocks, at least one of which is a store.
    Race,
    /// Conflicting accesses by lanes of one warp, which has not synchronised in between.
    Warp,
    /// A plain load that conflicts with an atomic: it may read the value from before or after the atomic.
    Mixed,
    /// Threads that wait at one barrier from different source lines.
    Places,
    /// A block that ended without waiting for a bulk copy from its shared memory.
    Left,
    /// Lanes of a warp that store different values to the same address in one instruction.
    Lanes,
    /// A lane in the mask of a warp operation that exited without executing the operation.
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

    /// Whether the fault is only a note in the report, and the launch continues.
    pub const fn is_lint(self) -> bool {
        matches!(self, Self::Warp | Self::Mixed | Self::Places | Self::Left | Self::Lanes | Self::Absent)
    }
}

/// A fault of an access, and the earlier access that it conflicts with.
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

/// Returns the fault of two accesses to the same word if they are not ordered. `one_warp`: both are by the same warp.
/// Volatile accesses are strong, but within a warp, old programs use them in place of a synchronisation.
fn conflict(earlier: Tag, before: Op, tag: Tag, now: Op, one_warp: bool) -> Option<Fault> {
    let (volatile, both) = (earlier.is_volatile() || tag.is_volatile(), earlier.is_volatile() && tag.is_volatile());
    match (before, now) {
        (Op::Load | Op::Poll, Op::Load | Op::Poll) => None,
        (Op::Change | Op::Poll, Op::Change | Op::Poll) => (one_warp && both).then_some(Fault::Warp),
        (Op::Load, Op::Change) | (Op::Change, Op::Load) if !(one_warp && volatile) => Some(Fault::Mixed),
        _ => Some(if one_warp { Fault::Warp } else { Fault::Race }),
    }
}

/// Returns the kind of an access for messages, which call a strong store a store.
const fn named(op: Op, tag: Tag) -> Op {
    if tag.is_write() { Op::Store } else { op }
}

/// An access of one thread to one word.
#[derive(Debug, Clone, Copy)]
pub struct Touch {
    pub word: usize,
    pub op: Op,
    pub tag: Tag,
    /// The stored value of the bytes in the tag.
    pub value: u32,
    /// Whether the store leaves memory unchanged.
    pub silent: bool,
}

/// Checks an access to a word of a line. `number` is the word's index in its state space.
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
    // A race takes precedence over a lint.
    hazards.into_iter().flatten().min_by_key(|h| h.fault)
}

/// Expands a mask with one bit per byte to a mask of eight bits per byte.
pub const fn spread(bytes: u8) -> u32 {
    let b = bytes as u32;
    ((b & 1) | (b & 2) << 7 | (b & 4) << 14 | (b & 8) << 21) * 0xff
}

/// Set of classes whose findings are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored(u8);

impl Ignored {
    /// Returns the set of the given classes.
    pub fn from_classes(classes: impl IntoIterator<Item = Class>) -> Self {
        Self(classes.into_iter().fold(0, |all, class| all | 1 << class as u8))
    }

    /// Returns the set with one more class.
    #[must_use]
    pub const fn and(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Whether findings of a class are reported.
    pub const fn reports_class(self, class: Class) -> bool {
        self.0 >> class as u8 & 1 == 0
    }

    /// Whether a fault is reported.
    pub const fn reports(self, fault: Fault) -> bool {
        match fault.class() {
            Some(class) => self.reports_class(class),
            None => true,
        }
    }
}
