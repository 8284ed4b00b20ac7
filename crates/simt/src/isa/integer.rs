//! Lowers integer and bitwise operations, and moves.

use crate::exec::context::Handler;
use crate::exec::shapes::{binary, ternary, unary};
use crate::exec::{carry, shapes, vector};
use crate::isa::decode::{Done, Form, apply, no_type, selector};
use crate::isa::float;
use crate::mir::builder::Builder;
use crate::mir::{Opnd, Work};
use crate::program::aux::{Carry, Negations};
use ptx_parser::ScalarType;

use ScalarType::{B16, B32, B64, S16, S16x2, S32, S64, U16, U16x2, U32, U64};

/// Picks a handler by type. Each closure is instantiated for every integer type; the 32- and 64-bit types use the named
/// family of shapes.
macro_rules! by_type {
    ($family:ident::$shape:ident, $isa:expr, $ty:expr, |$($x:ident),+| $body:expr) => {
        match $ty {
            U16 | B16 => $shape($isa, |$($x: u32),+| { $(let $x = $x as u16;)+ let r: u16 = $body; u32::from(r) }),
            S16 => $shape($isa, |$($x: u32),+| { $(let $x = $x as i16;)+ let r: i16 = $body; u32::from(r as u16) }),
            U32 | B32 => $family::$shape($isa, |$($x: u32),+| -> u32 { $body }),
            S32 => $family::$shape($isa, |$($x: i32),+| -> i32 { $body }),
            U64 | B64 => $family::$shape($isa, |$($x: u64),+| -> u64 { $body }),
            S64 => $family::$shape($isa, |$($x: i64),+| -> i64 { $body }),
            ty => return no_type(ty),
        }
    };
}

pub(super) use by_type;

/// Picks a handler by type, where types include pairs of 16-bit integers in a register.
macro_rules! by_type_or_pair {
    ($family:ident::$shape:ident, $isa:expr, $ty:expr, |$($x:ident),+| $body:expr) => {
        match $ty {
            U16x2 => $shape($isa, |$($x: u32),+| {
                let low = { $(let $x = $x as u16;)+ let r: u16 = $body; u32::from(r) };
                let high = { $(let $x = ($x >> 16) as u16;)+ let r: u16 = $body; u32::from(r) };
                high << 16 | low
            }),
            S16x2 => $shape($isa, |$($x: u32),+| signed_pair($($x),+, |$($x: i16),+| -> i16 { $body })),
            ty => by_type!($family::$shape, $isa, ty, |$($x),+| $body),
        }
    };
}

/// Applies an operation to each of the two signed halves of a register.
#[inline(always)]
fn signed_pair(x: u32, y: u32, f: impl Fn(i16, i16) -> i16) -> u32 {
    let (low, high) = (f(x as i16, y as i16), f((x >> 16) as i16, (y >> 16) as i16));
    u32::from(high as u16) << 16 | u32::from(low as u16)
}

pub fn add<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("cc") {
        return carries(b, f, carry::ADD, Carry::SETS);
    }
    let ty = f.ty()?;
    if ty.is_float() {
        return float::add(b, f, ty);
    }
    let run = match (ty, f.flag("sat")) {
        (S32, true) => binary(b.isa, i32::saturating_add),
        (ty, false) => by_type_or_pair!(vector::binary, b.isa, ty, |x, y| x.wrapping_add(y)),
        (ty, true) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

pub fn sub<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("cc") {
        return carries(b, f, carry::SUB, Carry::SETS);
    }
    let ty = f.ty()?;
    if ty.is_float() {
        return float::sub(b, f, ty);
    }
    let run = match (ty, f.flag("sat")) {
        (S32, true) => binary(b.isa, i32::saturating_sub),
        (ty, false) => by_type!(vector::binary, b.isa, ty, |x, y| x.wrapping_sub(y)),
        (ty, true) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

/// Lowers `addc`, `subc` and `madc`.
pub fn carry<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mut flags = Carry::TAKES;
    flags.set(Carry::SETS, f.flag("cc"));
    let operation = match f.ins.opcode.split('.').next() {
        Some("addc") => carry::ADD,
        Some("subc") => carry::SUB,
        _ if f.flag("lo") => carry::MAD_LOW,
        _ if f.flag("hi") => carry::MAD_HIGH,
        _ => return Err("expected `.lo` or `.hi`".to_owned()),
    };
    carries(b, f, operation, flags)
}

fn carries<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, operation: u32, mut flags: Carry) -> Done {
    let ty = f.ty()?;
    let run: Handler = match ty {
        U32 | S32 | B32 => carry::narrow,
        U64 | S64 | B64 => carry::wide,
        ty => return no_type(ty),
    };
    flags.set(Carry::SIGNED, ty.is_signed());
    let d = b.dst(f.operand(0)?, ty)?;
    let (x, y) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, ty)?);
    let z = if f.count() > 3 { b.src(f.operand(3)?, ty)? } else { Opnd::None };
    b.emit(run, [d, x, y, z], 1, 0, operation | flags.bits());
    f.done()
}

