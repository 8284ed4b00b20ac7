//! Lowers `cvt` between all types, in all rounding modes.

use crate::exec::arith::{Direction, canon, ftz, narrow, quiet, sat, sat64, short_nan};
use crate::exec::context::Handler;
use crate::exec::shapes::{binary, quaternary, unary};
use crate::exec::{exact, vector};
use crate::isa::decode::{Done, Form, no_type};
use crate::isa::half::{bf16_value, f16_value};
use crate::isa::short;
use crate::isa::short::{FINITE, How, Picked, RELU};
use crate::mir::Opnd;
use crate::mir::builder::Builder;
use ptx_parser::ScalarType;

use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};

pub fn cvt<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("pack") {
        return pack_integers(b, f);
    }
    let round = f.one_of(&["rni", "rzi", "rmi", "rpi", "rna", "rn", "rz", "rm", "rp"]).unwrap_or("rn");
    let mut flag = |name, bit| if f.flag(name) { bit } else { 0 };
    let bits = flag("relu", RELU) | flag("satfinite", FINITE);
    let how = How { round, flush: f.flag("ftz"), saturate: f.flag("sat"), short: bits };
    if let Some(name) = f.one_of(&["tf32", "e4m3x2", "e5m2x2"]) {
        return short::unnamed(b, f, name, how);
    }
    let types = f.types();
    let [to, from] = types[..] else {
        f.done()?;
        return Err("expected two types".to_owned());
    };
    if matches!(to, F16x2 | Bf16x2) {
        return short::pair(b, f, to, from, how);
    }
    if (bits != 0 || round == "rna") && !matches!(to, F16 | Bf16) {
        return Err("`.relu`, `.satfinite` and `.rna` are only for conversions to narrow floats".to_owned());
    }
    let (run, has_mode) = match (to.is_float(), from.is_float()) {
        (false, false) => (integers(b, to, from, how.saturate)?, false),
        (true, false) => from_integer(b, to, from, how)?,
        (false, true) => (to_integer(b, to, from, how)?, false),
        (true, true) => floats(b, to, from, how)?,
    };
    // 8-bit values are in registers of 16 bits or more.
    let d = b.dst(f.operand(0)?, to)?;
    let x = b.src(f.operand(1)?, from)?;
    let mode = if has_mode { short::mode_of(b, to, how)? } else { Opnd::None };
    b.emit(run, [d, x, mode], 1, 0, 0);
    f.done()
}

/// Converts a signalling NaN to a quiet one.
#[inline(always)]
fn quieted(x: f64) -> f64 {
    if x.is_nan() { quiet(x) } else { x }
}

/// Lowers `cvt.pack.sat`, which saturates two integers to a few bits and places them below the bits of the third
/// source.
fn pack_integers<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if !f.flag("sat") {
        return Err("expected `.sat`".to_owned());
    }
    let (width, signed): (u32, bool) = match f.one_of(&["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"]) {
        Some(name) => (name[1..].parse().unwrap_or(16), name.starts_with('s')),
        None => return Err("expected a type of at most 16 bits".to_owned()),
    };
    f.ignore(&["s32", "b32"]);
    f.done()?;
    let d = b.dst(f.operand(0)?, U32)?;
    let (x, y) = (b.src(f.operand(1)?, S32)?, b.src(f.operand(2)?, S32)?);
    let above = if f.count() > 3 { b.src(f.operand(3)?, U32)? } else { b.parts.constants.uniform(0, false) };
    let mode = b.parts.constants.uniform(u64::from(width) | u64::from(signed) << 8, false);
    let run = quaternary(b.isa, |x: i32, y: i32, above: u32, mode: u32| {
        let (width, signed) = (mode & 0xff, mode >> 8 != 0);
        let ones = (1_u32 << width) - 1;
        let (least, most) = if signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, ones as i32) };
        let cut = |v: i32| v.clamp(least, most) as u32 & ones;
        above.checked_shl(2 * width).unwrap_or(0) | cut(x) << width | cut(y)
    });
    b.emit(run, [d, x, y, above, mode], 1, 0, 0);
    Ok(())
}

