//! `cvt`: between every pair of types, in every rounding mode.

use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};

use super::half::{bf16_value, f16_value, to_bf16, to_f16};
use super::{Builder, Form, no_type};
use crate::ptx::ScalarType;
use crate::sim::exec::arith::{Direction, canon, ftz, narrow, quiet, sat, sat64, short_nan};
use crate::sim::exec::exact::{self, Rounding};
use crate::sim::exec::row::Handler;
use crate::sim::exec::shapes::{binary, quaternary, ternary, unary};
use crate::sim::exec::vector;
use crate::sim::lower::mir::Opnd;

type Done = Result<(), String>;
/// A handler, and whether it reads a [`mode`] behind its source.
type Picked = Result<(Handler, bool), String>;

/// Modifiers of a conversion.
#[derive(Debug, Clone, Copy)]
struct How {
    /// `rni`, `rzi`, `rmi`, `rpi`, or `rn`, `rz`, `rm`, `rp`, `rna`.
    round: &'static str,
    flush: bool,
    saturate: bool,
    /// [`RELU`] and [`FINITE`], which only short floats know.
    short: u32,
}

pub fn cvt<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("pack") {
        return pack_integers(b, f);
    }
    let round = f.one_of(&["rni", "rzi", "rmi", "rpi", "rna", "rn", "rz", "rm", "rp"]).unwrap_or("rn");
    let mut flag = |name, bit| if f.flag(name) { bit } else { 0 };
    let short = flag("relu", RELU) | flag("satfinite", FINITE);
    let how = How { round, flush: f.flag("ftz"), saturate: f.flag("sat"), short };
    if let Some(name) = f.one_of(&["tf32", "e4m3x2", "e5m2x2"]) {
        return unnamed(b, f, name, how);
    }
    let types = f.types();
    let [to, from] = types[..] else { return Err("two types are expected".to_owned()) };
    if matches!(to, F16x2 | Bf16x2) {
        let format = if to == F16x2 { HALF } else { BFLOAT };
        return pack(b, f, (to, 16), from, mode(format, how)?);
    }
    if (short != 0 || round == "rna") && !matches!(to, F16 | Bf16) {
        return Err("`.relu`, `.satfinite` and `.rna` belong to short floats".to_owned());
    }
    let (run, short) = match (to.is_float(), from.is_float()) {
        (false, false) => (integers(b, to, from, how.saturate)?, false),
        (true, false) => from_integer(b, to, from, how)?,
        (false, true) => (to_integer(b, to, from, how)?, false),
        (true, true) => floats(b, to, from, how)?,
    };
    // Eight-bit values live in registers of 16 bits and more.
    let d = b.dst(f.operand(0)?, to)?;
    let x = b.src(f.operand(1)?, from)?;
    let mode = if short { short_mode(b, to, how)? } else { Opnd::None };
    b.emit(run, [d, x, mode], 1, 0, 0);
    f.done()
}

/// Formats by the low bits of a mode.
const HALF: u32 = 0;
const BFLOAT: u32 = 1;
const TENSOR: u32 = 2;
const E4M3: u32 = 3;
const E5M2: u32 = 4;
const FORMATS: [exact::Format; 5] = [exact::F16, exact::BF16, exact::TF32, exact::E4M3, exact::E5M2];
/// Bits 3 to 5 of a mode: how it rounds.
const ROUNDINGS: [Rounding; 5] = [
    Rounding::Even,
    Rounding::Away,
    Rounding::Toward(Direction::Zero),
    Rounding::Toward(Direction::Down),
    Rounding::Toward(Direction::Up),
];
const SATURATE: u32 = 1 << 7;
const RELU: u32 = 1 << 8;
const FINITE: u32 = 1 << 9;

/// How a short float is made, as a number that lanes read.
fn mode(format: u32, how: How) -> Result<u32, String> {
    let rounding = match how.round {
        "rn" => 0,
        "rna" => 1,
        "rz" => 2,
        "rm" => 3,
        "rp" => 4,
        other => return Err(format!("`.{other}` to a short float is not simulated")),
    };
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    Ok(format | rounding << 3 | flag(how.saturate, SATURATE) | how.short)
}

fn short_mode(b: &mut Builder<'_, '_>, to: ScalarType, how: How) -> Result<Opnd, String> {
    let mode = mode(if to == Bf16 { BFLOAT } else { HALF }, how)?;
    Ok(b.parts.constants.uniform(mode.into(), false))
}

