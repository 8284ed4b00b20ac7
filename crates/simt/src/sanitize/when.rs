//! The moments at which blocks release their accesses and acquire those of others.
//!
//! While blocks run in parallel, a block waits for all earlier blocks before it has an effect: its number is its
//! moment. In commit order, a counter continues from the number of blocks.

/// A moment of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum When {
    #[default]
    Never,
    /// The block's own number.
    Own,
    At(u64),
}

impl When {
    /// Returns what a block had acquired before an access: everything released before this moment.
    pub const fn acquired(self, block: u32) -> u64 {
        match self {
            Self::Never => 0,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }

    /// Returns the moment at which a block released an access.
    pub const fn released(self, block: u32) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::Own => block as u64,
            Self::At(t) => t,
        }
    }
}