/// Calls a macro with the integer type of a register and the operation's own type.
macro_rules! of_integer {
    ($from:expr, $make:ident) => {
        match $from {
            U8 => $make!(u32, u8),
            S8 => $make!(u32, i8),
            U16 => $make!(u32, u16),
            S16 => $make!(u32, i16),
            U32 => $make!(u32, u32),
            S32 => $make!(u32, i32),
            U64 => $make!(u64, u64),
            S64 => $make!(u64, i64),
            ty => return no_type(ty),
        }
    };
}

fn integers(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, saturate: bool) -> Result<Handler, String> {
    // `$r` is the type of the register. `$t` is the type of the operation, to which source and result are truncated.
    macro_rules! from_type {
        ($r:ty, $t:ty) => {
            match (to, saturate) {
                (U8, false) => unary(b.isa, |x: $r| u32::from(x as $t as u8)),
                (S8, false) => unary(b.isa, |x: $r| i32::from(x as $t as i8) as u32),
                (U16, false) => unary(b.isa, |x: $r| u32::from(x as $t as u16)),
                (S16, false) => unary(b.isa, |x: $r| i32::from(x as $t as i16) as u32),
                (U32, false) => unary(b.isa, |x: $r| x as $t as u32),
                (S32, false) => unary(b.isa, |x: $r| x as $t as i32),
                (U64, false) => unary(b.isa, |x: $r| x as $t as u64),
                (S64, false) => unary(b.isa, |x: $r| x as $t as i64),
                (U8, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(0, 0xff) as u32),
                (S8, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(-0x80, 0x7f) as u32),
                (U16, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(0, 0xffff) as u32),
                (S16, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(-0x8000, 0x7fff) as u32),
                (U32, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(0, u32::MAX.into()) as u32),
                (S32, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(i32::MIN.into(), i32::MAX.into()) as i32),
                (U64, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(0, u64::MAX.into()) as u64),
                (S64, true) => unary(b.isa, |x: $r| (x as $t as i128).clamp(i64::MIN.into(), i64::MAX.into()) as i64),
                (ty, _) => return no_type(ty),
            }
        };
    }
    Ok(match (from, to) {
        (U32, U64 | S64) if !saturate => vector::unary(b.isa, |x: u32| u64::from(x)),
        (S32, U64 | S64) if !saturate => vector::unary(b.isa, |x: i32| i64::from(x)),
        (U64 | S64, U32 | S32) if !saturate => vector::unary(b.isa, |x: u64| x as u32),
        _ => of_integer!(from, from_type),
    })
}

