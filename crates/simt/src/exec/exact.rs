//! Computes exact values and rounds them to any binary format, in any direction.
//!
//! A value is a sign and 128 bits of magnitude times a power of two. If lower bits are dropped, the last bit is set, so
//! that the result is rounded only once. This is simple and slow: it serves directed rounding of f64 and conversions to
//! narrow formats, not frequent operations.

use crate::exec::arith::Direction;

/// A binary format in the layout of IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    pub exponent_bits: u32,
    pub mantissa_bits: u32,
    /// Bit pattern of the largest finite number.
    pub largest: u64,
    /// Bit pattern that overflow produces.
    pub infinity: u64,
}

/// Returns a format whose largest exponent field means infinity or NaN.
const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Format {
    let infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    Format { exponent_bits, mantissa_bits, largest: infinity - 1, infinity }
}

pub const F16: Format = ieee(5, 10);
pub const BF16: Format = ieee(8, 7);
pub const TF32: Format = ieee(8, 10);
pub const E5M2: Format = ieee(5, 2);
/// The 8-bit E4M3, which has no infinity; NaN has all bits set except the sign.
pub const E4M3: Format = Format { exponent_bits: 4, mantissa_bits: 3, largest: 0x7e, infinity: 0x7f };
const F64: Format = ieee(11, 52);

/// Rounding modes of conversions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest, ties to even.
    Even,
    /// To nearest, ties away from zero.
    Away,
    Toward(Direction),
}

impl Format {
    const fn sign(self, negative: bool) -> u64 {
        (negative as u64) << (self.exponent_bits + self.mantissa_bits)
    }
}

/// The exact number `± magnitude × 2^exponent`.
#[derive(Debug, Clone, Copy)]
struct Exact {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

/// Decomposes a finite double.
fn exact(x: f64) -> Exact {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
    Exact { negative: bits >> 63 == 1, magnitude: magnitude.into(), exponent: field.max(1) - 1075 }
}

/// Shifts right; sets the last bit if any dropped bit is set.
const fn jam(x: u128, by: u32) -> u128 {
    if by == 0 {
        x
    } else if by > 127 {
        (x != 0) as u128
    } else {
        x >> by | (x << (128 - by) != 0) as u128
    }
}

impl Exact {
    /// Normalises the number so that its highest bit is bit 125, which leaves room for a carry.
    fn normal(self) -> Self {
        let room = self.magnitude.leading_zeros() as i32 - 2;
        if room >= 0 {
            Self { magnitude: self.magnitude << room, exponent: self.exponent - room, ..self }
        } else {
            Self { magnitude: jam(self.magnitude, room.unsigned_abs()), exponent: self.exponent - room, ..self }
        }
    }

