//! Rows: one register of a warp, with one value per lane.
//!
//! Values of up to 32 bits are in rows of `u32`, 64-bit values in rows of `u64`, 128-bit values in rows of `u128`, and
//! predicates in a bit mask.

use std::ptr::NonNull;

/// Lanes per warp.
pub const LANES: usize = 32;

/// One value per lane.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Row<T>(pub [T; LANES]);

impl<T: Copy> Row<T> {
    /// Returns a row with the same value in every lane.
    pub const fn splat(value: T) -> Self {
        Self([value; LANES])
    }
}

/// Type of a lane's value.
pub trait Lane: Copy + Default + 'static {
    /// Returns `new` if `flag` is all ones, `self` if it is zero. LLVM turns a choice between two rows into a choice of
    /// addresses, lane by lane, but vectorises a choice of bits.
    #[must_use]
    fn blend(self, new: Self, flag: i32) -> Self;
}

/// One boolean per lane: all ones or all zeros.
pub type Flags = [i32; LANES];

/// Expands a mask to one boolean per lane.
#[inline(always)]
pub fn flags(mask: u32) -> Flags {
    // Not `from_fn`, which may remain a separate function that is compiled without the caller's instruction set.
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

#[inline(always)]
pub fn each(mut mask: u32, mut lane: impl FnMut(usize)) {
    while mask != 0 {
        lane(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

/// Returns the value of a closure type that captures nothing.
#[inline(always)]
pub fn instance<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a lane closure captures nothing") };
    // SAFETY: reading a zero-sized type touches no bytes, and a `Copy` closure has no invariant beyond its type. The
    // type is inhabited, because the shape's constructor received a value of it.
    unsafe { NonNull::<F>::dangling().read() }
}

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