fn to_integer(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Result<Handler, String> {
    // Rust's casts saturate and turn NaN into zero. Hardware does the same from `f32` and narrower types to at most 32
    // bits. From `f64`, and to 64 bits, it turns NaN into the smallest signed number.
    macro_rules! to_type {
        ($r:ty, $value:expr, $round:expr, $least:expr) => {{
            macro_rules! cast {
                ($nan:expr, |$v:ident| $cast:expr) => {
                    unary(b.isa, |x: $r| {
                        let $v = $value(x);
                        if $least && $v.is_nan() { $nan } else { $cast }
                    })
                };
            }
            match to {
                U8 => cast!(0x80, |v| u32::from($round(v) as u8)),
                S8 => cast!(0xffff_ff80, |v| i32::from($round(v) as i8) as u32),
                U16 => cast!(0x8000, |v| u32::from($round(v) as u16)),
                S16 => cast!(0xffff_8000, |v| i32::from($round(v) as i16) as u32),
                U32 => cast!(1 << 31, |v| $round(v) as u32),
                S32 => cast!(i32::MIN, |v| $round(v) as i32),
                U64 => unary(b.isa, |x: $r| if $value(x).is_nan() { 1 << 63 } else { $round($value(x)) as u64 }),
                S64 => unary(b.isa, |x: $r| if $value(x).is_nan() { i64::MIN } else { $round($value(x)) as i64 }),
                ty => return no_type(ty),
            }
        }};
    }
    macro_rules! from_type {
        ($r:ty, $f:ty, $value:expr, $least:expr) => {
            match how.round {
                "rni" => to_type!($r, $value, <$f>::round_ties_even, $least),
                "rmi" => to_type!($r, $value, <$f>::floor, $least),
                "rpi" => to_type!($r, $value, <$f>::ceil, $least),
                _ => to_type!($r, $value, <$f>::trunc, $least),
            }
        };
    }
    if let (F32, S32, "rzi", false) = (from, to, how.round, how.flush) {
        return Ok(vector::unary(b.isa, |x: f32| x as i32));
    }
    // A subnormal rounds to the same integer as the zero to which it is flushed, except when rounding up or down.
    Ok(match from {
        F32 if how.flush => from_type!(f32, f32, ftz, false),
        F32 => from_type!(f32, f32, std::convert::identity::<f32>, false),
        F64 => from_type!(f64, f64, std::convert::identity::<f64>, true),
        F16 => from_type!(u32, f32, f16_value, false),
        Bf16 => from_type!(u32, f32, bf16_value, false),
        ty => return no_type(ty),
    })
}

/// Converts an integer to a double, rounded to odd, so that rounding the double to a narrower format gives the correct
/// result.
fn odd(x: i128) -> f64 {
    let near = x as f64;
    let back = near as i128;
    if back == x || near.to_bits() & 1 == 1 {
        return near;
    }
    let larger = (back > x) == (near > 0.0);
    f64::from_bits(if larger { near.to_bits() - 1 } else { near.to_bits() + 1 })
}

fn from_integer(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Picked {
    macro_rules! from_type {
        ($r:ty, $t:ty) => {
            match (to, how.round, how.saturate) {
                (F32, "rn", false) => unary(b.isa, |x: $r| x as $t as f32),
                (F32, "rn", true) => unary(b.isa, |x: $r| sat(x as $t as f32)),
                (F32, "rz", false) => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Zero)),
                (F32, "rm", false) => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Down)),
                (F32, "rp", false) => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Up)),
                (F64, "rn", false) => unary(b.isa, |x: $r| x as $t as f64),
                (F64, "rn", true) => unary(b.isa, |x: $r| sat64(x as $t as f64)),
                (F64, "rz", false) => unary(b.isa, |x: $r| exact::from_integer((x as $t).into(), Direction::Zero)),
                (F64, "rm", false) => unary(b.isa, |x: $r| exact::from_integer((x as $t).into(), Direction::Down)),
                (F64, "rp", false) => unary(b.isa, |x: $r| exact::from_integer((x as $t).into(), Direction::Up)),
                (F16 | Bf16, ..) => {
                    return Ok((binary(b.isa, |x: $r, mode: u32| short::short(odd((x as $t).into()), mode)), true));
                }
                (ty, round, _) => return Err(format!("`.{round}` of integers to `{ty:?}` is not simulated")),
            }
        };
    }
    let plain = how.round == "rn" && !how.saturate;
    let run = match (from, to) {
        (U32, F32) if plain => vector::unary(b.isa, |x: u32| x as f32),
        (S32, F32) if plain => vector::unary(b.isa, |x: i32| x as f32),
        (U32, F64) if plain => vector::unary(b.isa, |x: u32| f64::from(x)),
        (S32, F64) if plain => vector::unary(b.isa, |x: i32| f64::from(x)),
        _ => of_integer!(from, from_type),
    };
    Ok((run, false))
}

