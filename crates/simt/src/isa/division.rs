//! Integer quotients and remainders.
//!
//! 32-bit divisions use doubles for all lanes at once. They use a shift if all lanes divide by the same power of two,
//! which is common in index arithmetic. If the divisor is zero, quotient and remainder are all ones, as on a GPU.

use crate::exec::shapes;
use crate::exec::shapes::binary;
use crate::exec::vector::divide;
use crate::isa::decode::{Done, Form, apply, no_type};
use crate::isa::float;
use crate::isa::integer::by_type;
use crate::mir::builder::Builder;
use ptx_parser::ScalarType;

use ScalarType::{B16, B32, B64, S16, S32, S64, U16, U32, U64};

pub fn div<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    if ty.is_float() {
        return float::div(b, f, ty);
    }
    let run = match ty {
        U32 => divide(b.isa, unsigned),
        S32 => divide(b.isa, |x: u32, y: u32, shift: u32| signed(x as i32, y as i32, shift) as u32),
        ty => by_type!(shapes::binary, b.isa, ty, |x, y| if y == 0 { !0 } else { x.wrapping_div(y) }),
    };
    apply(b, f, [ty; 3], run)
}

pub fn rem<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = match ty {
        U32 => divide(
            b.isa,
            |x: u32, y: u32, shift: u32| {
                if y == 0 { !0 } else { x.wrapping_sub(unsigned(x, y, shift).wrapping_mul(y)) }
            },
        ),
        S32 => divide(b.isa, |x: u32, y: u32, shift: u32| {
            let quotient = signed(x as i32, y as i32, shift) as u32;
            if y == 0 { !0 } else { x.wrapping_sub(quotient.wrapping_mul(y)) }
        }),
        ty => by_type!(shapes::binary, b.isa, ty, |x, y| if y == 0 { !0 } else { x.wrapping_rem(y) }),
    };
    apply(b, f, [ty; 3], run)
}

/// Returns `x ÷ y`. If `shift` is below 32, `y` is `2^shift`.
#[inline(always)]
fn unsigned(x: u32, y: u32, shift: u32) -> u32 {
    match shift {
        0..32 => x >> shift,
        _ if y == 0 => !0,
        _ => quotient(x, y),
    }
}

/// Divides signed numbers, rounding toward zero. The bit pattern 2³¹ is not a positive number here.
#[inline(always)]
fn signed(x: i32, y: i32, shift: u32) -> i32 {
    match shift {
        0..31 => x.wrapping_add((x >> 31) & ((1 << shift) - 1)) >> shift,
        _ if y == 0 => !0,
        _ => signed_quotient(x, y),
    }
}

/// Returns `x ÷ y` in a form that vectorises. If the divisor is zero, the result is unspecified.
///
/// Rounding the quotient of two 32-bit numbers to 53 bits never reaches an integer above the exact quotient. For that,
/// the exact quotient would have to be within 2⁻⁵³ of the integer (relative error), but it differs by at least 2⁻³².
#[inline(always)]
fn quotient(x: u32, y: u32) -> u32 {
    let q = f64::from(x) / f64::from(y.max(1));
    // SAFETY: `q` is not NaN and is between 0 and 2³² − 1.
    unsafe { q.to_int_unchecked() }
}

/// Divides signed numbers. The smallest number divided by −1 wraps around.
#[inline(always)]
fn signed_quotient(x: i32, y: i32) -> i32 {
    let q = quotient(x.unsigned_abs(), y.unsigned_abs()) as i32;
    if (x ^ y) < 0 { q.wrapping_neg() } else { q }
}

#[cfg(test)]
mod tests {
    use crate::isa::division::{signed, unsigned};

    #[test]
    fn quotients_by_doubles_and_by_shifts_are_those_of_integers() {
        let near = |x: u32| (0..3).flat_map(move |d| [x.wrapping_sub(d), x.wrapping_add(d)]);
        let edges: Vec<u32> =
            [0, 8, 1 << 16, 1 << 31, u32::MAX, 715_827_883, 4_294_901_761].into_iter().flat_map(near).collect();
        for &x in &edges {
            for &y in edges.iter().filter(|&&y| y != 0) {
                let power = if y.is_power_of_two() { y.trailing_zeros() } else { u32::MAX };
                for shift in [u32::MAX, power] {
                    assert_eq!(unsigned(x, y, shift), x / y, "{x} / {y}");
                    let (x, y) = (x as i32, y as i32);
                    assert_eq!(signed(x, y, shift), x.wrapping_div(y), "{x} / {y}, signed");
                }
            }
        }
    }
}