    /// Returns the sum. An exact zero is negative if both terms are, or if rounding down.
    fn plus(self, other: Self, direction: Direction) -> Self {
        let zero = |negative| Self { negative, magnitude: 0, exponent: 0 };
        match (self.magnitude, other.magnitude) {
            (0, 0) if self.negative == other.negative => return zero(self.negative),
            (0, 0) => return zero(direction == Direction::Down),
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.normal(), other.normal());
        let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        let low_magnitude = jam(low.magnitude, high.exponent.abs_diff(low.exponent));
        let same = high.negative == low.negative;
        let (negative, magnitude) = if same {
            (high.negative, high.magnitude + low_magnitude)
        } else if high.magnitude > low_magnitude {
            (high.negative, high.magnitude - low_magnitude)
        } else if high.magnitude < low_magnitude {
            (low.negative, low_magnitude - high.magnitude)
        } else {
            return zero(direction == Direction::Down);
        };
        Self { negative, magnitude, exponent: high.exponent }
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Returns the bit pattern in a format. Overflow becomes infinity, or the largest finite number if the rounding
    /// mode requires it.
    fn round(self, format: Format, how: Rounding) -> u64 {
        let sign = format.sign(self.negative);
        if self.magnitude == 0 {
            return sign;
        }
        let mantissa_bits = format.mantissa_bits as i32;
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        let top = self.exponent + 127 - self.magnitude.leading_zeros() as i32;
        let place = top.max(1 - bias) - mantissa_bits;
        let drop = place - self.exponent;
        let (kept, rest) = if drop <= 0 {
            (self.magnitude << drop.unsigned_abs(), 0)
        } else if drop < 128 {
            (self.magnitude >> drop, self.magnitude << (128 - drop))
        } else {
            (0, 1)
        };
        let half = 1 << 127;
        let up = match how {
            Rounding::Even => rest > half || (rest == half && kept & 1 == 1),
            Rounding::Away => rest >= half,
            Rounding::Toward(Direction::Zero) => false,
            Rounding::Toward(Direction::Down) => self.negative && rest != 0,
            Rounding::Toward(Direction::Up) => !self.negative && rest != 0,
        };
        let kept = kept as u64 + u64::from(up);
        // A mantissa that overflows into its hidden bit increments the exponent by carrying.
        let bits = ((place + mantissa_bits + bias) as u64 - 1).wrapping_shl(format.mantissa_bits).wrapping_add(kept);
        if bits <= format.largest {
            return sign | bits;
        }
        let inward = match how {
            Rounding::Even | Rounding::Away => false,
            Rounding::Toward(Direction::Zero) => true,
            Rounding::Toward(Direction::Down) => !self.negative,
            Rounding::Toward(Direction::Up) => self.negative,
        };
        sign | if inward { format.largest } else { format.infinity }
    }

    fn double(self, direction: Direction) -> f64 {
        f64::from_bits(self.round(F64, Rounding::Toward(direction)))
    }
}

/// Value of a bit pattern in a narrow format. Patterns above the largest finite number are NaN, except IEEE infinity.
pub fn value(bits: u64, format: Format) -> f64 {
    let sign = format.sign(true);
    let (negative, bits) = (bits & sign != 0, bits & (sign - 1));
    let (field, fraction) = (bits >> format.mantissa_bits, bits & ((1 << format.mantissa_bits) - 1));
    let size = if bits > format.largest {
        if bits == format.infinity && fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else {
        let magnitude = if field == 0 { fraction } else { fraction | 1 << format.mantissa_bits };
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        magnitude as f64 * 2.0_f64.powi(field.max(1) as i32 - bias - format.mantissa_bits as i32)
    };
    if negative { -size } else { size }
}

/// Converts a double to a narrow format. NaN becomes the pattern with all bits set except the sign.
pub fn convert(x: f64, format: Format, how: Rounding) -> u64 {
    if x.is_nan() {
        return format.sign(true) - 1;
    }
    if x.is_infinite() {
        return format.sign(x < 0.0) | format.infinity;
    }
    exact(x).round(format, how)
}

/// Converts an integer to a double, rounded in the given direction.
pub fn from_integer(x: i128, direction: Direction) -> f64 {
    Exact { negative: x < 0, magnitude: x.unsigned_abs(), exponent: 0 }.double(direction)
}

/// Returns `a + b`, rounded in the given direction.
pub fn add(a: f64, b: f64, direction: Direction) -> f64 {
    let near = a + b;
    if a.is_finite() && b.is_finite() { exact(a).plus(exact(b), direction).double(direction) } else { near }
}

/// Returns `a − b`, rounded in the given direction.
pub fn sub(a: f64, b: f64, direction: Direction) -> f64 {
    let near = a - b;
    if near.is_nan() { near } else { add(a, -b, direction) }
}

/// Returns `a × b`, rounded in the given direction.
pub fn mul(a: f64, b: f64, direction: Direction) -> f64 {
    let near = a * b;
    if a.is_finite() && b.is_finite() { exact(a).times(exact(b)).double(direction) } else { near }
}

/// Returns `a × b + c`, rounded in the given direction.
pub fn fma(a: f64, b: f64, c: f64, direction: Direction) -> f64 {
    let near = a.mul_add(b, c);
    if a.is_finite() && b.is_finite() && c.is_finite() {
        exact(a).times(exact(b)).plus(exact(c), direction).double(direction)
    } else {
        near
    }
}

/// Returns `a ÷ b`, rounded in the given direction.
pub fn div(a: f64, b: f64, direction: Direction) -> f64 {
    let near = a / b;
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return near;
    }
    let (x, y) = (exact(a).normal(), exact(b));
    let quotient = x.magnitude / y.magnitude;
    let magnitude = quotient << 1 | u128::from(quotient * y.magnitude != x.magnitude);
    let negative = x.negative != y.negative;
    Exact { negative, magnitude, exponent: x.exponent - y.exponent - 1 }.double(direction)
}

/// Returns the square root, rounded in the given direction.
pub fn sqrt(a: f64, direction: Direction) -> f64 {
    let near = a.sqrt();
    if near.is_nan() || near.is_infinite() || a == 0.0 {
        return near;
    }
    let mut x = exact(a).normal();
    if x.exponent % 2 != 0 {
        x = Exact { magnitude: x.magnitude << 1, exponent: x.exponent - 1, ..x };
    }
    let root = x.magnitude.isqrt();
    let magnitude = root << 1 | u128::from(root * root != x.magnitude);
    Exact { negative: false, magnitude, exponent: x.exponent / 2 - 1 }.double(direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Direction; 3] = [Direction::Zero, Direction::Down, Direction::Up];

    /// Picks the result expected in a direction, given the nearest double and the ones on either side of the exact
    /// value.
    fn bracket(direction: Direction, down: f64, near: f64, up: f64) -> f64 {
        match direction {
            Direction::Down => down,
            Direction::Zero if near > 0.0 => down,
            Direction::Zero | Direction::Up => up,
        }
    }

    #[test]
    fn a_third_is_rounded_to_both_its_neighbours() {
        let (low, high) = (f64::from_bits(0x3fd5_5555_5555_5555), f64::from_bits(0x3fd5_5555_5555_5556));
        for direction in MODES {
            assert_eq!(div(1.0, 3.0, direction).to_bits(), bracket(direction, low, low, high).to_bits());
            assert_eq!(div(-1.0, 3.0, direction).to_bits(), bracket(direction, -high, -low, -low).to_bits());
        }
    }

    #[test]
    fn sums_cancel_to_the_zero_of_their_direction() {
        assert_eq!(add(1.5, -1.5, Direction::Down).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(add(1.5, -1.5, Direction::Up).to_bits(), 0);
        assert_eq!(add(-0.0, -0.0, Direction::Up).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(fma(2.0, 3.0, -6.0, Direction::Down).to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn overflow_stops_at_the_largest_number_where_infinity_lies_outward() {
        assert_eq!(mul(1e200, 1e200, Direction::Zero), f64::MAX);
        assert_eq!(mul(1e200, 1e200, Direction::Up), f64::INFINITY);
        assert_eq!(mul(-1e200, 1e200, Direction::Up), f64::MIN);
        assert_eq!(convert(1e6, F16, Rounding::Even), 0x7c00);
        assert_eq!(convert(1e6, F16, Rounding::Toward(Direction::Zero)), 0x7bff);
    }

    #[test]
    fn eight_bits_hold_what_their_formats_are_documented_to_hold() {
        let known = [(0x00, 0.0), (0x01, 2.0_f64.powi(-9)), (0x07, 0.875 / 64.0), (0x08, 1.0 / 64.0), (0x38, 1.0)];
        for (bits, x) in known.into_iter().chain([(0x7e, 448.0), (0xfe, -448.0), (0xb8, -1.0)]) {
            assert_eq!(value(bits, E4M3).to_bits(), f64::to_bits(x), "e4m3 {bits:#x}");
        }
        let known = [(0x01, 2.0_f64.powi(-16)), (0x04, 2.0_f64.powi(-14)), (0x3c, 1.0), (0x7b, 57344.0)];
        for (bits, x) in known.into_iter().chain([(0x7c, f64::INFINITY), (0xfc, f64::NEG_INFINITY), (0x80, -0.0)]) {
            assert_eq!(value(bits, E5M2).to_bits(), f64::to_bits(x), "e5m2 {bits:#x}");
        }
        assert!(value(0x7f, E4M3).is_nan() && value(0xff, E4M3).is_nan());
        assert!((0x7d..0x80).all(|bits| value(bits, E5M2).is_nan()));
    }

    #[test]
    fn every_number_of_eight_bits_comes_back_as_itself() {
        for (format, bits) in [E4M3, E5M2].into_iter().flat_map(|format| (0..256).map(move |bits| (format, bits))) {
            let x = value(bits, format);
            assert!(x.is_nan() || convert(x, format, Rounding::Even) == bits, "{format:?} {bits:#x}");
        }
    }

    #[test]
    fn what_lies_below_the_smallest_number_becomes_it_or_zero() {
        assert_eq!(mul(1e-200, 1e-200, Direction::Up).to_bits(), 1);
        assert_eq!(mul(1e-200, 1e-200, Direction::Down).to_bits(), 0);
        assert_eq!(mul(-1e-200, 1e-200, Direction::Down).to_bits(), 1 << 63 | 1);
        assert_eq!(sqrt(f64::from_bits(1), Direction::Up), 2.0_f64.powi(-537));
    }

    proptest::proptest! {
        #[test]
        fn rounding_to_nearest_is_the_hosts_own(bits: u64) {
            let x = f64::from_bits(bits);
            proptest::prop_assume!(!x.is_nan());
            proptest::prop_assert_eq!(convert(x, F16, Rounding::Even), u64::from(half::f16::from_f64(x).to_bits()));
            proptest::prop_assert_eq!(convert(x, F64, Rounding::Even), bits);
        }

        #[test]
        fn a_fused_sum_lies_between_its_directed_neighbours(a: f64, b: f64, c: f64) {
            let near = a.mul_add(b, c);
            proptest::prop_assume!(near.is_finite());
            let (down, up) = (fma(a, b, c, Direction::Down), fma(a, b, c, Direction::Up));
            proptest::prop_assert!(down <= near && near <= up);
            proptest::prop_assert!(up == down || up == down.next_up());
        }

        #[test]
        fn directed_sums_square_with_the_error_of_the_nearest(a in -1e150..1e150_f64, b in -1e150..1e150_f64) {
            let near = a + b;
            let part = near - a;
            let error = (a - (near - part)) + (b - part);
            let down = if error < 0.0 { near.next_down() } else { near };
            let up = if error > 0.0 { near.next_up() } else { near };
            for direction in MODES {
                proptest::prop_assert_eq!(add(a, b, direction), bracket(direction, down, near, up));
            }
        }
    }
}
