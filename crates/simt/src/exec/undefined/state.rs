//! The undefined bits of a warp's registers, as data: a warp owns them, and knows no instruction.

use std::collections::BTreeMap;

use crate::error::Site;
use crate::program::Position;
use crate::program::row::Row;

/// Where an undefined value was read.
#[derive(Debug, Clone)]
pub struct Source {
    pub place: Position,
    pub site: Site,
}

/// The undefined bits of a warp's registers, which have the layout of the registers, and where they come from.
#[derive(Debug, Default)]
pub struct Shadow {
    pub(super) bits: Vec<Row<u32>>,
    /// The number of a source for each word of the registers, and whether the value was computed from what was read.
    pub(super) from: Vec<u16>,
    pub(super) sources: Vec<Source>,
    /// Lanes whose carry flag is undefined.
    pub carry: u32,
    /// Lanes whose word of local memory holds an undefined argument or result, by the word's number.
    pub locals: BTreeMap<u32, u32>,
    pub(super) steps: u32,
}
