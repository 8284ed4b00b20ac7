//! Lowers moves, packing, unpacking and addresses.

use crate::exec::shapes::{binary, quaternary, unary};
use crate::exec::{carry, system, vector};
use crate::isa::decode::{Done, Form, elements};
use crate::mir::builder::{Builder, class_of};
use crate::mir::{Opnd, Work};
use crate::program::aux::Negations;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B64, B128, U16, U32};

pub fn mov<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let count = f.one_of(&["v2", "v4", "v8"]);
    let ty = f.ty()?;
    f.done()?;
    if let Some(count) = count {
        return mov_vector(b, f, usize::from(count.as_bytes()[1] - b'0'), ty);
    }
    let (to, from) = (f.operand(0)?, f.operand(1)?);
    if ty == B128 {
        return mov_quad(b, to, from);
    }
    if let Operand::Vector(parts) = to {
        return unpack(b, parts, from, ty);
    }
    if let Operand::Vector(parts) = from {
        return pack(b, to, parts, ty);
    }
    let d = b.dst(to, ty)?;
    if ty == ScalarType::Pred {
        let (x, negated) = b.pred(from)?;
        let aux = carry::PRED_AND | if negated { Negations::all().bits() } else { 0 };
        b.emit(carry::predicates, [d, x, x], 1, 0, aux).work = Work::Decision;
        return Ok(());
    }
    if let Operand::Name(name) = from
        && clock(b, name, d, ty)
    {
        return Ok(());
    }
    let x = b.src(from, ty)?;
    copy(b, d, x, ty.size() == 8);
    Ok(())
}

/// Lowers `mov` of vectors, which reads all sources before it writes any destination.
fn mov_vector<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, count: usize, ty: ScalarType) -> Done {
    let wide = ty.size() == 8;
    let mut values = Vec::new();
    for source in elements(f.operand(1)?, count, "sources")? {
        let x = b.src(source, ty)?;
        values.push(Opnd::Reg(b.fresh(class_of(ty)?)));
        copy(b, values[values.len() - 1], x, wide);
        b.uncount_last();
    }
    for (target, x) in elements(f.operand(0)?, count, "destinations")?.iter().zip(values) {
        let d = b.dst(target, ty)?;
        if d != Opnd::None {
            copy(b, d, x, wide);
            b.uncount_last();
        }
    }
    b.count_last();
    Ok(())
}

/// Lowers `mov.b128`.
fn mov_quad<'a>(b: &mut Builder<'a, '_>, to: &Operand<'a>, from: &Operand<'a>) -> Done {
    match (to, from) {
        (Operand::Vector(to), from) if to.len() == 2 => {
            let x = b.quad(from)?;
            for (k, to) in to.iter().enumerate().filter(|(_, to)| **to != Operand::Sink) {
                let d = b.dst(to, B64)?;
                half(b, d, x, k);
            }
        }
        (to, Operand::Vector(from)) if from.len() == 2 => {
            let halves = [b.src(&from[0], B64)?, b.src(&from[1], B64)?];
            let d = b.quad(to)?;
            join(b, d, halves);
        }
        (to, from) => {
            let (d, x) = (b.quad(to)?, b.quad(from)?);
            b.emit(unary(b.isa, |x: u128| x), [d, x], 1, 0, 0).work = Work::Copy;
        }
    }
    Ok(())
}

/// Packs two 64-bit values into one 128-bit value, with the first one lowest.
pub fn join(b: &mut Builder<'_, '_>, to: Opnd, [low, high]: [Opnd; 2]) {
    let run = binary(b.isa, |low: u64, high: u64| u128::from(high) << 64 | u128::from(low));
    b.emit(run, [to, low, high], 1, 0, 0);
}

/// Copies the low or high 64 bits of a 128-bit value.
pub fn half(b: &mut Builder<'_, '_>, to: Opnd, from: Opnd, which: usize) {
    let run = if which == 0 { unary(b.isa, |x: u128| x as u64) } else { unary(b.isa, |x: u128| (x >> 64) as u64) };
    b.emit(run, [to, from], 1, 0, 0);
}

