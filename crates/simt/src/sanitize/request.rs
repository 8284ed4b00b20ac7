//! An access of a warp, as the sanitizer sees it.

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Load,
    Store,
    /// An atomic read-modify-write.
    Change,
}

impl Op {
    /// For messages: what was done to a word.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Load => "read",
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

/// How an access is ordered by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    Plain,
    /// Races with nothing, but does not order lanes of a warp either.
    Volatile,
    /// Races with nothing.
    Relaxed,
}

/// A warp's request: the lanes of `mask` touch `bytes` bytes each at these addresses.
#[derive(Debug)]
pub struct Request<'r> {
    pub space: Space,
    pub op: Op,
    /// Addresses, and the one that the state space starts at.
    pub addresses: &'r [u64; 32],
    pub origin: u64,
    pub mask: u32,
    pub bytes: u32,
    /// Lane `k` lies `k` times `bytes` behind a common start.
    pub straight: bool,
    /// All lanes name one address.
    pub together: bool,
    pub warp: u32,
    pub line: u16,
    pub strength: Strength,
    /// No conflict of it would be reported.
    pub quiet: bool,
}

impl Request<'_> {
    /// Where a lane's access starts, counted from the start of the state space.
    #[inline]
    pub fn offset(&self, lane: usize) -> u64 {
        self.addresses[lane & 31].wrapping_sub(self.origin)
    }

    /// Whether each lane lies behind the one before it.
    pub fn is_rising(&self, mask: u32) -> bool {
        let mut lanes = (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| self.offset(lane));
        let Some(mut last) = lanes.next() else { return true };
        lanes.all(|offset| std::mem::replace(&mut last, offset) < offset)
    }
}
