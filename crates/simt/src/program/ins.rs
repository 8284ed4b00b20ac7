//! Instructions of the flat bytecode, and their operands.
//!
//! An operand is a byte offset into one of four areas. The two low bits select the area, which works because rows are
//! aligned to at least four bytes.

use std::ptr;

use crate::program::aux::Access;

use bitflags::Flags;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Area {
    /// Registers of the current function.
    Frame = 0,
    /// Constants, and values that depend only on the lane.
    Constants = 1,
    /// Values that depend on the warp, i.e. thread indices.
    Warp = 2,
    /// Values that depend on the block: its index, and the sizes of block and grid.
    Block = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// A missing operand, which is never read.
    pub const NONE: Self = Self(u32::MAX);

    pub const fn new(area: Area, offset: u32) -> Self {
        Self(offset | area as u32)
    }
}

/// Start of each area, minus the area bits of its slots, so that accesses need not mask these.
#[derive(Debug, Clone, Copy)]
pub struct Bases([*mut u8; 4]);

impl Bases {
    /// Bases of a kernel that has no areas yet.
    pub const NONE: Self = Self([ptr::null_mut(); 4]);

    pub const fn set(&mut self, area: Area, start: *mut u8) {
        self.0[area as usize] = start.wrapping_sub(area as usize);
    }

    /// Returns the address of an operand.
    ///
    /// # Safety
    ///
    /// The loader assigned the slot in the current function.
    #[inline(always)]
    pub unsafe fn at<T>(&self, slot: Slot) -> *mut T {
        // SAFETY: two bits index four bases.
        unsafe { self.0.get_unchecked((slot.0 & 3) as usize).wrapping_add(slot.0 as usize).cast() }
    }

    /// Returns the address of a register, e.g. a destination.
    #[inline(always)]
    pub const fn register<T>(&self, slot: Slot) -> *mut T {
        self.0[Area::Frame as usize].wrapping_add(slot.0 as usize).cast()
    }
}

/// The function that executes an instruction, with its signature erased.
///
/// Handlers work on the state of a running warp, which in turn points into the code. The code itself does not depend on
/// that state, so the signature is defined elsewhere, in [`Handler`](crate::exec::context::Handler).
#[derive(Debug, Clone, Copy)]
pub struct Entry(pub(crate) unsafe fn());

/// An instruction of the bytecode.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Ins {
    pub run: Entry,
    /// Operands: destinations first, then sources.
    pub o: [Slot; 6],
    /// Offset of an address, distance of a branch in instructions, or another number for the handler.
    pub imm: i64,
    /// Flags or another number for the handler.
    pub aux: u32,
    /// Index in the function's list of source lines.
    pub line: u32,
    /// Number of counted instructions from this one to the end of its straight-line run, which is the next control
    /// transfer or change of active lanes. They are counted all at once when a path arrives.
    pub ahead: u32,
    /// Index among all instructions of the kernel, in a kernel that counts per instruction.
    pub number: u32,
}

impl Ins {
    /// Whether any of these flags is set in `aux`.
    #[inline(always)]
    pub fn has(&self, flags: impl Flags<Bits = u32> + Copy) -> bool {
        self.aux & flags.bits() != 0
    }

    /// Returns the `aux` of a memory instruction.
    #[inline(always)]
    pub const fn access(&self) -> Access {
        Access::from_bits_retain(self.aux)
    }
}
