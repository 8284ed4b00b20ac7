//! Lowers single- and double-precision operations.

use crate::exec::arith::{
    Direction, add_toward, canon, div_toward, fma_toward, ftz, max32, max64, min32, min64, mul_toward, quiet, sat,
    sqrt_toward,
};
use crate::exec::context::Handler;
use crate::exec::shapes::{COMBINE_AND, COMBINE_OR, COMBINE_XOR, binary, compare, ternary, unary};
use crate::exec::{exact, shapes, vector};
use crate::isa::decode::{Done, Form, apply, no_type, selector};
use crate::isa::forms::COMPARISONS;
use crate::isa::half;
use crate::isa::half::{Extreme, flush_f16, or_nan, xor_sign};
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd, Work};
use crate::program::aux::Combination;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B16, B32, B64, Bf16, Bf16x2, F16, F16x2, F32, F64, S16, S32, S64, U16, U32, U64};

/// Builds a handler for `f32` with optional flushing and saturation. Without saturation, it comes from the named family
/// of shapes.
macro_rules! singles {
    ($family:ident::$shape:ident, $isa:expr, $ftz:expr, $sat:expr, |$($x:ident),+| $body:expr) => {
        match ($ftz, $sat) {
            (false, false) => $family::$shape($isa, |$($x: f32),+| canon($body)),
            (true, false) => $family::$shape($isa, |$($x: f32),+| { $(let $x = ftz($x);)+ ftz(canon($body)) }),
            (false, true) => $shape($isa, |$($x: f32),+| sat($body)),
            (true, true) => $shape($isa, |$($x: f32),+| { $(let $x = ftz($x);)+ ftz(sat($body)) }),
        }
    };
}

/// Consumes the rounding direction of an operation; `None` means to nearest.
fn rounding(f: &mut Form<'_, '_>) -> Option<Direction> {
    match f.one_of(&["rn", "rz", "rm", "rp"]) {
        Some("rz") => Some(Direction::Zero),
        Some("rm") => Some(Direction::Down),
        Some("rp") => Some(Direction::Up),
        _ => None,
    }
}

/// Builds an `f32` operation, in all rounding modes.
macro_rules! rounded {
    ($shape:ident, $b:expr, $direction:expr, $ftz:expr, $sat:expr, |$($x:ident),+| $near:expr, $toward:ident) => {
        match $direction {
            None => singles!(vector::$shape, $b.isa, $ftz, $sat, |$($x),+| $near),
            Some(Direction::Zero) => {
                singles!(shapes::$shape, $b.isa, $ftz, $sat, |$($x),+| $toward($($x),+, Direction::Zero))
            }
            Some(Direction::Down) => {
                singles!(shapes::$shape, $b.isa, $ftz, $sat, |$($x),+| $toward($($x),+, Direction::Down))
            }
            Some(Direction::Up) => {
                singles!(shapes::$shape, $b.isa, $ftz, $sat, |$($x),+| $toward($($x),+, Direction::Up))
            }
        }
    };
}

/// Builds an `f64` operation, in all rounding modes.
macro_rules! doubles {
    ($shape:ident, $b:expr, $direction:expr, |$($x:ident),+| $near:expr, $toward:path) => {
        match $direction {
            None => vector::$shape($b.isa, |$($x: f64),+| $near),
            Some(Direction::Zero) => $shape($b.isa, |$($x: f64),+| $toward($($x),+, Direction::Zero)),
            Some(Direction::Down) => $shape($b.isa, |$($x: f64),+| $toward($($x),+, Direction::Down)),
            Some(Direction::Up) => $shape($b.isa, |$($x: f64),+| $toward($($x),+, Direction::Up)),
        }
    };
}

/// Checks that the operation rounds to nearest, as all operations on narrow floats do.
fn nearest(direction: Option<Direction>, ty: ScalarType) -> Result<ScalarType, String> {
    match direction {
        None => Ok(ty),
        Some(d) => Err(format!("type `{ty:?}` is not rounded toward {d:?}")),
    }
}

pub fn add<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let (direction, flush, saturate) = (rounding(f), f.flag("ftz"), f.flag("sat"));
    let run = match ty {
        F32 => rounded!(binary, b, direction, flush, saturate, |x, y| x + y, add_toward),
        F64 => doubles!(binary, b, direction, |x, y| x + y, exact::add),
        ty => half::add(b, nearest(direction, ty)?, flush, saturate)?,
    };
    apply(b, f, [ty; 3], run)
}

