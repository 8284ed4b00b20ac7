//! Scalar arithmetic for which Rust has no operator.

/// Bits of the NaN that every f32 operation returns.
const NAN32: u32 = 0x7fff_ffff;

/// Replaces any NaN with the canonical one. Tests the bits, because the optimizer may drop the branch of `if
/// root.is_nan() { NAN } else { root }`: a NaN from arithmetic may have any payload.
#[inline(always)]
pub fn canon(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { NAN32 } else { bits })
}

/// Sets the quiet bit of an f64 NaN. Operations propagate NaN with its sign and payload.
#[inline(always)]
pub fn quiet(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | 1 << 51)
}

/// Converts an f64 NaN to f32: quiet, with the sign and the upper payload.
#[inline(always)]
pub fn short_nan(x: f64) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x003f_ffff)
}

/// Flushes a subnormal number to zero of the same sign.
#[inline(always)]
pub fn ftz(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits & 0x7f80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { x }
}

/// Clamps to [0, 1]; NaN becomes 0.
#[inline(always)]
pub fn sat(x: f32) -> f32 {
    if x >= 1.0 {
        1.0
    } else if x > 0.0 {
        x
    } else {
        0.0
    }
}

/// f64 version of [`sat`].
#[inline(always)]
pub fn sat64(x: f64) -> f64 {
    if x >= 1.0 {
        1.0
    } else if x > 0.0 {
        x
    } else {
        0.0
    }
}

/// Returns the minimum. Prefers a number to NaN, and −0 to +0.
#[inline(always)]
pub fn min32(a: f32, b: f32) -> f32 {
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { canon(a) } else { b }
}

/// Returns the maximum. Prefers a number to NaN, and +0 to −0.
#[inline(always)]
pub fn max32(a: f32, b: f32) -> f32 {
    if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { canon(a) } else { b }
}

/// f64 version of [`min32`].
#[inline(always)]
pub fn min64(a: f64, b: f64) -> f64 {
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// f64 version of [`max32`].
#[inline(always)]
pub fn max64(a: f64, b: f64) -> f64 {
    if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }
}

/// Directed rounding modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Zero,
    Down,
    Up,
}

/// Returns the exact `sum + error` rounded to odd, as a double. Rounding that to a narrower format in any direction is
/// then correct.
fn odd(sum: f64, error: f64) -> f64 {
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // The exact value is between `sum` and its neighbour on the error's side; one of them is odd.
    if sum == 0.0 {
        return error;
    }
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

fn exact_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    odd(sum, if error.is_nan() { 0.0 } else { error })
}

/// Rounds an f64 to f32 in the given direction.
pub fn narrow(x: f64, direction: Direction) -> f32 {
    let near = x as f32;
    if near.is_nan() {
        return f32::from_bits(NAN32);
    }
    let back = f64::from(near);
    let too_large = match direction {
        Direction::Zero => back.abs() > x.abs(),
        Direction::Down => back > x,
        Direction::Up => false,
    };
    let too_small = direction == Direction::Up && back < x;
    if too_large {
        // The result is one step away: toward zero, or down.
        if direction == Direction::Zero || near > 0.0 { step_in(near) } else { step_out(near, true) }
    } else if too_small {
        if near < 0.0 { step_in(near) } else { step_out(near, false) }
    } else {
        near
    }
}

#[inline(always)]
fn step_in(x: f32) -> f32 {
    f32::from_bits(x.to_bits() - 1)
}

#[inline(always)]
fn step_out(x: f32, negative: bool) -> f32 {
    if x == 0.0 {
        return f32::from_bits(u32::from(negative) << 31 | 1);
    }
    f32::from_bits(x.to_bits() + 1)
}

/// Sets the sign of a zero result. An exact zero sum of opposite signs is −0 when rounding down.
#[inline(always)]
fn zero_sign(result: f32, sum: f64, exact_zero: bool, both_negative: bool, direction: Direction) -> f32 {
    if exact_zero && sum == 0.0 && !both_negative && direction == Direction::Down { -0.0 } else { result }
}

/// Returns `a + b`, rounded in the given direction.
pub fn add_toward(a: f32, b: f32, direction: Direction) -> f32 {
    let (x, y) = (f64::from(a), f64::from(b));
    let sum = exact_sum(x, y);
    let cancels = x == -y && (x != 0.0 || x.is_sign_negative() != y.is_sign_negative());
    zero_sign(narrow(sum, direction), sum, cancels, false, direction)
}

/// Returns `a × b`, rounded in the given direction. The product of two f32 is exact in f64.
pub fn mul_toward(a: f32, b: f32, direction: Direction) -> f32 {
    narrow(f64::from(a) * f64::from(b), direction)
}

/// Returns `a × b + c`, rounded in the given direction.
pub fn fma_toward(a: f32, b: f32, c: f32, direction: Direction) -> f32 {
    let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = exact_sum(p, c);
    let cancels = p == -c && (p != 0.0 || p.is_sign_negative() != c.is_sign_negative());
    zero_sign(narrow(sum, direction), sum, cancels, false, direction)
}

/// Returns `a × b + c` of narrow floats as a double that rounds correctly to their format.
pub fn fma_odd(a: f32, b: f32, c: f32) -> f64 {
    exact_sum(f64::from(a) * f64::from(b), f64::from(c))
}

/// Returns `a ÷ b`, rounded in the given direction. The sign of the remainder tells which way the quotient was rounded.
pub fn div_toward(a: f32, b: f32, direction: Direction) -> f32 {
    let (x, y) = (f64::from(a), f64::from(b));
    let q = x / y;
    let rest = (-q).mul_add(y, x);
    narrow(if q.is_finite() && rest.is_finite() { odd(q, if y > 0.0 { rest } else { -rest }) } else { q }, direction)
}

/// Returns the square root, rounded in the given direction.
pub fn sqrt_toward(a: f32, direction: Direction) -> f32 {
    let x = f64::from(a);
    let root = x.sqrt();
    let rest = (-root).mul_add(root, x);
    narrow(if root.is_finite() { odd(root, rest) } else { root }, direction)
}
