//! The twelve element types as Rust types, and dispatch to them at run time.
//!
//! Bytes are little-endian, as on all supported devices, and need not be aligned. All functions are `inline`: they are
//! in the innermost loops of timed references, and an incremental build does not inline across modules by itself.

use half::{bf16, f16};
use runner_types::{nearest_bf16, nearest_f16};

pub trait Typed: Copy + Send + Sync + 'static {
    const SIZE: usize;

    /// Reads a value from exactly [`Self::SIZE`] bytes.
    fn load(bytes: &[u8]) -> Self;

    /// Writes the value to exactly [`Self::SIZE`] bytes.
    fn store(self, bytes: &mut [u8]);
}

/// An integer type, with its values as 64-bit lanes: sign- or zero-extended, and u64 as its bits.
pub trait Integer: Typed + Ord {
    const MIN: i128;
    const MAX: i128;

    fn lane(self) -> i64;

    /// Low bits of a lane, so that results of lane arithmetic wrap as the type does.
    fn from_lane(lane: i64) -> Self;

    /// Nearest value of the type; NaN becomes 0.
    fn nearest(value: f64) -> Self;
}

/// A float type whose values are all exact in f64.
pub trait Float: Typed {
    fn wide(self) -> f64;

    /// Rounds to nearest, ties to even.
    fn nearest(value: f64) -> Self;

    /// Largest value below a finite one.
    fn below(self) -> Self;
}

macro_rules! typed {
    ($($type:ty),*) => {$(
        impl Typed for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn load(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                Self::from_le_bytes(raw)
            }

            #[inline]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            const MIN: i128 = <$type>::MIN as i128;
            const MAX: i128 = <$type>::MAX as i128;

            #[inline]
            fn lane(self) -> i64 {
                i128::from(self) as i64
            }

            #[inline]
            fn from_lane(lane: i64) -> Self {
                lane as $type
            }

            #[inline]
            fn nearest(value: f64) -> Self {
                value.round_ties_even() as $type
            }
        }
    )*};
}

macro_rules! float {
    ($($type:ty, $widen:expr, $narrow:expr);*) => {$(
        impl Float for $type {
            #[inline]
            fn wide(self) -> f64 {
                $widen(self)
            }

            #[inline]
            fn nearest(value: f64) -> Self {
                $narrow(value)
            }

            #[inline]
            fn below(self) -> Self {
                let bits = self.to_bits();
                let sign = 1 << (size_of::<$type>() * 8 - 1);
                Self::from_bits(match bits {
                    0 => sign | 1,
                    negative if negative & sign == sign => if negative == sign { sign | 1 } else { bits + 1 },
                    _ => bits - 1,
                })
            }
        }
    )*};
}

/// Widens without branches or calls, so that loops over it are vectorised. The bits are placed as those of an f32 whose
/// exponent is 112 too small; a multiplication corrects that, for subnormals too.
#[inline]
fn widen_f16(value: f16) -> f64 {
    const TWO_TO_112: f32 = f32::from_bits((112 + 127) << 23);
    let bits = u32::from(value.to_bits());
    let finite = f32::from_bits((bits & 0x7fff) << 13) * TWO_TO_112;
    let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f64::from(f32::from_bits(finite.to_bits() | special | (bits & 0x8000) << 16))
}

typed!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
integer!(i8, i16, i32, i64, u8, u16, u32, u64);
float!(
    f16, widen_f16, nearest_f16;
    bf16, |value: bf16| f64::from(f32::from_bits(u32::from(value.to_bits()) << 16)), nearest_bf16;
    f32, f64::from, |value: f64| value as f32;
    f64, |value: f64| value, |value: f64| value
);

/// Evaluates one of two expressions with a type alias for the element type known at run time.
macro_rules! by_type {
    ($element:expr, integer $int:ident => $integer:expr, float $flt:ident => $float:expr $(,)?) => {{
        use runner_types::ElementType as E;
        macro_rules! arm {
            ($alias:ident, $type:ty, $body:expr) => {{
                type $alias = $type;
                $body
            }};
        }
        match $element {
            E::I8 => arm!($int, i8, $integer),
            E::I16 => arm!($int, i16, $integer),
            E::I32 => arm!($int, i32, $integer),
            E::I64 => arm!($int, i64, $integer),
            E::U8 => arm!($int, u8, $integer),
            E::U16 => arm!($int, u16, $integer),
            E::U32 => arm!($int, u32, $integer),
            E::U64 => arm!($int, u64, $integer),
            E::F16 => arm!($flt, half::f16, $float),
            E::Bf16 => arm!($flt, half::bf16, $float),
            E::F32 => arm!($flt, f32, $float),
            E::F64 => arm!($flt, f64, $float),
        }
    }};
}

pub(super) use by_type;

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "neighbouring values are known to the bit")]
mod tests {
    use half::{bf16, f16};

    use super::{Float, Integer, Typed};

    #[test]
    fn the_value_below_one_is_one_unit_in_the_last_place_away() {
        assert_eq!(1.0f32.below(), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(1.0f64.below(), 1.0 - f64::EPSILON / 2.0);
        assert_eq!(f16::ONE.below().to_f64(), 1.0 - 2f64.powi(-11));
        assert_eq!(bf16::ONE.below().to_f64(), 1.0 - 2f64.powi(-8));
    }

    #[test]
    fn below_zero_come_the_negative_subnormals() {
        for zero in [0.0f32, -0.0] {
            assert_eq!(zero.below(), -f32::from_bits(1));
        }
        assert_eq!((-1.0f32).below(), -1.0 - f32::EPSILON);
    }

    #[test]
    fn every_half_widens_to_what_the_crate_that_made_it_says() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert_eq!(half.wide().is_nan(), half.is_nan(), "{bits:#x}");
            assert_eq!(brain.wide().is_nan(), brain.is_nan(), "{bits:#x}");
            assert!(half.is_nan() || half.wide().to_bits() == half.to_f64().to_bits(), "{bits:#x}");
            assert!(brain.is_nan() || brain.wide().to_bits() == brain.to_f64().to_bits(), "{bits:#x}");
        }
    }

    #[test]
    fn lanes_extend_by_the_sign_of_the_type_and_wrap_back() {
        assert_eq!((-1i8).lane(), -1);
        assert_eq!(255u8.lane(), 255);
        assert_eq!(u64::MAX.lane(), -1);
        assert_eq!(u8::from_lane(256 + 7), 7);
        assert_eq!(i16::from_lane(0x1_8000), i16::MIN);
    }

    #[test]
    fn bytes_are_little_endian() {
        let mut bytes = [0; 4];
        0x0102_0304u32.store(&mut bytes);
        assert_eq!(bytes, [4, 3, 2, 1]);
        assert_eq!(u32::load(&bytes), 0x0102_0304);
    }
}
