//! Lowers operations on f16 and bf16, single or in pairs. They are computed in a wider format and rounded once.

use crate::exec::arith::{fma_odd, max32, min32};
use crate::exec::context::Handler;
use crate::exec::shapes::{binary, compare, ternary, unary};
use crate::isa::decode::{Done, Form, no_type};
use crate::isa::forms::COMPARISONS;
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd};
use ptx_parser::{Operand, ScalarType};

use ::half::f16;

use ScalarType::{B32, Bf16, Bf16x2, F16, F16x2, S32, U32};

type Picked = Result<Handler, String>;
#[inline(never)]
pub fn f16_value(x: u32) -> f32 {
    f16::from_bits(x as u16).to_f32()
}

#[inline(always)]
pub fn bf16_value(x: u32) -> f32 {
    f32::from_bits(x << 16)
}

/// Rounds a double to `bits` fraction bits of a binary format. `least` is the format's smallest normal exponent.
///
/// Adding a power of two whose ulp equals the format's performs the rounding; subtracting it again is exact.
#[inline(always)]
fn round_to(x: f64, bits: u64, least: u64) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7ff).max(least);
    if exponent == 0x7ff {
        return x;
    }
    let magic = f64::from_bits((exponent + 52 - bits) << 52);
    ((x.abs() + magic) - magic).copysign(x)
}

/// Converts a double to f16. NaN becomes canonical.
#[inline(never)]
pub fn to_f16(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { u32::from(f16::from_f32(round_to(x, 10, 1023 - 14) as f32).to_bits()) }
}

/// Converts a double to bf16. NaN becomes canonical.
#[inline(never)]
pub fn to_bf16(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { (round_to(x, 7, 1023 - 126) as f32).to_bits() >> 16 }
}

/// Canonicalises the NaN of an f16.
#[inline(always)]
pub fn canon_f16(x: u32) -> u32 {
    if x & 0x7fff > 0x7c00 { 0x7fff } else { x & 0xffff }
}

/// Canonicalises the NaN of a bf16.
#[inline(always)]
pub fn canon_bf16(x: u32) -> u32 {
    if x & 0x7fff > 0x7f80 { 0x7fff } else { x & 0xffff }
}

/// Lowers `abs` and `neg` on one or two f16 or bf16. `sign` computes bit 15 of each; NaN becomes canonical.
pub fn signs(b: &Builder<'_, '_>, ty: ScalarType, flush: bool, negates: bool) -> Picked {
    macro_rules! each {
        ($f:expr) => {
            if matches!(ty, F16x2 | Bf16x2) {
                unary(b.isa, |x: u32| $f(x >> 16) << 16 | $f(x & 0xffff))
            } else {
                unary(b.isa, |x: u32| $f(x & 0xffff))
            }
        };
    }
    // The canonical NaN has all bits set except the sign.
    fn keep_nan(x: u32, sign: u32) -> u32 {
        if x == 0x7fff { x } else { sign }
    }
    Ok(match (ty, flush, negates) {
        (F16 | F16x2, false, false) => each!(|x| canon_f16(x) & 0x7fff),
        (F16 | F16x2, true, false) => each!(|x| flush_f16(canon_f16(x)) & 0x7fff),
        (F16 | F16x2, false, true) => each!(|x| keep_nan(canon_f16(x), canon_f16(x) ^ 0x8000)),
        (F16 | F16x2, true, true) => each!(|x| keep_nan(canon_f16(x), flush_f16(canon_f16(x)) ^ 0x8000)),
        (Bf16 | Bf16x2, false, false) => each!(|x| canon_bf16(x) & 0x7fff),
        (Bf16 | Bf16x2, false, true) => each!(|x| keep_nan(canon_bf16(x), canon_bf16(x) ^ 0x8000)),
        (ty, ..) => return no_type(ty),
    })
}

/// Flushes f16 subnormals to zero, keeping the sign.
#[inline(always)]
pub fn flush_f16(x: u32) -> u32 {
    if x & 0x7c00 == 0 { x & 0x8000 } else { x & 0xffff }
}

/// Flushes bf16 subnormals to zero, keeping the sign.
#[inline(always)]
pub fn flush_bf16(x: u32) -> u32 {
    if x & 0x7f80 == 0 { x & 0x8000 } else { x & 0xffff }
}