pub fn sub<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let (direction, flush, saturate) = (rounding(f), f.flag("ftz"), f.flag("sat"));
    let run = match ty {
        F32 => rounded!(binary, b, direction, flush, saturate, |x, y| x - y, sub_toward),
        F64 => doubles!(binary, b, direction, |x, y| x - y, exact::sub),
        ty => half::sub(b, nearest(direction, ty)?, flush, saturate)?,
    };
    apply(b, f, [ty; 3], run)
}

#[inline(always)]
fn sub_toward(x: f32, y: f32, direction: Direction) -> f32 {
    add_toward(x, -y, direction)
}

pub fn mul<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let (direction, flush, saturate) = (rounding(f), f.flag("ftz"), f.flag("sat"));
    let run = match ty {
        F32 => rounded!(binary, b, direction, flush, saturate, |x, y| x * y, mul_toward),
        F64 => doubles!(binary, b, direction, |x, y| x * y, exact::mul),
        ty => half::mul(b, nearest(direction, ty)?, flush, saturate)?,
    };
    apply(b, f, [ty; 3], run)
}

pub fn fma<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    fused(b, f, ty)
}

/// Lowers `mad` on floats, which is `fma` from `sm_20` on. Only code for older targets omits the rounding mode;
/// compilers turn it into `fma.rn.ftz.f32` on newer devices.
pub fn mad<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let rounded = f.ins.opcode.split('.').any(|m| matches!(m, "rn" | "rz" | "rm" | "rp"));
    if rounded {
        return fused(b, f, ty);
    }
    match (ty, b.globals.target) {
        (F64, Some(..20)) => fused(b, f, ty),
        (F32, Some(..20)) => {
            f.flag("ftz");
            let run = if f.flag("sat") {
                singles!(vector::ternary, b.isa, true, true, |x, y, z| x.mul_add(y, z))
            } else {
                singles!(vector::ternary, b.isa, true, false, |x, y, z| x.mul_add(y, z))
            };
            apply(b, f, [ty; 4], run)
        }
        _ => Err("a rounding such as `.rn` is required for sm_20 and later".to_owned()),
    }
}

/// Lowers `fma`.
pub fn fused<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let (direction, flush, saturate, relu) = (rounding(f), f.flag("ftz"), f.flag("sat"), f.flag("relu"));
    let run = match ty {
        F32 => rounded!(ternary, b, direction, flush, saturate, |x, y, z| x.mul_add(y, z), fma_toward),
        F64 => doubles!(ternary, b, direction, |x, y, z| x.mul_add(y, z), exact::fma),
        ty => half::fma(b, nearest(direction, ty)?, flush, saturate, relu)?,
    };
    apply(b, f, [ty; 4], run)
}

pub fn div<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    f.ignore(&["approx", "full"]);
    let (direction, flush) = (rounding(f), f.flag("ftz"));
    let run = match ty {
        F32 => rounded!(binary, b, direction, flush, false, |x, y| x / y, div_toward),
        F64 => doubles!(binary, b, direction, |x, y| x / y, exact::div),
        ty => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

pub fn minmax<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType, largest: bool) -> Done {
    let (flush, nan, xorsign) = (f.flag("ftz"), f.flag("NaN"), f.flag("xorsign"));
    if xorsign && !f.flag("abs") {
        return Err("`.xorsign` needs `.abs`".to_owned());
    }
    macro_rules! pick {
        ($pick:ident) => {
            match (nan, xorsign) {
                (false, false) => singles!(vector::binary, b.isa, flush, false, |x, y| $pick(x, y)),
                (true, false) => singles!(shapes::binary, b.isa, flush, false, |x, y| or_nan(x, y, $pick(x, y))),
                (false, true) => {
                    singles!(shapes::binary, b.isa, flush, false, |x, y| { xor_sign(x, y, $pick(x.abs(), y.abs())) })
                }
                (true, true) => singles!(shapes::binary, b.isa, flush, false, |x, y| {
                    or_nan(x, y, xor_sign(x, y, $pick(x.abs(), y.abs())))
                }),
            }
        };
    }
    let run = match (ty, largest) {
        (F32, false) => pick!(min32),
        (F32, true) => pick!(max32),
        (F64, false) => vector::binary(b.isa, min64),
        (F64, true) => vector::binary(b.isa, max64),
        (ty, _) => half::minmax(b, ty, largest, Extreme { flush, nan, xorsign })?,
    };
    apply(b, f, [ty; 3], run)
}