pub fn mul<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (lo, hi, wide) = (f.flag("lo"), f.flag("hi"), f.flag("wide"));
    let ty = f.ty()?;
    if ty.is_float() {
        return float::mul(b, f, ty);
    }
    if wide {
        let (to, run) = match ty {
            U16 => (U32, binary(b.isa, |x: u32, y: u32| (x & 0xffff) * (y & 0xffff))),
            S16 => (S32, binary(b.isa, |x: u32, y: u32| (i32::from(x as i16) * i32::from(y as i16)) as u32)),
            U32 => (U64, vector::binary(b.isa, |x: u32, y: u32| u64::from(x) * u64::from(y))),
            S32 => (S64, vector::binary(b.isa, |x: i32, y: i32| i64::from(x) * i64::from(y))),
            ty => return no_type(ty),
        };
        return apply(b, f, [to, ty, ty], run);
    }
    let run = match (hi, ty) {
        (false, ty) if lo => by_type!(vector::binary, b.isa, ty, |x, y| x.wrapping_mul(y)),
        (true, U16) => binary(b.isa, |x: u32, y: u32| ((x & 0xffff) * (y & 0xffff)) >> 16),
        (true, S16) => binary(b.isa, |x: u32, y: u32| (i32::from(x as i16) * i32::from(y as i16)) as u32 >> 16),
        (true, U32) => vector::binary(b.isa, |x: u32, y: u32| ((u64::from(x) * u64::from(y)) >> 32) as u32),
        (true, S32) => vector::binary(b.isa, |x: i32, y: i32| ((i64::from(x) * i64::from(y)) >> 32) as i32),
        (true, U64) => binary(b.isa, |x: u64, y: u64| ((u128::from(x) * u128::from(y)) >> 64) as u64),
        (true, S64) => binary(b.isa, |x: i64, y: i64| ((i128::from(x) * i128::from(y)) >> 64) as i64),
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

pub fn mad<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (lo, hi, wide) = (f.flag("lo"), f.flag("hi"), f.flag("wide"));
    if f.flag("cc") {
        return carries(b, f, if lo { carry::MAD_LOW } else { carry::MAD_HIGH }, Carry::SETS);
    }
    let ty = f.ty()?;
    if ty.is_float() {
        return float::mad(b, f, ty);
    }
    if wide {
        let (to, run) = match ty {
            U16 => (U32, ternary(b.isa, |x: u32, y: u32, z: u32| ((x & 0xffff) * (y & 0xffff)).wrapping_add(z))),
            S16 => (
                S32,
                ternary(b.isa, |x: u32, y: u32, z: u32| {
                    ((i32::from(x as i16) * i32::from(y as i16)) as u32).wrapping_add(z)
                }),
            ),
            U32 => {
                (U64, vector::ternary(b.isa, |x: u32, y: u32, z: u64| (u64::from(x) * u64::from(y)).wrapping_add(z)))
            }
            S32 => {
                (S64, vector::ternary(b.isa, |x: i32, y: i32, z: i64| (i64::from(x) * i64::from(y)).wrapping_add(z)))
            }
            ty => return no_type(ty),
        };
        return apply(b, f, [to, ty, ty, to], run);
    }
    let saturates = f.flag("sat");
    let run = match (hi, ty) {
        (false, ty) if lo => by_type!(vector::ternary, b.isa, ty, |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
        (true, S32) if saturates => {
            ternary(b.isa, |x: i32, y: i32, z: i32| (((i64::from(x) * i64::from(y)) >> 32) as i32).saturating_add(z))
        }
        (true, U16) => {
            ternary(b.isa, |x: u32, y: u32, z: u32| (((x & 0xffff) * (y & 0xffff)) >> 16).wrapping_add(z) & 0xffff)
        }
        (true, S16) => ternary(b.isa, |x: u32, y: u32, z: u32| {
            ((i32::from(x as i16) * i32::from(y as i16)) as u32 >> 16).wrapping_add(z) & 0xffff
        }),
        (true, U32) => {
            ternary(b.isa, |x: u32, y: u32, z: u32| (((u64::from(x) * u64::from(y)) >> 32) as u32).wrapping_add(z))
        }
        (true, S32) => {
            ternary(b.isa, |x: i32, y: i32, z: i32| (((i64::from(x) * i64::from(y)) >> 32) as i32).wrapping_add(z))
        }
        (true, U64) => {
            ternary(b.isa, |x: u64, y: u64, z: u64| (((u128::from(x) * u128::from(y)) >> 64) as u64).wrapping_add(z))
        }
        (true, S64) => {
            ternary(b.isa, |x: i64, y: i64, z: i64| (((i128::from(x) * i128::from(y)) >> 64) as i64).wrapping_add(z))
        }
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [ty; 4], run)
}

pub fn mul24<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (lo, hi) = (f.flag("lo"), f.flag("hi"));
    let ty = f.ty()?;
    let run = match (ty, lo, hi) {
        (U32, true, _) => binary(b.isa, |x: u32, y: u32| (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff)),
        (S32, true, _) => binary(b.isa, |x: i32, y: i32| (x << 8 >> 8).wrapping_mul(y << 8 >> 8)),
        (U32, _, true) => {
            binary(b.isa, |x: u32, y: u32| ((u64::from(x & 0xff_ffff) * u64::from(y & 0xff_ffff)) >> 16) as u32)
        }
        (S32, _, true) => {
            binary(b.isa, |x: i32, y: i32| ((i64::from(x << 8 >> 8) * i64::from(y << 8 >> 8)) >> 16) as i32)
        }
        (ty, ..) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

pub fn mad24<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (lo, _, saturates) = (f.flag("lo"), f.flag("hi"), f.flag("sat"));
    let ty = f.ty()?;
    if saturates && (lo || ty != S32) {
        return no_type(ty);
    }
    let run = match (ty, lo) {
        (U32, true) => {
            ternary(b.isa, |x: u32, y: u32, z: u32| (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff).wrapping_add(z))
        }
        (S32, true) => ternary(b.isa, |x: i32, y: i32, z: i32| (x << 8 >> 8).wrapping_mul(y << 8 >> 8).wrapping_add(z)),
        (U32, false) => ternary(b.isa, |x: u32, y: u32, z: u32| {
            (((u64::from(x & 0xff_ffff) * u64::from(y & 0xff_ffff)) >> 16) as u32).wrapping_add(z)
        }),
        (S32, false) if saturates => ternary(b.isa, |x: i32, y: i32, z: i32| {
            (((i64::from(x << 8 >> 8) * i64::from(y << 8 >> 8)) >> 16) as i32).saturating_add(z)
        }),
        (S32, false) => ternary(b.isa, |x: i32, y: i32, z: i32| {
            (((i64::from(x << 8 >> 8) * i64::from(y << 8 >> 8)) >> 16) as i32).wrapping_add(z)
        }),
        (ty, _) => return no_type(ty),
    };
    apply(b, f, [ty; 4], run)
}

pub fn minmax<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let largest = f.ins.opcode.starts_with("max");
    let relu = f.flag("relu");
    let ty = f.ty()?;
    if ty.is_float() {
        return float::minmax(b, f, ty, largest);
    }
    let run = if relu {
        match (ty, largest) {
            (S32, true) => binary(b.isa, |x: i32, y: i32| x.max(y).max(0)),
            (S32, false) => binary(b.isa, |x: i32, y: i32| x.min(y).max(0)),
            (S16x2, true) => binary(b.isa, |x: u32, y: u32| signed_pair(x, y, |x, y| x.max(y).max(0))),
            (S16x2, false) => binary(b.isa, |x: u32, y: u32| signed_pair(x, y, |x, y| x.min(y).max(0))),
            (ty, _) => return no_type(ty),
        }
    } else if largest {
        by_type_or_pair!(vector::binary, b.isa, ty, |x, y| if x > y { x } else { y })
    } else {
        by_type_or_pair!(vector::binary, b.isa, ty, |x, y| if x < y { x } else { y })
    };
    apply(b, f, [ty; 3], run)
}