/// Builds a handler for an f16, a bf16, or a pair of either, with optional flushing.
macro_rules! halves {
    ($shape:ident, $b:expr, $ty:expr, $flush:expr, |$($x:ident),+| $body:expr) => {
        match ($ty, $flush) {
            (F16, false) => $shape($b.isa, |$($x: u32),+| { $(let $x = f16_value($x);)+ to_f16($body) }),
            (F16, true) => $shape($b.isa, |$($x: u32),+| {
                $(let $x = f16_value(flush_f16($x));)+
                flush_f16(to_f16($body))
            }),
            (Bf16, false) => $shape($b.isa, |$($x: u32),+| { $(let $x = bf16_value($x);)+ to_bf16($body) }),
            (Bf16, true) => $shape($b.isa, |$($x: u32),+| {
                $(let $x = bf16_value(flush_bf16($x));)+
                flush_bf16(to_bf16($body))
            }),
            (F16x2, false) => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = f16_value($x);)+ to_f16($body) };
                let high = { $(let $x = f16_value($x >> 16);)+ to_f16($body) };
                high << 16 | low
            }),
            (F16x2, true) => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = f16_value(flush_f16($x));)+ flush_f16(to_f16($body)) };
                let high = { $(let $x = f16_value(flush_f16($x >> 16));)+ flush_f16(to_f16($body)) };
                high << 16 | low
            }),
            (Bf16x2, false) => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = bf16_value($x & 0xffff);)+ to_bf16($body) };
                let high = { $(let $x = bf16_value($x >> 16);)+ to_bf16($body) };
                high << 16 | low
            }),
            (Bf16x2, true) => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = bf16_value(flush_bf16($x));)+ flush_bf16(to_bf16($body)) };
                let high = { $(let $x = bf16_value(flush_bf16($x >> 16));)+ flush_bf16(to_bf16($body)) };
                high << 16 | low
            }),
            (ty, _) => return no_type(ty),
        }
    };
}

#[inline(always)]
fn unit(x: f64) -> f64 {
    // This also turns negative zero into positive zero.
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// Replaces a negative result with zero and keeps NaN.
#[inline(always)]
fn relu(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

pub fn add(b: &Builder<'_, '_>, ty: ScalarType, flush: bool, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, flush, |x, y| unit(fma_odd(x, 1.0, y)))
    } else {
        halves!(binary, b, ty, flush, |x, y| fma_odd(x, 1.0, y))
    })
}

pub fn sub(b: &Builder<'_, '_>, ty: ScalarType, flush: bool, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, flush, |x, y| unit(fma_odd(x, 1.0, -y)))
    } else {
        halves!(binary, b, ty, flush, |x, y| fma_odd(x, 1.0, -y))
    })
}

pub fn mul(b: &Builder<'_, '_>, ty: ScalarType, flush: bool, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, flush, |x, y| unit(f64::from(x) * f64::from(y)))
    } else {
        halves!(binary, b, ty, flush, |x, y| f64::from(x) * f64::from(y))
    })
}

pub fn fma(b: &Builder<'_, '_>, ty: ScalarType, flush: bool, sat: bool, clamps: bool) -> Picked {
    Ok(match (sat, clamps) {
        (false, false) => halves!(ternary, b, ty, flush, |x, y, z| fma_odd(x, y, z)),
        (true, _) => halves!(ternary, b, ty, flush, |x, y, z| unit(fma_odd(x, y, z))),
        (false, true) => halves!(ternary, b, ty, flush, |x, y, z| relu(fma_odd(x, y, z))),
    })
}

/// How `min` and `max` handle NaN and signs.
#[derive(Debug, Clone, Copy)]
pub struct Extreme {
    pub flush: bool,
    /// Whether the result is NaN if either source is.
    pub nan: bool,
    /// Whether magnitudes are compared, and the result's sign is the exclusive or of both signs.
    pub xorsign: bool,
}

pub fn minmax(b: &Builder<'_, '_>, ty: ScalarType, largest: bool, how: Extreme) -> Picked {
    let Extreme { flush, nan, xorsign } = how;
    macro_rules! pick {
        ($pick:ident) => {
            match (nan, xorsign) {
                (false, false) => halves!(binary, b, ty, flush, |x, y| f64::from($pick(x, y))),
                (true, false) => halves!(binary, b, ty, flush, |x, y| f64::from(or_nan(x, y, $pick(x, y)))),
                (false, true) => {
                    halves!(binary, b, ty, flush, |x, y| { f64::from(xor_sign(x, y, $pick(x.abs(), y.abs()))) })
                }
                (true, true) => halves!(binary, b, ty, flush, |x, y| {
                    f64::from(or_nan(x, y, xor_sign(x, y, $pick(x.abs(), y.abs()))))
                }),
            }
        };
    }
    Ok(if largest { pick!(max32) } else { pick!(min32) })
}

/// Returns NaN if either source is NaN, otherwise `picked`.
#[inline(always)]
pub fn or_nan(x: f32, y: f32, picked: f32) -> f32 {
    if x.is_nan() || y.is_nan() { f32::NAN } else { picked }
}

/// Returns `picked` with the exclusive or of both signs.
#[inline(always)]
pub fn xor_sign(x: f32, y: f32, picked: f32) -> f32 {
    picked.copysign(f32::from_bits(x.to_bits() ^ y.to_bits()))
}

