//! Half precision and bfloat16, single and in pairs. Values are computed in a wider format that rounds once.

use ::half::{bf16, f16};

use ScalarType::{Bf16, Bf16x2, F16, F16x2};

use super::{Builder, Form, no_type};
use crate::ptx::ScalarType;
use crate::sim::exec::arith::{fma_odd, max32, min32};
use crate::sim::exec::row::Handler;
use crate::sim::exec::shapes::{binary, ternary, unary};

type Picked = Result<Handler, String>;

/// The value of a half.
#[inline(always)]
pub fn f16_value(x: u32) -> f32 {
    f16::from_bits(x as u16).to_f32()
}

/// The value of a bfloat.
#[inline(always)]
pub fn bf16_value(x: u32) -> f32 {
    f32::from_bits(x << 16)
}

/// A half from a double, NaN canonical.
#[inline(always)]
pub fn to_f16(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { u32::from(f16::from_f64(x).to_bits()) }
}

/// A bfloat from a double, NaN canonical.
#[inline(always)]
pub fn to_bf16(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { u32::from(bf16::from_f64(x).to_bits()) }
}

/// A handler on one half, one bfloat, or a pair of either.
macro_rules! halves {
    ($shape:ident, $b:expr, $ty:expr, |$($x:ident),+| $body:expr) => {
        match $ty {
            F16 => $shape($b.isa, |$($x: u32),+| { $(let $x = f16_value($x);)+ to_f16($body) }),
            Bf16 => $shape($b.isa, |$($x: u32),+| { $(let $x = bf16_value($x);)+ to_bf16($body) }),
            F16x2 => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = f16_value($x);)+ to_f16($body) };
                let high = { $(let $x = f16_value($x >> 16);)+ to_f16($body) };
                high << 16 | low
            }),
            Bf16x2 => $shape($b.isa, |$($x: u32),+| {
                let low = { $(let $x = bf16_value($x & 0xffff);)+ to_bf16($body) };
                let high = { $(let $x = bf16_value($x >> 16);)+ to_bf16($body) };
                high << 16 | low
            }),
            ty => return no_type(ty),
        }
    };
}

#[inline(always)]
fn unit(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) }
}

pub fn add(b: &Builder<'_, '_>, _: &Form<'_, '_>, ty: ScalarType, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, |x, y| unit(fma_odd(x, 1.0, y)))
    } else {
        halves!(binary, b, ty, |x, y| fma_odd(x, 1.0, y))
    })
}

pub fn sub(b: &Builder<'_, '_>, _: &Form<'_, '_>, ty: ScalarType, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, |x, y| unit(fma_odd(x, 1.0, -y)))
    } else {
        halves!(binary, b, ty, |x, y| fma_odd(x, 1.0, -y))
    })
}

pub fn mul(b: &Builder<'_, '_>, _: &Form<'_, '_>, ty: ScalarType, sat: bool) -> Picked {
    Ok(if sat {
        halves!(binary, b, ty, |x, y| unit(f64::from(x) * f64::from(y)))
    } else {
        halves!(binary, b, ty, |x, y| f64::from(x) * f64::from(y))
    })
}

pub fn fma(b: &Builder<'_, '_>, _: &Form<'_, '_>, ty: ScalarType, sat: bool, relu: bool) -> Picked {
    Ok(match (sat, relu) {
        (false, false) => halves!(ternary, b, ty, |x, y, z| fma_odd(x, y, z)),
        (true, _) => halves!(ternary, b, ty, |x, y, z| unit(fma_odd(x, y, z))),
        (false, true) => halves!(ternary, b, ty, |x, y, z| {
            let r = fma_odd(x, y, z);
            if r < 0.0 { 0.0 } else { r }
        }),
    })
}

pub fn minmax(b: &Builder<'_, '_>, ty: ScalarType, largest: bool, nan: bool) -> Picked {
    Ok(match (largest, nan) {
        (false, false) => halves!(binary, b, ty, |x, y| f64::from(min32(x, y))),
        (true, false) => halves!(binary, b, ty, |x, y| f64::from(max32(x, y))),
        (false, true) => {
            halves!(binary, b, ty, |x, y| f64::from(if x.is_nan() || y.is_nan() { f32::NAN } else { min32(x, y) }))
        }
        (true, true) => {
            halves!(binary, b, ty, |x, y| f64::from(if x.is_nan() || y.is_nan() { f32::NAN } else { max32(x, y) }))
        }
    })
}

pub fn transcendental(b: &Builder<'_, '_>, name: &str, ty: ScalarType) -> Picked {
    Ok(match name {
        "ex2" => halves!(unary, b, ty, |x| libm::exp2(f64::from(x))),
        "tanh" => halves!(unary, b, ty, |x| libm::tanh(f64::from(x))),
        _ => return no_type(ty),
    })
}

/// `set` on pairs: 1.0 in each half where the comparison holds.
pub fn set_packed<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Result<(), String> {
    f.flag("ftz");
    let name = f.one_of(&["eq", "ne", "lt", "le", "gt", "ge", "neu"]).ok_or("a comparison is expected")?;
    macro_rules! with {
        ($operator:tt) => {
            halves!(binary, b, ty, |x, y| if x $operator y { 1.0 } else { 0.0 })
        };
    }
    let run = match name {
        "eq" => with!(==),
        "ne" => halves!(binary, b, ty, |x, y| if x < y || x > y { 1.0 } else { 0.0 }),
        "neu" => with!(!=),
        "lt" => with!(<),
        "le" => with!(<=),
        "gt" => with!(>),
        _ => with!(>=),
    };
    super::integer::two(b, f, ty, run)
}
