//! The instructions of the flat bytecode and their operands.
//!
//! An operand is a byte offset into one of four areas. Its two low bits select the area, which works because every row
//! is aligned to at least four bytes.

use std::ptr;

use crate::program::aux::Access;

use bitflags::Flags;

/// The area of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Area {
    /// The registers of the current function.
    Frame = 0,
    /// Constants, and values that depend only on the lane.
    Constants = 1,
    /// Values that depend on the warp: thread indices.
    Warp = 2,
    /// Values that depend on the block: its index, the sizes of block and grid.
    Block = 3,
}

/// The location of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// A missing operand, which is never read.
    pub const NONE: Self = Self(u32::MAX);

    pub const fn new(area: Area, offset: u32) -> Self {
        Self(offset | area as u32)
    }
}

/// The starts of the areas minus the area bits of their slots, so that no access needs to mask them.
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

    /// Returns the address of a register, for example a destination.
    #[inline(always)]
    pub const fn register<T>(&self, slot: Slot) -> *mut T {
        self.0[Area::Frame as usize].wrapping_add(slot.0 as usize).cast()
    }
}

/// The function that executes an instruction, without its signature.
///
/// Handlers work on the state of a running warp, which in turn points into the code. The code does not depend on that
/// state, so the signature is [`Handler`](crate::exec::context::Handler)'s.
#[derive(Debug, Clone, Copy)]
pub struct Entry(pub(crate) unsafe fn());

/// An instruction of the bytecode.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Ins {
    pub run: Entry,
    /// Operands: destinations first, then sources.
    pub o: [Slot; 6],
    /// The offset of an address, the distance of a branch in instructions, or another number for the handler.
    pub imm: i64,
    /// A second number for the handler.
    pub aux: u32,
    /// Index in the function's table of source lines.
    pub line: u32,
    /// Number of counted instructions from this one to the end of its straight-line run, which is the next control
    /// transfer or change of the active lanes. They are counted together when a path arrives.
    pub ahead: u32,
    /// Index among all of the kernel's instructions, in a kernel that counts per instruction.
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
