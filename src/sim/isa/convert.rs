//! `cvt`: between every pair of types, in every rounding mode.

use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};

use super::half::{bf16_value, f16_value, to_bf16, to_f16};
use super::integer::one;
use super::{Builder, Form, no_type};
use crate::ptx::ScalarType;
use crate::sim::exec::arith::{Direction, canon, ftz, narrow, sat, sat64};
use crate::sim::exec::row::Handler;
use crate::sim::exec::shapes::{binary, unary};
use crate::sim::exec::vector;

type Done = Result<(), String>;

/// Modifiers of a conversion.
#[derive(Debug, Clone, Copy)]
struct How {
    /// `rni`, `rzi`, `rmi`, `rpi`, or `rn`, `rz`, `rm`, `rp`.
    round: &'static str,
    flush: bool,
    saturate: bool,
    relu: bool,
}

pub fn cvt<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let round = f.one_of(&["rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"]).unwrap_or("rn");
    let how = How { round, flush: f.flag("ftz"), saturate: f.flag("sat"), relu: f.flag("relu") };
    let types = f.types();
    let [to, from] = types[..] else { return Err("two types are expected".to_owned()) };
    if how.relu {
        return Err("`.relu` is not simulated here".to_owned());
    }
    if matches!(to, F16x2 | Bf16x2) {
        return pack(b, f, to, from, how);
    }
    let run = match (to.is_float(), from.is_float()) {
        (false, false) => integers(b, to, from, how.saturate)?,
        (true, false) => from_integer(b, to, from, how)?,
        (false, true) => to_integer(b, to, from, how)?,
        (true, true) => floats(b, to, from, how)?,
    };
    // Eight-bit values live in registers of 16 bits and more.
    one(b, f, to, from, run)
}

fn pack<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, to: ScalarType, from: ScalarType, how: How) -> Done {
    if from != F32 || how.round != "rn" {
        return no_type(from);
    }
    let run = if to == F16x2 {
        binary(b.isa, |high: f32, low: f32| to_f16(f64::from(high)) << 16 | to_f16(f64::from(low)))
    } else {
        binary(b.isa, |high: f32, low: f32| to_bf16(f64::from(high)) << 16 | to_bf16(f64::from(low)))
    };
    let d = b.dst(f.operand(0)?, to)?;
    let (x, y) = (b.src(f.operand(1)?, from)?, b.src(f.operand(2)?, from)?);
    b.emit(run, [d, x, y], 1, 0, 0);
    f.done()
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
    // Rust's casts saturate and send NaN to zero, as PTX does.
    macro_rules! to_type {
        ($r:ty, $value:expr, $round:expr) => {
            match to {
                U8 => unary(b.isa, |x: $r| u32::from($round($value(x)) as u8)),
                S8 => unary(b.isa, |x: $r| i32::from($round($value(x)) as i8) as u32),
                U16 => unary(b.isa, |x: $r| u32::from($round($value(x)) as u16)),
                S16 => unary(b.isa, |x: $r| i32::from($round($value(x)) as i16) as u32),
                U32 => unary(b.isa, |x: $r| $round($value(x)) as u32),
                S32 => unary(b.isa, |x: $r| $round($value(x)) as i32),
                U64 => unary(b.isa, |x: $r| $round($value(x)) as u64),
                S64 => unary(b.isa, |x: $r| $round($value(x)) as i64),
                ty => return no_type(ty),
            }
        };
    }
    macro_rules! from_type {
        ($r:ty, $f:ty, $value:expr) => {
            match how.round {
                "rni" => to_type!($r, $value, <$f>::round_ties_even),
                "rmi" => to_type!($r, $value, <$f>::floor),
                "rpi" => to_type!($r, $value, <$f>::ceil),
                _ => to_type!($r, $value, <$f>::trunc),
            }
        };
    }
    if let (F32, S32, "rzi", false) = (from, to, how.round, how.flush) {
        return Ok(vector::unary(b.isa, |x: f32| x as i32));
    }
    // A subnormal and the zero it is flushed to round alike except upward and downward.
    Ok(match from {
        F32 if how.flush => from_type!(f32, f32, ftz),
        F32 => from_type!(f32, f32, std::convert::identity::<f32>),
        F64 => from_type!(f64, f64, std::convert::identity::<f64>),
        F16 => from_type!(u32, f32, f16_value),
        Bf16 => from_type!(u32, f32, bf16_value),
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

fn from_integer(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Result<Handler, String> {
    macro_rules! from_type {
        ($r:ty, $t:ty) => {
            match (to, how.round) {
                (F32, "rn") => unary(b.isa, |x: $r| x as $t as f32),
                (F32, "rz") => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Zero)),
                (F32, "rm") => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Down)),
                (F32, "rp") => unary(b.isa, |x: $r| narrow(odd((x as $t).into()), Direction::Up)),
                (F64, "rn") => unary(b.isa, |x: $r| x as $t as f64),
                (F16, "rn") => unary(b.isa, |x: $r| to_f16(odd((x as $t).into()))),
                (Bf16, "rn") => unary(b.isa, |x: $r| to_bf16(odd((x as $t).into()))),
                (ty, round) => return Err(format!("`.{round}` of integers to `{ty:?}` is not simulated")),
            }
        };
    }
    match (from, to, how.round) {
        (U32, F32, "rn") => return Ok(vector::unary(b.isa, |x: u32| x as f32)),
        (S32, F32, "rn") => return Ok(vector::unary(b.isa, |x: i32| x as f32)),
        (U32, F64, "rn") => return Ok(vector::unary(b.isa, |x: u32| f64::from(x))),
        (S32, F64, "rn") => return Ok(vector::unary(b.isa, |x: i32| f64::from(x))),
        _ => {}
    }
    Ok(match from {
        U8 => from_type!(u32, u8),
        S8 => from_type!(u32, i8),
        U16 => from_type!(u32, u16),
        S16 => from_type!(u32, i16),
        U32 => from_type!(u32, u32),
        S32 => from_type!(u32, i32),
        U64 => from_type!(u64, u64),
        S64 => from_type!(u64, i64),
        ty => return no_type(ty),
    })
}

