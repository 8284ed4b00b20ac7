//! When blocks have released what they did, and have acquired what others did.
//!
//! While blocks run in parallel, one that shows an effect waits until all earlier blocks have ended: its number is its
//! time. In commit order, a counter goes on from the number of blocks.

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
    /// What a block had acquired before an access: everything that was released before this moment.
    pub const fn acquired(self, block: u32) -> u64 {
        match self {
            Self::Never => 0,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }

    /// When a block released an access.
    pub const fn released(self, block: u32) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }
}
