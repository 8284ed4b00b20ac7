//! Rounding of f64 to the 16-bit float types.
//!
//! The conversions of the crate `half` round twice: through f32, or after dropping the low bits. A value close to the
//! midpoint between two neighbours is then rounded to the wrong one.

use half::{bf16, f16};

/// Nearest value, ties to even.
#[must_use]
pub fn nearest_f16(value: f64) -> f16 {
    f16::from_f32(to_odd(value))
}

/// Nearest value, ties to even.
#[must_use]
pub fn nearest_bf16(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// Rounds to f32 such that rounding again, to a type with at most 22 digits, yields the nearest value of that type: an
/// inexact value becomes its neighbour towards zero with an odd last bit (S. Boldo, G. Melquiond: Emulation of FMA and
/// correctly rounded sums, IEEE Transactions on Computers 57, 2008).
#[expect(clippy::float_cmp, reason = "tells whether rounding was exact")]
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || !near.is_finite() {
        return near;
    }
    let towards_zero = near.to_bits() - u32::from(wide.abs() > value.abs());
    f32::from_bits(towards_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite value, and the midpoint to the next larger value with the midpoint's two neighbours in f64: the
    /// midpoint rounds to the even value, its neighbours to the nearer one.
    #[test]
    fn every_middle_of_two_values_goes_to_the_even_one_and_its_neighbours_to_the_nearer() {
        for bits in 0..0x7c00_u16 {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            // After the largest finite value comes infinity, where the next power of two would be.
            let wide = if high.is_finite() { high.to_f64() } else { 65_536.0 };
            assert_rounds(low.to_f64(), wide, bits, |value| nearest_f16(value).to_bits());
        }
        for bits in 0..0x7f80_u16 {
            let (low, high) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let wide = if high.is_finite() { high.to_f64() } else { 2_f64.powi(128) };
            assert_rounds(low.to_f64(), wide, bits, |value| nearest_bf16(value).to_bits());
        }
    }

    #[track_caller]
    fn assert_rounds(low: f64, high: f64, bits: u16, round: impl Fn(f64) -> u16) {
        let middle = f64::midpoint(low, high);
        let even = bits + bits % 2;
        for (value, expected) in [(low, bits), (middle.next_down(), bits), (middle, even), (middle.next_up(), bits + 1)]
        {
            assert_eq!(round(value), expected, "{value:e}");
            assert_eq!(round(-value), expected | 0x8000, "-{value:e}");
        }
    }

    #[test]
    fn infinities_and_nan_stay() {
        assert_eq!(nearest_f16(f64::INFINITY), f16::INFINITY);
        assert_eq!(nearest_bf16(f64::NEG_INFINITY), bf16::NEG_INFINITY);
        assert_eq!(nearest_bf16(1e39), bf16::INFINITY);
        assert!(nearest_f16(f64::NAN).is_nan() && nearest_bf16(f64::NAN).is_nan());
    }
}