fn floats(b: &Builder<'_, '_>, to: ScalarType, from: ScalarType, how: How) -> Result<Handler, String> {
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
    Ok(match (to, from, round) {
        (F32, F32, "rni") => single!(f32, |x| x.round_ties_even()),
        (F32, F32, "rzi") => single!(f32, |x| x.trunc()),
        (F32, F32, "rmi") if flush => unary(b.isa, |x: f32| canon(ftz(x).floor())),
        (F32, F32, "rmi") => single!(f32, |x| x.floor()),
        (F32, F32, "rpi") if flush => unary(b.isa, |x: f32| canon(ftz(x).ceil())),
        (F32, F32, "rpi") => single!(f32, |x| x.ceil()),
        (F32, F32, _) => single!(f32, |x| x),
        (F64, F64, "rni") => unary(b.isa, f64::round_ties_even),
        (F64, F64, "rzi") => unary(b.isa, f64::trunc),
        (F64, F64, "rmi") => unary(b.isa, f64::floor),
        (F64, F64, "rpi") => unary(b.isa, f64::ceil),
        (F64, F64, _) if saturate => unary(b.isa, sat64),
        (F64, F64, _) => unary(b.isa, |x: f64| x),
        (F64, F32, _) if flush => unary(b.isa, |x: f32| f64::from(ftz(x))),
        (F64, F32, _) => vector::unary(b.isa, |x: f32| f64::from(x)),
        (F64, F16, _) => unary(b.isa, |x: u32| f64::from(f16_value(x))),
        (F32, F64, "rz") => single!(f64, |x| narrow(x, Direction::Zero)),
        (F32, F64, "rm") => single!(f64, |x| narrow(x, Direction::Down)),
        (F32, F64, "rp") => single!(f64, |x| narrow(x, Direction::Up)),
        (F32, F64, _) => single!(f64, |x| x as f32),
        (F32, F16, _) => single!(u32, |x| f16_value(x)),
        (F32, Bf16, _) => single!(u32, |x| bf16_value(x)),
        (F16, F32, "rn") if saturate => unary(b.isa, |x: f32| to_f16(f64::from(sat(x)))),
        (F16, F32, "rn") => unary(b.isa, |x: f32| to_f16(f64::from(x))),
        (F16, F64, "rn") => unary(b.isa, |x: f64| to_f16(x)),
        (Bf16, F32, "rn") => unary(b.isa, |x: f32| to_bf16(f64::from(x))),
        (Bf16, F64, "rn") => unary(b.isa, |x: f64| to_bf16(x)),
        (F16, F16, "rni") => unary(b.isa, |x: u32| to_f16(f64::from(f16_value(x)).round_ties_even())),
        (F16, F16, "rzi") => unary(b.isa, |x: u32| to_f16(f64::from(f16_value(x)).trunc())),
        (F16, F16, "rmi") => unary(b.isa, |x: u32| to_f16(f64::from(f16_value(x)).floor())),
        (F16, F16, "rpi") => unary(b.isa, |x: u32| to_f16(f64::from(f16_value(x)).ceil())),
        (to, from, round) => return Err(format!("`.{round}` from `{from:?}` to `{to:?}` is not simulated")),
    })
}