pub fn transcendental(b: &Builder<'_, '_>, name: &str, ty: ScalarType, flush: bool) -> Picked {
    Ok(match name {
        "ex2" => halves!(unary, b, ty, flush, |x| libm::exp2(f64::from(x))),
        "tanh" => halves!(unary, b, ty, flush, |x| libm::tanh(f64::from(x))),
        _ => return no_type(ty),
    })
}

/// Returns the handler of a comparison of pairs. Bit `k` of the result is set if the comparison is true for half `k`.
fn pairs(b: &Builder<'_, '_>, name: &str, ty: ScalarType, flush: bool) -> Picked {
    macro_rules! with {
        ($compare:expr) => {
            match (ty, flush) {
                (F16x2, false) => binary(b.isa, |x: u32, y: u32| {
                    u32::from($compare(f16_value(x), f16_value(y)))
                        | u32::from($compare(f16_value(x >> 16), f16_value(y >> 16))) << 1
                }),
                (F16x2, true) => binary(b.isa, |x: u32, y: u32| {
                    let value = |x: u32| f16_value(flush_f16(x));
                    u32::from($compare(value(x), value(y))) | u32::from($compare(value(x >> 16), value(y >> 16))) << 1
                }),
                (Bf16x2, false) => binary(b.isa, |x: u32, y: u32| {
                    u32::from($compare(bf16_value(x), bf16_value(y)))
                        | u32::from($compare(bf16_value(x >> 16), bf16_value(y >> 16))) << 1
                }),
                (ty, _) => return no_type(ty),
            }
        };
    }
    Ok(match name {
        "eq" => with!(|x: f32, y: f32| x == y),
        "ne" => with!(|x: f32, y: f32| x < y || x > y),
        "lt" => with!(|x: f32, y: f32| x < y),
        "le" => with!(|x: f32, y: f32| x <= y),
        "gt" => with!(|x: f32, y: f32| x > y),
        "ge" => with!(|x: f32, y: f32| x >= y),
        "equ" => with!(|x: f32, y: f32| !(x < y || x > y)),
        "neu" => with!(|x: f32, y: f32| x != y),
        "ltu" => with!(|x: f32, y: f32| !(x >= y)),
        "leu" => with!(|x: f32, y: f32| !(x > y)),
        "gtu" => with!(|x: f32, y: f32| !(x <= y)),
        "geu" => with!(|x: f32, y: f32| !(x < y)),
        "num" => with!(|x: f32, y: f32| !x.is_nan() && !y.is_nan()),
        "nan" => with!(|x: f32, y: f32| x.is_nan() || y.is_nan()),
        other => return Err(format!("pairs have no comparison `.{other}`")),
    })
}

/// Decodes the comparison of pairs in a form, and emits it into a new register with one bit per half.
fn compared<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Result<Opnd, String> {
    let name = f.one_of(&COMPARISONS).ok_or("expected a comparison")?;
    let flush = f.flag("ftz");
    f.done()?;
    let run = pairs(b, name, ty, flush)?;
    let bits = Opnd::Reg(b.fresh(Class::Narrow));
    let (x, y) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, ty)?);
    b.emit(run, [bits, x, y], 1, 0, 0);
    Ok(bits)
}

/// Lowers `set` on pairs. Each half is 1.0 (or all ones if the result is bits) if the comparison is true.
pub fn set_packed<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, to: ScalarType, from: ScalarType) -> Done {
    let bits = compared(b, f, from)?;
    let run = match to {
        F16x2 => unary(b.isa, |bits: u32| ((bits & 1) * 0x3c00) | ((bits >> 1) * 0x3c00_0000)),
        Bf16x2 => unary(b.isa, |bits: u32| ((bits & 1) * 0x3f80) | ((bits >> 1) * 0x3f80_0000)),
        U32 | S32 | B32 => unary(b.isa, |bits: u32| ((bits & 1) * 0xffff) | ((bits >> 1) * 0xffff_0000)),
        ty => return no_type(ty),
    };
    let d = b.dst(f.operand(0)?, to)?;
    b.emit(run, [d, bits], 1, 0, 0);
    Ok(())
}

/// Returns the handler of a comparison whose result is bit 0 or bit 1 of its first source.
fn nonzero_bit(b: &Builder<'_, '_>, bit: u32) -> Handler {
    if bit == 0 { compare(b.isa, |x: u32, _: u32| x & 1 != 0) } else { compare(b.isa, |x: u32, _: u32| x & 2 != 0) }
}

/// Lowers `setp` on pairs, which sets one predicate per half.
pub fn setp_packed<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let Operand::Pair(low, high) = *f.operand(0)? else {
        return Err("expected two predicates".to_owned());
    };
    let bits = compared(b, f, ty)?;
    for (name, run) in [(low, nonzero_bit(b, 0)), (high, nonzero_bit(b, 1))] {
        if name != "_" {
            let p = b.dst(&Operand::Name(name), ScalarType::Pred)?;
            b.emit(run, [p, Opnd::None, bits, bits], 1, 0, 0);
        }
    }
    Ok(())
}