pub fn abs<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let flush = f.flag("ftz");
    let run = match ty {
        F32 => singles!(vector::unary, b.isa, flush, false, |x| x.abs()),
        F64 => vector::unary(b.isa, |x: f64| if x.is_nan() { quiet(x) } else { x.abs() }),
        ty => half::signs(b, ty, flush, false)?,
    };
    apply(b, f, [ty; 2], run)
}

pub fn neg<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType) -> Done {
    let flush = f.flag("ftz");
    let run = match ty {
        F32 => singles!(vector::unary, b.isa, flush, false, |x| -x),
        F64 => vector::unary(b.isa, |x: f64| if x.is_nan() { quiet(x) } else { -x }),
        ty => half::signs(b, ty, flush, true)?,
    };
    apply(b, f, [ty; 2], run)
}

pub fn copysign<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = match ty {
        F32 => binary(b.isa, |sign: u32, x: u32| (x & 0x7fff_ffff) | (sign & 0x8000_0000)),
        F64 => binary(b.isa, |sign: u64, x: u64| (x & !(1 << 63)) | (sign & (1 << 63))),
        ty => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

/// Lowers `rcp`, `rsqrt` and `sqrt`. Approximate forms round to nearest, which is within the documented error.
pub fn reciprocal<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let name = f.ins.opcode.split('.').next().unwrap_or_default();
    let approximate = f.flag("approx");
    let (direction, flush) = (rounding(f), f.flag("ftz"));
    let ty = f.ty()?;
    let run = match (name, ty) {
        ("rcp", F32) => rounded!(unary, b, direction, flush, false, |x| 1.0 / x, rcp_toward),
        ("sqrt", F32) => rounded!(unary, b, direction, flush, false, |x| x.sqrt(), sqrt_toward),
        ("rsqrt", F32) => singles!(vector::unary, b.isa, flush, false, |x| (1.0 / f64::from(x).sqrt()) as f32),
        // Approximate operations on doubles clear the low word of the result.
        ("rcp", F64) if approximate => unary(b.isa, |x: f64| upper(1.0 / flush64(x))),
        ("rsqrt", F64) if flush => unary(b.isa, |x: f64| upper(1.0 / flush64(x).sqrt())),
        ("rsqrt", F64) => unary(b.isa, |x: f64| upper(1.0 / x.sqrt())),
        ("rcp", F64) => doubles!(unary, b, direction, |x| 1.0 / x, rcp64_toward),
        ("sqrt", F64) => doubles!(unary, b, direction, |x| x.sqrt(), exact::sqrt),
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [ty; 2], run)
}

#[inline(always)]
fn rcp_toward(x: f32, direction: Direction) -> f32 {
    div_toward(1.0, x, direction)
}

fn rcp64_toward(x: f64, direction: Direction) -> f64 {
    exact::div(1.0, x, direction)
}

#[inline(always)]
fn upper(x: f64) -> f64 {
    flush64(f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000))
}

#[inline(always)]
fn flush64(x: f64) -> f64 {
    if x.is_subnormal() { 0.0_f64.copysign(x) } else { x }
}

/// Lowers `sin`, `cos`, `ex2`, `lg2` and `tanh`. They are computed in double precision, by a library with the same
/// results on every host, and then rounded.
pub fn transcendental<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let name = f.ins.opcode.split('.').next().unwrap_or_default();
    let (_, flush) = (f.flag("approx"), f.flag("ftz"));
    let ty = f.ty()?;
    let run = match (name, ty) {
        ("sin", F32) => singles!(shapes::unary, b.isa, flush, false, |x| libm::sin(f64::from(x)) as f32),
        ("cos", F32) => singles!(shapes::unary, b.isa, flush, false, |x| libm::cos(f64::from(x)) as f32),
        ("ex2", F32) => singles!(shapes::unary, b.isa, flush, false, |x| libm::exp2(f64::from(x)) as f32),
        ("lg2", F32) => singles!(shapes::unary, b.isa, flush, false, |x| libm::log2(f64::from(x)) as f32),
        ("tanh", F32) => singles!(shapes::unary, b.isa, flush, false, |x| libm::tanh(f64::from(x)) as f32),
        (name, ty) => half::transcendental(b, name, ty, flush)?,
    };
    apply(b, f, [ty; 2], run)
}

