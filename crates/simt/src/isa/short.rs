//! Lowers `cvt` to narrow floats (`f16`, `bf16`, `tf32`, 8 bits), single or in pairs, and from pairs of 8-bit floats to
//! pairs of f16.
//!
//! The format and rounding of the result are encoded in a number that lanes read, so one handler serves them all. 4-
//! and 6-bit formats, scale formats and stochastic rounding are refused, because they belong to later devices than
//! those simulated.

use crate::exec::arith::{Direction, sat64};
use crate::exec::context::Handler;
use crate::exec::exact;
use crate::exec::exact::Rounding;
use crate::exec::shapes::{binary, ternary, unary};
use crate::isa::decode::{Done, Form, no_type};
use crate::isa::half::{bf16_value, f16_value, to_bf16, to_f16};
use crate::mir::Opnd;
use crate::mir::builder::Builder;
use ptx_parser::ScalarType;

use ScalarType::{Bf16, F16, F16x2, F32, F64, U16, U32};

/// A handler, and whether it reads the mode of a narrow float after its source.
pub type Picked = Result<(Handler, bool), String>;

/// Modifiers of a conversion.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Rounding mode: `rni`, `rzi`, `rmi`, `rpi`, or `rn`, `rz`, `rm`, `rp`, `rna`.
    pub round: &'static str,
    pub flush: bool,
    pub saturate: bool,
    /// The flags [`RELU`] and [`FINITE`], which only conversions to narrow floats have.
    pub short: u32,
}

/// Formats, in the low bits of a mode.
const HALF: u32 = 0;
const BFLOAT: u32 = 1;
const TENSOR: u32 = 2;
const E4M3: u32 = 3;
const E5M2: u32 = 4;
const FORMATS: [exact::Format; 5] = [exact::F16, exact::BF16, exact::TF32, exact::E4M3, exact::E5M2];
/// Rounding modes, selected by bits 3 to 5 of a mode.
const ROUNDINGS: [Rounding; 5] = [
    Rounding::Even,
    Rounding::Away,
    Rounding::Toward(Direction::Zero),
    Rounding::Toward(Direction::Down),
    Rounding::Toward(Direction::Up),
];
const SATURATE: u32 = 1 << 7;
pub const RELU: u32 = 1 << 8;
pub const FINITE: u32 = 1 << 9;
/// Position of bits 10 to 12 of a mode. They round the value to an integer first; see [`whole`].
const WHOLE: u32 = 10;

/// Encodes the format and the rounding of a narrow float as a number that lanes read.
fn mode(format: u32, how: How) -> Result<u32, String> {
    let rounding = match how.round {
        "rn" => 0,
        "rna" => 1,
        "rz" => 2,
        "rm" => 3,
        "rp" => 4,
        other => return Err(format!("`.{other}` to a narrow float is not simulated")),
    };
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    Ok(format | rounding << 3 | flag(how.saturate, SATURATE) | how.short)
}

/// Returns the mode of a conversion to one narrow float, for lanes to read. Conversions to pairs cannot round to an
/// integer first.
pub fn mode_of(b: &mut Builder<'_, '_>, to: ScalarType, how: How) -> Result<Opnd, String> {
    let (round, whole) = match how.round {
        "rni" => ("rn", 1),
        "rzi" => ("rn", 2),
        "rmi" => ("rn", 3),
        "rpi" => ("rn", 4),
        other => (other, 0),
    };
    let mode = mode(if to == Bf16 { BFLOAT } else { HALF }, How { round, ..how })?;
    Ok(b.parts.constants.uniform((mode | whole << WHOLE).into(), false))
}

/// Rounds the value to an integer if the mode requires it.
fn whole(x: f64, mode: u32) -> f64 {
    match mode >> WHOLE & 7 {
        0 => x,
        1 => x.round_ties_even(),
        2 => x.trunc(),
        3 => x.floor(),
        _ => x.ceil(),
    }
}

/// Converts a value to the mode's format.
pub fn short(x: f64, mode: u32) -> u32 {
    let format = FORMATS[(mode & 7) as usize];
    let x = whole(x, mode);
    let x = if mode & SATURATE == 0 { x } else { sat64(x) };
    let x = if mode & RELU != 0 && x <= 0.0 { 0.0 } else { x };
    let bits = exact::convert(x, format, ROUNDINGS[(mode >> 3 & 7) as usize]) as u32;
    let (infinity, sign) = (format.infinity as u32, 1 << (format.exponent_bits + format.mantissa_bits));
    if mode & FINITE != 0 && !x.is_nan() && bits & !sign == infinity {
        return bits & sign | format.largest as u32;
    }
    bits
}