pub fn abs<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    if ty.is_float() {
        return float::abs(b, f, ty);
    }
    let run = match ty {
        S16 => unary(b.isa, |x: u32| u32::from((x as i16).wrapping_abs() as u16)),
        S32 => vector::unary(b.isa, i32::wrapping_abs),
        S64 => vector::unary(b.isa, i64::wrapping_abs),
        ty => return no_type(ty),
    };
    apply(b, f, [ty; 2], run)
}

pub fn neg<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    if ty.is_float() {
        return float::neg(b, f, ty);
    }
    let run = match ty {
        S16 => unary(b.isa, |x: u32| x.wrapping_neg() & 0xffff),
        S32 => vector::unary(b.isa, i32::wrapping_neg),
        S64 => vector::unary(b.isa, i64::wrapping_neg),
        ty => return no_type(ty),
    };
    apply(b, f, [ty; 2], run)
}

pub fn not<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let run = match f.ty()? {
        ScalarType::Pred => {
            let d = b.dst(f.operand(0)?, ScalarType::Pred)?;
            let (x, negated) = b.pred(f.operand(1)?)?;
            let aux = carry::PRED_NOT | if negated { Negations::FIRST.bits() } else { 0 };
            b.emit(carry::predicates, [d, x, x], 1, 0, aux).work = Work::Decision;
            return f.done();
        }
        ty @ B16 => (ty, unary(b.isa, |x: u32| !x & 0xffff)),
        ty @ B32 => (ty, vector::unary(b.isa, |x: u32| !x)),
        ty @ B64 => (ty, vector::unary(b.isa, |x: u64| !x)),
        ty => return no_type(ty),
    };
    apply(b, f, [run.0; 2], run.1)
}