fn floats(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Picked {
    let run = match (to, from) {
        (F32, _) => to_single(b, from, how)?,
        (F64, F64) => {
            macro_rules! double {
                ($round:expr) => {
                    if how.saturate {
                        unary(b.isa, |x: f64| sat64($round(x)))
                    } else {
                        unary(b.isa, |x: f64| $round(x))
                    }
                };
            }
            match how.round {
                "rni" => double!(|x: f64| quieted(x.round_ties_even())),
                "rzi" => double!(|x: f64| quieted(x.trunc())),
                "rmi" => double!(|x: f64| quieted(x.floor())),
                "rpi" => double!(|x: f64| quieted(x.ceil())),
                _ => double!(std::convert::identity::<f64>),
            }
        }
        (F64, _) => {
            macro_rules! double {
                ($r:ty, $value:expr) => {
                    if how.saturate {
                        unary(b.isa, |x: $r| sat64($value(x).into()))
                    } else {
                        unary(b.isa, |x: $r| f64::from($value(x)))
                    }
                };
            }
            match from {
                F32 if how.flush => double!(f32, |x: f32| canon(ftz(x))),
                F32 if !how.saturate => vector::unary(b.isa, |x: f32| f64::from(x)),
                F32 => double!(f32, std::convert::identity::<f32>),
                F16 => double!(u32, f16_value),
                Bf16 => double!(u32, bf16_value),
                ty => return no_type(ty),
            }
        }
        (F16 | Bf16, _) => return short::single(b, to, from, how),
        (to, from) => return Err(format!("`.{}` from `{from:?}` to `{to:?}` is not simulated", how.round)),
    };
    Ok((run, false))
}

fn to_single(b: &Builder<'_, '_>, from: ScalarType, how: How) -> Result<Handler, String> {
    let How { round, flush, saturate, .. } = how;
    macro_rules! single {
        ($r:ty, |$x:ident| $body:expr) => {
            match (flush, saturate) {
                (false, false) => unary(b.isa, |$x: $r| canon($body)),
                (true, false) => unary(b.isa, |$x: $r| ftz(canon($body))),
                (false, true) => unary(b.isa, |$x: $r| sat($body)),
                (true, true) => unary(b.isa, |$x: $r| ftz(sat($body))),
            }
        };
    }
    // NaN keeps its sign and as much of its payload as fits.
    macro_rules! double {
        (|$x:ident| $body:expr) => {
            match (flush, saturate) {
                (false, false) => unary(b.isa, |$x: f64| if $x.is_nan() { short_nan($x) } else { $body }),
                (true, false) => unary(b.isa, |$x: f64| if $x.is_nan() { short_nan($x) } else { ftz($body) }),
                (false, true) => unary(b.isa, |$x: f64| sat($body)),
                (true, true) => unary(b.isa, |$x: f64| ftz(sat($body))),
            }
        };
    }
    // Flush first if rounding could turn a subnormal into 1.
    macro_rules! integral {
        ($round:expr) => {
            match (flush, saturate) {
                (false, false) => unary(b.isa, |x: f32| canon($round(x))),
                (true, false) => unary(b.isa, |x: f32| canon($round(ftz(x)))),
                (false, true) => unary(b.isa, |x: f32| sat($round(x))),
                (true, true) => unary(b.isa, |x: f32| sat($round(ftz(x)))),
            }
        };
    }
    Ok(match (from, round) {
        (F32, "rni") => integral!(f32::round_ties_even),
        (F32, "rzi") => integral!(f32::trunc),
        (F32, "rmi") => integral!(f32::floor),
        (F32, "rpi") => integral!(f32::ceil),
        // Without a modifier, this is a move, which does not change NaN.
        (F32, _) if !flush && !saturate => unary(b.isa, |x: u32| x),
        (F32, _) => single!(f32, |x| x),
        (F64, "rz") => double!(|x| narrow(x, Direction::Zero)),
        (F64, "rm") => double!(|x| narrow(x, Direction::Down)),
        (F64, "rp") => double!(|x| narrow(x, Direction::Up)),
        (F64, _) => double!(|x| x as f32),
        (F16, _) => single!(u32, |x| f16_value(x)),
        (Bf16, _) if !flush && !saturate => unary(b.isa, |x: u32| x << 16),
        (Bf16, _) => single!(u32, |x| bf16_value(x)),
        (ty, _) => return no_type(ty),
    })
}
