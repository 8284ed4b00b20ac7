//! A warp's accesses in one instruction, in the sanitizer's form.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Load,
    Store,
    /// An atomic read-modify-write or a strong store.
    Change,
    /// A strong load.
    Poll,
}

impl Op {
    /// Returns a verb for what was done to a word, for use in messages.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Load | Self::Poll => "read",
            Self::Store => "written",
            Self::Change => "changed by an atomic",
        }
    }
}

/// A state space that the threads of a block share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    Shared,
    Global,
}

/// Strength of a load or a store. Atomics count as [`Strength::Plain`] here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    Plain,
    /// Strong, but meant to order the lanes of a warp, which it does not do.
    Volatile,
    /// Strong: relaxed, acquiring or releasing.
    Relaxed,
}

/// A request of a warp: each lane of `mask` accesses `bytes` bytes at its address.
#[derive(Debug)]
pub struct Request<'r> {
    pub space: Space,
    pub op: Op,
    /// Address of each lane.
    pub addresses: &'r [u64; 32],
    /// Start of the state space.
    pub origin: u64,
    pub mask: u32,
    pub bytes: u32,
    /// Whether lane `k`'s address is a common start plus `k` times `bytes`.
    pub contiguous: bool,
    /// Whether all lanes have the same address.
    pub together: bool,
    pub warp: u32,
    pub line: u16,
    pub strength: Strength,
    /// Whether the scope of the strong access excludes other blocks, for which the access is plain.
    pub narrow: bool,
}

impl Request<'_> {
    /// Returns the start of a lane's access, as an offset from the start of the state space.
    #[inline]
    pub fn offset(&self, lane: usize) -> u64 {
        self.addresses[lane & 31].wrapping_sub(self.origin)
    }

    /// Whether the access is a strong store. Such stores are treated like atomics.
    pub fn is_strong_store(&self) -> bool {
        self.op == Op::Change && self.strength != Strength::Plain
    }

    /// Whether the lanes only store.
    pub fn stores(&self) -> bool {
        self.op == Op::Store || self.is_strong_store()
    }

    /// Whether offsets strictly increase from lane to lane.
    pub fn is_rising(&self, mask: u32) -> bool {
        let mut lanes = (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| self.offset(lane));
        let Some(mut last) = lanes.next() else { return true };
        lanes.all(|offset| std::mem::replace(&mut last, offset) < offset)
    }
}