/// The bits of a value in the format that a mode says.
fn short(x: f64, mode: u32) -> u32 {
    let format = FORMATS[(mode & 7) as usize];
    let x = if mode & SATURATE == 0 { x } else { sat64(x) };
    let x = if mode & RELU != 0 && x <= 0.0 { 0.0 } else { x };
    let bits = exact::convert(x, format, ROUNDINGS[(mode >> 3 & 7) as usize]) as u32;
    let (infinity, sign) = (format.infinity as u32, 1 << (format.exponent_bits + format.mantissa_bits));
    if mode & FINITE != 0 && !x.is_nan() && bits & !sign == infinity {
        return bits & sign | format.largest as u32;
    }
    bits
}

/// The same of a double, whose NaN keeps its sign and what fits of its payload.
fn short_of_double(x: f64, mode: u32) -> u32 {
    if !x.is_nan() || mode & (SATURATE | RELU) != 0 {
        return short(x, mode);
    }
    let format = FORMATS[(mode & 7) as usize];
    let (bits, quiet) = (x.to_bits(), 1 << (format.mantissa_bits - 1));
    let payload = bits >> (52 - format.mantissa_bits) & ((1 << format.mantissa_bits) - 1);
    let sign = (bits >> 63) << (format.exponent_bits + format.mantissa_bits);
    (sign | format.infinity | quiet | payload) as u32
}

/// A double, its NaN quiet.
#[inline(always)]
fn quieted(x: f64) -> f64 {
    if x.is_nan() { quiet(x) } else { x }
}

/// `.tf32` and the eight-bit formats, which are no types of registers.
fn unnamed<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, name: &str, how: How) -> Done {
    let from = f.ty()?;
    let format = match name {
        "tf32" => TENSOR,
        "e4m3x2" => E4M3,
        _ => E5M2,
    };
    let last = f.ins.opcode.ends_with(name);
    if format == TENSOR && !last {
        let d = b.dst(f.operand(0)?, U32)?;
        let x = b.src(f.operand(1)?, from)?;
        let mode = b.parts.constants.uniform(mode(TENSOR, how)?.into(), false);
        b.emit(binary(b.isa, tensor), [d, x, mode], 1, 0, 0);
        return f.done();
    }
    if last {
        return Err(format!("conversion from `.{name}` is not simulated"));
    }
    pack(b, f, (U16, 8), from, mode(format, how)?)
}

/// A single cut to ten bits behind the point. Rounding away from ties is done on the bits, NaN's too.
fn tensor(x: f32, mode: u32) -> u32 {
    if !x.is_nan() || ROUNDINGS[(mode >> 3 & 7) as usize] != Rounding::Away {
        return short(x.into(), mode) << 13;
    }
    let bits = x.to_bits();
    if mode & FINITE == 0 { (bits + 0x1000) & !0x1fff } else { (bits & !0x1fff) - 0x2000 }
}

/// Two short floats side by side: of two singles, the first on top, or of a pair of halves.
fn pack<'a>(
    b: &mut Builder<'a, '_>,
    f: &Form<'a, '_>,
    (to, width): (ScalarType, u32),
    from: ScalarType,
    mode: u32,
) -> Done {
    f.done()?;
    let d = b.dst(f.operand(0)?, to)?;
    let x = b.src(f.operand(1)?, from)?;
    let y = match from {
        F32 => b.src(f.operand(2)?, from)?,
        F16x2 if width == 8 => x,
        ty => return no_type(ty),
    };
    let run = match (from, width) {
        (F32, 16) => {
            ternary(b.isa, |high: f32, low: f32, mode: u32| short(high.into(), mode) << 16 | short(low.into(), mode))
        }
        (F32, _) => {
            ternary(b.isa, |high: f32, low: f32, mode: u32| short(high.into(), mode) << 8 | short(low.into(), mode))
        }
        _ => ternary(b.isa, |pair: u32, _: u32, mode: u32| {
            short(f16_value(pair >> 16).into(), mode) << 8 | short(f16_value(pair).into(), mode)
        }),
    };
    let mode = b.parts.constants.uniform(mode.into(), false);
    b.emit(run, [d, x, y, mode], 1, 0, 0);
    Ok(())
}

