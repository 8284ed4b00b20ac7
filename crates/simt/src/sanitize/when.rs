//! When blocks have told others what they did, and have heard of it.
//!
//! While blocks run in parallel, one that shows an effect waits until all earlier blocks have ended: its number is its
//! time. Where blocks take turns, a counter goes on from the number of blocks.

/// A moment of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum When {
    #[default]
    Never,
    /// At the block's own number.
    Own,
    At(u64),
}

impl When {
    /// What a block had heard of before an access: everything that was told before this moment.
    pub const fn heard(self, block: u32) -> u64 {
        match self {
            Self::Never => 0,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }

    /// When a block told of an access.
    pub const fn told(self, block: u32) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }
}