pub fn testp<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let test = f.one_of(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]);
    let ty = f.ty()?;
    macro_rules! test {
        ($t:ty) => {
            match test {
                Some("finite") => compare(b.isa, |x: $t, _: $t| x.is_finite()),
                Some("infinite") => compare(b.isa, |x: $t, _: $t| x.is_infinite()),
                Some("number") => compare(b.isa, |x: $t, _: $t| !x.is_nan()),
                Some("notanumber") => compare(b.isa, |x: $t, _: $t| x.is_nan()),
                Some("normal") => compare(b.isa, |x: $t, _: $t| x.is_finite() && !x.is_subnormal()),
                Some("subnormal") => compare(b.isa, |x: $t, _: $t| x.is_subnormal()),
                _ => return Err("expected a test".to_owned()),
            }
        };
    }
    let run = match ty {
        F32 => test!(f32),
        F64 => test!(f64),
        ty => return no_type(ty),
    };
    let d = b.dst(f.operand(0)?, ScalarType::Pred)?;
    let x = b.src(f.operand(1)?, ty)?;
    b.emit(run, [d, Opnd::None, x, x], 1, 0, 0);
    f.done()
}

fn integer_compare(b: &Builder<'_, '_>, name: &str, ty: ScalarType) -> Result<Handler, String> {
    macro_rules! with {
        ($family:ident, $t:ty, $r:ty) => {
            match name {
                "eq" => $family::compare(b.isa, |x: $r, y: $r| x as $t == y as $t),
                "ne" => $family::compare(b.isa, |x: $r, y: $r| x as $t != y as $t),
                "lt" | "lo" => $family::compare(b.isa, |x: $r, y: $r| (x as $t) < y as $t),
                "le" | "ls" => $family::compare(b.isa, |x: $r, y: $r| x as $t <= y as $t),
                "gt" | "hi" => $family::compare(b.isa, |x: $r, y: $r| x as $t > y as $t),
                "ge" | "hs" => $family::compare(b.isa, |x: $r, y: $r| x as $t >= y as $t),
                other => return Err(format!("integers have no comparison `.{other}`")),
            }
        };
    }
    Ok(match ty {
        U16 | B16 => with!(shapes, u16, u32),
        S16 => with!(shapes, i16, u32),
        U32 | B32 => with!(vector, u32, u32),
        S32 => with!(vector, i32, u32),
        U64 | B64 => with!(vector, u64, u64),
        S64 => with!(vector, i64, u64),
        ty => return no_type(ty),
    })
}

#[inline(always)]
fn flushed_f16(x: u32) -> f32 {
    half::f16_value(flush_f16(x))
}

fn float_compare(b: &Builder<'_, '_>, name: &str, ty: ScalarType, flush: bool) -> Result<Handler, String> {
    macro_rules! with {
        ($family:ident, $r:ty, $get:expr) => {
            match name {
                "eq" => $family::compare(b.isa, |x: $r, y: $r| $get(x) == $get(y)),
                "ne" => $family::compare(b.isa, |x: $r, y: $r| $get(x) < $get(y) || $get(x) > $get(y)),
                "lt" => $family::compare(b.isa, |x: $r, y: $r| $get(x) < $get(y)),
                "le" => $family::compare(b.isa, |x: $r, y: $r| $get(x) <= $get(y)),
                "gt" => $family::compare(b.isa, |x: $r, y: $r| $get(x) > $get(y)),
                "ge" => $family::compare(b.isa, |x: $r, y: $r| $get(x) >= $get(y)),
                "equ" => $family::compare(b.isa, |x: $r, y: $r| !($get(x) < $get(y) || $get(x) > $get(y))),
                "neu" => $family::compare(b.isa, |x: $r, y: $r| $get(x) != $get(y)),
                "ltu" => $family::compare(b.isa, |x: $r, y: $r| !($get(x) >= $get(y))),
                "leu" => $family::compare(b.isa, |x: $r, y: $r| !($get(x) > $get(y))),
                "gtu" => $family::compare(b.isa, |x: $r, y: $r| !($get(x) <= $get(y))),
                "geu" => $family::compare(b.isa, |x: $r, y: $r| !($get(x) < $get(y))),
                "num" => $family::compare(b.isa, |x: $r, y: $r| !$get(x).is_nan() && !$get(y).is_nan()),
                "nan" => $family::compare(b.isa, |x: $r, y: $r| $get(x).is_nan() || $get(y).is_nan()),
                other => return Err(format!("floats have no comparison `.{other}`")),
            }
        };
    }
    Ok(match ty {
        F32 if flush => with!(shapes, f32, ftz),
        F32 => with!(vector, f32, std::convert::identity::<f32>),
        F64 => with!(vector, f64, std::convert::identity::<f64>),
        F16 if flush => with!(shapes, u32, flushed_f16),
        F16 => with!(shapes, u32, half::f16_value),
        Bf16 => with!(shapes, u32, half::bf16_value),
        ty => return no_type(ty),
    })
}