/// `cvt.pack.sat`: two integers cut to few bits, and what the third holds above them.
fn pack_integers<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if !f.flag("sat") {
        return Err("`.sat` is expected".to_owned());
    }
    let (width, signed): (u32, bool) = match f.one_of(&["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"]) {
        Some(name) => (name[1..].parse().unwrap_or(16), name.starts_with('s')),
        None => return Err("a type of at most 16 bits is expected".to_owned()),
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

fn integers(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, saturate: bool) -> Result<Handler, String> {
    // `$r` is the register's type, `$t` the operation's: the source is cut to it, the result is.
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
        (U8, _) => from_type!(u32, u8),
        (S8, _) => from_type!(u32, i8),
        (U16, _) => from_type!(u32, u16),
        (S16, _) => from_type!(u32, i16),
        (U32, _) => from_type!(u32, u32),
        (S32, _) => from_type!(u32, i32),
        (U64, _) => from_type!(u64, u64),
        (S64, _) => from_type!(u64, i64),
        (ty, _) => return no_type(ty),
    })
}

fn to_integer(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Result<Handler, String> {
    // Rust's casts saturate and send NaN to zero. Hardware does so from singles and shorter to 32 bits and less; doubles,
    // and everything on its way to 64 bits, give the least signed number in place of NaN.
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
    // A subnormal and the zero it is flushed to round alike except upward and downward.
    Ok(match from {
        F32 if how.flush => from_type!(f32, f32, ftz, false),
        F32 => from_type!(f32, f32, std::convert::identity::<f32>, false),
        F64 => from_type!(f64, f64, std::convert::identity::<f64>, true),
        F16 => from_type!(u32, f32, f16_value, false),
        Bf16 => from_type!(u32, f32, bf16_value, false),
        ty => return no_type(ty),
    })
}

/// An integer as a double, rounded to odd: what is then rounded to a shorter format is rounded once.
#[inline(always)]
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
                    return Ok((binary(b.isa, |x: $r, mode: u32| short(odd((x as $t).into()), mode)), true));
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
        (U8, _) => from_type!(u32, u8),
        (S8, _) => from_type!(u32, i8),
        (U16, _) => from_type!(u32, u16),
        (S16, _) => from_type!(u32, i16),
        (U32, _) => from_type!(u32, u32),
        (S32, _) => from_type!(u32, i32),
        (U64, _) => from_type!(u64, u64),
        (S64, _) => from_type!(u64, i64),
        (ty, _) => return no_type(ty),
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
        (F16 | Bf16, _) => return to_short(b, to, from, how),
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
    // NaN keeps its sign and what fits of its payload.
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
    // Flushing comes first where rounding would make a one of what is flushed.
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
        // Without anything to do it is a move, which leaves NaN alone.
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

fn to_short(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Picked {
    // Plain rounding to nearest is what programs do; it has handlers of its own.
    let plain = how.round == "rn" && !how.saturate && how.short == 0;
    macro_rules! integral {
        ($value:expr, $to:expr) => {
            match how.round {
                "rni" => unary(b.isa, |x: u32| $to(f64::from($value(x)).round_ties_even())),
                "rzi" => unary(b.isa, |x: u32| $to(f64::from($value(x)).trunc())),
                "rmi" => unary(b.isa, |x: u32| $to(f64::from($value(x)).floor())),
                _ => unary(b.isa, |x: u32| $to(f64::from($value(x)).ceil())),
            }
        };
    }
    let run = match (to, from) {
        (F16, F16) if how.round.ends_with('i') && !how.saturate && !how.flush => integral!(f16_value, to_f16),
        (Bf16, Bf16) if how.round.ends_with('i') && !how.saturate => integral!(bf16_value, to_bf16),
        (F16, F32) if plain => unary(b.isa, |x: f32| to_f16(f64::from(x))),
        (Bf16, F32) if plain => unary(b.isa, |x: f32| to_bf16(f64::from(x))),
        // Hardware has no flushing on the way to a half.
        (_, F32) => return Ok((binary(b.isa, |x: f32, mode: u32| short(x.into(), mode)), true)),
        (_, F64) => return Ok((binary(b.isa, short_of_double), true)),
        (_, F16) => return Ok((binary(b.isa, |x: u32, mode: u32| short(f16_value(x).into(), mode)), true)),
        (_, Bf16) => return Ok((binary(b.isa, |x: u32, mode: u32| short(bf16_value(x).into(), mode)), true)),
        (_, ty) => return no_type(ty),
    };
    Ok((run, false))
}
