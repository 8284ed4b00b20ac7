//! Lanes, rows and the instruction format of the flat bytecode.
//!
//! A register of a warp is a row: one value a lane, 32 lanes. Values of up to 32 bits live in rows of `u32`, 64-bit
//! values in rows of `u64`, predicates in one bit mask. An operand is a byte offset into one of four areas, named by
//! its two low bits (every row is at least four-byte aligned).

use super::context::Context;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One value for every lane.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Row<T>(pub [T; LANES]);

/// The area an operand lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Area {
    /// The registers of the current function.
    Frame = 0,
    /// Constants, and what depends on the lane alone.
    Constants = 1,
    /// What depends on the warp: thread indices.
    Warp = 2,
    /// What depends on the block: its index, the sizes of block and grid.
    Block = 3,
}

/// A located operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// Where a missing operand points: never read.
    pub const NONE: Self = Self(u32::MAX);

    pub const fn new(area: Area, offset: u32) -> Self {
        Self(offset | area as u32)
    }
}

/// Executes one instruction for the active lanes and returns the next one; null hands an event to the scheduler.
pub type Handler = unsafe fn(&mut Context<'_>, &Ins) -> *const Ins;

/// One instruction of the bytecode.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Ins {
    pub run: Handler,
    /// Destinations first, then sources.
    pub o: [Slot; 6],
    /// An offset of an address, the distance of a branch in instructions, or what the handler says.
    pub imm: i64,
    /// What the handler says.
    pub aux: u32,
    /// Index into the function's table of source lines.
    pub line: u32,
    /// Instructions that count, from this one to the end of its stretch: up to where control goes elsewhere or the
    /// active lanes change. They are counted together, when a path arrives.
    pub ahead: u32,
}

/// A type that lanes hold.
pub trait Lane: Copy + Default + 'static {}

macro_rules! lane {
    ($($t:ty),*) => {$(impl Lane for $t {})*};
}
lane!(u8, u16, i8, i16, u32, i32, f32, u64, i64, f64);