/// Decodes the comparison, its combination and its types, and emits the comparison, which writes predicates.
fn compare_into<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, ty: ScalarType, (p, q): (Opnd, Opnd)) -> Done {
    let name = f.one_of(&COMPARISONS).ok_or("expected a comparison")?;
    let flush = f.flag("ftz");
    let combine = f.one_of(&["and", "or", "xor"]);
    let run = if ty.is_float() { float_compare(b, name, ty, flush)? } else { integer_compare(b, name, ty)? };
    let (x, y) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, ty)?);
    let (mut aux, mut other) = (0, Opnd::None);
    if let Some(combine) = combine {
        let (c, negated) = b.pred(f.operand(3)?)?;
        other = c;
        aux = match combine {
            "and" => COMBINE_AND,
            "or" => COMBINE_OR,
            _ => COMBINE_XOR,
        } | if negated { Combination::NEGATED.bits() } else { 0 };
    }
    b.emit(run, [p, q, x, y, other], 3, 0, aux).work = Work::Decision;
    f.done()
}

pub fn setp<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    if matches!(ty, F16x2 | Bf16x2) {
        return half::setp_packed(b, f, ty);
    }
    let outputs = match *f.operand(0)? {
        Operand::Pair(p, q) => {
            let mut pred =
                |name| if name == "_" { Ok(Opnd::None) } else { b.dst(&Operand::Name(name), ScalarType::Pred) };
            (pred(p)?, pred(q)?)
        }
        ref p => (b.dst(p, ScalarType::Pred)?, Opnd::None),
    };
    compare_into(b, f, ty, outputs)
}

/// `set`: all ones or 1.0 if the comparison is true, otherwise zero.
pub fn set<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let types = f.types();
    let [to, from] = types[..] else { return Err("expected two types".to_owned()) };
    let one = match to {
        F16x2 | Bf16x2 | U32 | S32 if matches!(from, F16x2 | Bf16x2) => return half::set_packed(b, f, to, from),
        U32 | S32 => u64::from(u32::MAX),
        U16 | S16 => 0xffff,
        F32 => u64::from(1.0_f32.to_bits()),
        F16 => 0x3c00,
        Bf16 => 0x3f80,
        ty => return no_type(ty),
    };
    let p = Opnd::Reg(b.fresh(Class::Pred));
    let d = b.dst(f.operand(0)?, to)?;
    compare_into(b, f, from, (p, Opnd::None))?;
    let (yes, no) = (b.parts.constants.uniform(one, false), b.parts.constants.uniform(0, false));
    let run = selector(b, false);
    b.emit(run, [d, yes, no, p], 1, 0, 0);
    Ok(())
}

pub fn slct<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let flush = f.flag("ftz");
    let types = f.types();
    let [ty, by] = types[..] else { return Err("expected two types".to_owned()) };
    let run = match (ty.size(), by) {
        (4 | 2, S32) => ternary(b.isa, |x: u32, y: u32, c: i32| if c >= 0 { x } else { y }),
        (8, S32) => ternary(b.isa, |x: u64, y: u64, c: i32| if c >= 0 { x } else { y }),
        (4 | 2, F32) if flush => ternary(b.isa, |x: u32, y: u32, c: f32| if ftz(c) >= 0.0 { x } else { y }),
        (4 | 2, F32) => ternary(b.isa, |x: u32, y: u32, c: f32| if c >= 0.0 { x } else { y }),
        (8, F32) if flush => ternary(b.isa, |x: u64, y: u64, c: f32| if ftz(c) >= 0.0 { x } else { y }),
        (8, F32) => ternary(b.isa, |x: u64, y: u64, c: f32| if c >= 0.0 { x } else { y }),
        _ => return no_type(by),
    };
    apply(b, f, [ty, ty, ty, by], run)
}
