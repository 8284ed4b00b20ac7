//! The instructions of the flat bytecode, and how they name their operands.
//!
//! An operand is a byte offset into one of four areas, which its two low bits name: every row is aligned to four bytes
//! at least.

use std::ptr;

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

/// Where the areas start. What a slot has in its low bits for its area is taken off there, and not at every access.
#[derive(Debug, Clone, Copy)]
pub struct Bases([*mut u8; 4]);

impl Bases {
    /// Areas that nothing is read from yet.
    pub const NONE: Self = Self([ptr::null_mut(); 4]);

    pub const fn set(&mut self, area: Area, start: *mut u8) {
        self.0[area as usize] = start.wrapping_sub(area as usize);
    }

    /// Where an operand lies.
    ///
    /// # Safety
    /// The slot is one that the loader made for the current function.
    #[inline(always)]
    pub unsafe fn at<T>(&self, slot: Slot) -> *mut T {
        // SAFETY: two bits index four bases.
        unsafe { self.0.get_unchecked((slot.0 & 3) as usize).wrapping_add(slot.0 as usize).cast() }
    }

    /// Where a register lies, as every destination does.
    #[inline(always)]
    pub const fn register<T>(&self, slot: Slot) -> *mut T {
        self.0[Area::Frame as usize].wrapping_add(slot.0 as usize).cast()
    }
}

/// The function that executes an instruction.
///
/// Handlers work on the state of a running warp, which in turn points into the code. The code does not depend on that
/// state: here a handler has no signature. [`Handler`](crate::exec::context::Handler) has it.
#[derive(Debug, Clone, Copy)]
pub struct Entry(pub(crate) unsafe fn());

/// One instruction of the bytecode.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Ins {
    pub run: Entry,
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
