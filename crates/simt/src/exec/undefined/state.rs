//! The undefined bits of a warp's registers, as plain data. Separate from the rules, so that a warp can own them
//! without knowing instructions.

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

/// Undefined bits of a warp's registers and where they were read. Laid out like the registers.
#[derive(Debug, Default)]
pub struct Shadow {
    pub(super) bits: Vec<Row<u32>>,
    /// For each word of the registers, the index of its source and whether the value was computed from what was read.
    pub(super) from: Vec<u16>,
    pub(super) sources: Vec<Source>,
    /// Lanes whose carry flag is undefined.
    pub carry: u32,
    /// Lanes in which a word of local memory holds an undefined argument or result, by word.
    pub locals: BTreeMap<u32, u32>,
    pub(super) steps: u32,
}
