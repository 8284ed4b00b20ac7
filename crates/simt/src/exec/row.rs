//! Lanes, rows and the instruction format of the flat bytecode.
//!
//! A register of a warp is a row: one value a lane, 32 lanes. Values of up to 32 bits live in rows of `u32`, 64-bit
//! values in rows of `u64`, 128-bit ones in rows of `u128`, predicates in one bit mask. An operand is a byte offset into
//! one of four areas, named by its two low bits (every row is at least four-byte aligned).

use std::ptr;

use super::context::Context;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One value for every lane.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Row<T>(pub [T; LANES]);

impl<T: Copy> Row<T> {
    /// The same value in every lane.
    pub const fn of(value: T) -> Self {
        Self([value; LANES])
    }
}

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
pub trait Lane: Copy + Default + 'static {
    /// `new` where `flag` is all ones, `self` where it is zero. Of a choice between two rows LLVM makes one between two
    /// addresses, lane after lane; of bits it makes vector code.
    #[must_use]
    fn blend(self, new: Self, flag: i32) -> Self;
}

/// A truth value a lane: all ones or zero.
pub type Flags = [i32; LANES];

/// The bits of a mask as a truth value a lane.
#[inline(always)]
pub fn flags(mask: u32) -> Flags {
    // No `from_fn`: it may stay a function of its own, which is compiled for no instruction set in particular.
    let mut flags = [0; LANES];
    for (k, flag) in flags.iter_mut().enumerate() {
        *flag = -((mask >> k & 1) as i32);
    }
    flags
}

macro_rules! lane {
    ($($t:ty),*) => {$(impl Lane for $t {
        #[inline(always)]
        fn blend(self, new: Self, flag: i32) -> Self {
            let flag = i64::from(flag) as Self;
            (self & !flag) | (new & flag)
        }
    })*};
}
lane!(u8, u16, u32, u64, u128);

macro_rules! float_lane {
    ($($t:ty),*) => {$(impl Lane for $t {
        #[inline(always)]
        fn blend(self, new: Self, flag: i32) -> Self {
            Self::from_bits(self.to_bits().blend(new.to_bits(), flag))
        }
    })*};
}
float_lane!(f32, f64);

macro_rules! signed_lane {
    ($($t:ty),*) => {$(impl Lane for $t {
        #[inline(always)]
        fn blend(self, new: Self, flag: i32) -> Self {
            self.cast_unsigned().blend(new.cast_unsigned(), flag).cast_signed()
        }
    })*};
}
signed_lane!(i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blend_takes_whole_values_where_the_mask_says_so() {
        let on = flags(0x8000_0005);
        assert_eq!([on[0], on[1], on[2], on[30], on[31]], [-1, 0, -1, 0, -1]);
        assert_eq!(7_u64.blend(u64::MAX - 1, on[0]), u64::MAX - 1);
        assert_eq!(7_u64.blend(u64::MAX - 1, on[1]), 7);
        assert_eq!(1_u8.blend(0xfe, on[31]), 0xfe);
        let payload = f64::from_bits(0x7ff8_0000_0000_1234);
        assert_eq!(0.5_f64.blend(payload, on[2]).to_bits(), payload.to_bits());
        assert_eq!(0.5_f32.blend(f32::NAN, on[30]).to_bits(), 0x3f00_0000);
    }
}