/// Lowers `and`, `or` and `xor`.
pub fn logic<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let name = &f.ins.opcode[..2];
    let ty = f.ty()?;
    if ty == ScalarType::Pred {
        let d = b.dst(f.operand(0)?, ty)?;
        let ((x, not_x), (y, not_y)) = (b.pred(f.operand(1)?)?, b.pred(f.operand(2)?)?);
        let operation = match name {
            "an" => carry::PRED_AND,
            "or" => carry::PRED_OR,
            _ => carry::PRED_XOR,
        };
        let mut negations = Negations::empty();
        negations.set(Negations::FIRST, not_x);
        negations.set(Negations::SECOND, not_y);
        b.emit(carry::predicates, [d, x, y], 1, 0, operation | negations.bits()).work = Work::Decision;
        return f.done();
    }
    let run = match (name, ty) {
        ("an", B16 | B32) => vector::binary(b.isa, |x: u32, y: u32| x & y),
        ("or", B16 | B32) => vector::binary(b.isa, |x: u32, y: u32| x | y),
        ("xo", B16 | B32) => vector::binary(b.isa, |x: u32, y: u32| x ^ y),
        ("an", B64) => vector::binary(b.isa, |x: u64, y: u64| x & y),
        ("or", B64) => vector::binary(b.isa, |x: u64, y: u64| x | y),
        ("xo", B64) => vector::binary(b.isa, |x: u64, y: u64| x ^ y),
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

pub fn sad<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = by_type!(shapes::ternary, b.isa, ty, |x, y, z| z.wrapping_add(if x > y {
        x.wrapping_sub(y)
    } else {
        y.wrapping_sub(x)
    }));
    apply(b, f, [ty; 4], run)
}

pub fn selp<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = selector(b, ty.size() == 8);
    let d = b.dst(f.operand(0)?, ty)?;
    let (x, y) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, ty)?);
    let (p, negated) = b.pred(f.operand(3)?)?;
    if negated {
        b.emit(run, [d, y, x, p], 1, 0, 0);
    } else {
        b.emit(run, [d, x, y, p], 1, 0, 0);
    }
    f.done()
}