pub fn copy(b: &mut Builder<'_, '_>, to: Opnd, from: Opnd, wide: bool) {
    let run = if wide { vector::unary(b.isa, |x: u64| x) } else { vector::unary(b.isa, |x: u32| x) };
    b.emit(run, [to, from], 1, 0, 0).work = Work::Copy;
}

fn unpack<'a>(b: &mut Builder<'a, '_>, parts: &[Operand<'a>], from: &Operand<'a>, ty: ScalarType) -> Done {
    let x = b.src(from, ty)?;
    let part = part_type(parts.len(), ty)?;
    for (k, to) in parts.iter().enumerate() {
        if *to == Operand::Sink {
            continue;
        }
        let d = b.dst(to, part)?;
        let by = b.parts.constants.uniform(u64::from(part.size()) * 8 * k as u64, false);
        let run = match (ty.size(), part.size()) {
            (8, 4) => vector::binary(b.isa, |x: u64, by: u32| (x >> by) as u32),
            (8, 2) => binary(b.isa, |x: u64, by: u32| (x >> by) as u32 & 0xffff),
            (4 | 2, 1) => binary(b.isa, |x: u32, by: u32| (x >> by) & 0xff),
            _ => binary(b.isa, |x: u32, by: u32| (x >> by) & 0xffff),
        };
        b.emit(run, [d, x, by], 1, 0, 0);
    }
    Ok(())
}

fn part_type(count: usize, ty: ScalarType) -> Result<ScalarType, String> {
    Ok(match (ty.size(), count) {
        (8, 2) => U32,
        (8, 4) | (4, 2) => U16,
        (4, 4) | (2, 2) => ScalarType::U8,
        _ => return Err(format!("a value of type `{ty:?}` has no {count} parts")),
    })
}

fn pack<'a>(b: &mut Builder<'a, '_>, to: &Operand<'a>, parts: &[Operand<'a>], ty: ScalarType) -> Done {
    let part = part_type(parts.len(), ty)?;
    let sources = parts.iter().map(|p| b.src(p, part)).collect::<Result<Vec<_>, _>>()?;
    let d = b.dst(to, ty)?;
    match (&sources[..], ty.size()) {
        (&[x, y], 8) => {
            let run = vector::binary(b.isa, |x: u32, y: u32| u64::from(y) << 32 | u64::from(x));
            b.emit(run, [d, x, y], 1, 0, 0);
        }
        (&[x, y], 2) => {
            let run = binary(b.isa, |x: u32, y: u32| (y & 0xff) << 8 | (x & 0xff));
            b.emit(run, [d, x, y], 1, 0, 0);
        }
        (&[x, y], _) => {
            let run = binary(b.isa, |x: u32, y: u32| y << 16 | (x & 0xffff));
            b.emit(run, [d, x, y], 1, 0, 0);
        }
        (&[x, y, z, w], 8) => {
            let run = quaternary(b.isa, |x: u32, y: u32, z: u32, w: u32| {
                u64::from(w & 0xffff) << 48
                    | u64::from(z & 0xffff) << 32
                    | u64::from(y & 0xffff) << 16
                    | u64::from(x & 0xffff)
            });
            b.emit(run, [d, x, y, z, w], 1, 0, 0);
        }
        (&[x, y, z, w], _) => {
            let run = quaternary(b.isa, |x: u32, y: u32, z: u32, w: u32| {
                (w & 0xff) << 24 | (z & 0xff) << 16 | (y & 0xff) << 8 | (x & 0xff)
            });
            b.emit(run, [d, x, y, z, w], 1, 0, 0);
        }
        _ => return Err("a value of this type does not have this many parts".to_owned()),
    }
    Ok(())
}

/// Emits a read of the clock if `name` is a clock register.
fn clock(b: &mut Builder<'_, '_>, name: &str, to: Opnd, ty: ScalarType) -> bool {
    let wide = match name {
        "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => false,
        "%clock64" | "%globaltimer" => true,
        _ => return false,
    };
    if wide != (ty.size() == 8) {
        return false;
    }
    if name.ends_with("_hi") {
        let zero = b.parts.constants.uniform(0, false);
        let run = vector::unary(b.isa, |x: u32| x);
        b.emit(run, [to, zero], 1, 0, 0);
    } else {
        b.emit(system::clock, [to], 1, 0, u32::from(wide));
    }
    true
}