/// Like [`short`], for a value that comes from a double. NaN keeps its sign and as much of its payload as fits.
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

/// Lowers conversions that name `.tf32` or an 8-bit format. These are not register types.
pub fn unnamed<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, name: &str, how: How) -> Done {
    let other = f.ty()?;
    let format = match name {
        "tf32" => TENSOR,
        "e4m3x2" => E4M3,
        _ => E5M2,
    };
    let is_source = f.ins.opcode.ends_with(name);
    match (is_source, format, other) {
        (false, TENSOR, F32) => {
            let mode = b.parts.constants.uniform(mode(TENSOR, how)?.into(), false);
            let (d, x) = (b.dst(f.operand(0)?, U32)?, b.src(f.operand(1)?, F32)?);
            b.emit(binary(b.isa, tensor), [d, x, mode], 1, 0, 0);
            f.done()
        }
        (false, E4M3 | E5M2, F32 | F16x2) => pack(b, f, (U16, 8), other, mode(format, how)?),
        (true, E4M3 | E5M2, F16x2) => unpack(b, f, format, how),
        (_, _, ty) => no_type(ty),
    }
}

/// Converts `f32` to `tf32`, which has ten fraction bits. With ties away from zero, NaN is only truncated; `.satfinite`
/// then subtracts one in the last place.
fn tensor(x: f32, mode: u32) -> u32 {
    if !x.is_nan() || ROUNDINGS[(mode >> 3 & 7) as usize] != Rounding::Away {
        return short(x.into(), mode) << 13;
    }
    let cut = x.to_bits() & !0x1fff;
    if mode & FINITE == 0 { cut } else { cut - 0x2000 }
}

/// Converts two 8-bit floats to two f16. The upper float goes to the upper half.
fn unpack<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, format: u32, how: How) -> Done {
    f.done()?;
    if how.round != "rn" || how.flush || how.saturate || how.short & FINITE != 0 {
        return Err("only `.rn` and `.relu` are simulated here".to_owned());
    }
    let (d, x) = (b.dst(f.operand(0)?, F16x2)?, b.src(f.operand(1)?, U16)?);
    let mode = b.parts.constants.uniform(mode(HALF, how)?.into(), false);
    let run = if format == E4M3 {
        binary(b.isa, |pair: u32, mode: u32| halves_of(pair, exact::E4M3, mode))
    } else {
        binary(b.isa, |pair: u32, mode: u32| halves_of(pair, exact::E5M2, mode))
    };
    b.emit(run, [d, x, mode], 1, 0, 0);
    Ok(())
}

/// Converts both 8-bit floats of a pair to f16.
fn halves_of(pair: u32, format: exact::Format, mode: u32) -> u32 {
    let half = |bits: u32| short(exact::value(u64::from(bits & 0xff), format), mode);
    half(pair >> 8) << 16 | half(pair)
}

/// Packs two narrow floats into a register. They come from two f32, the first of which goes to the upper half, or from
/// a pair of f16.
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

/// Converts two f32 to a pair of f16 or bf16.
pub fn pair<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, to: ScalarType, from: ScalarType, how: How) -> Done {
    let format = if to == F16x2 { HALF } else { BFLOAT };
    pack(b, f, (to, 16), from, mode(format, how)?)
}

/// Returns the handler that converts to one f16 or bf16, and whether it reads a mode.
pub fn single(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Picked {
    // Plain rounding to nearest is the common case, and has its own handlers.
    let plain = how.round == "rn" && !how.saturate && how.short == 0;
    if how.round.ends_with('i') && (to != from || how.flush) {
        return Err("rounding to an integer is only for `f16` to `f16` and `bf16` to `bf16`".to_owned());
    }
    Ok(match (to, from) {
        (F16, F32) if plain => (unary(b.isa, |x: f32| to_f16(f64::from(x))), false),
        (Bf16, F32) if plain => (unary(b.isa, |x: f32| to_bf16(f64::from(x))), false),
        // Hardware does not flush subnormals when it converts to `f16`.
        (_, F32) => (binary(b.isa, |x: f32, mode: u32| short(x.into(), mode)), true),
        (_, F64) => (binary(b.isa, short_of_double), true),
        (_, F16) => (binary(b.isa, |x: u32, mode: u32| short(f16_value(x).into(), mode)), true),
        (_, Bf16) => (binary(b.isa, |x: u32, mode: u32| short(bf16_value(x).into(), mode)), true),
        (_, ty) => return no_type(ty),
    })
}
