//! Lowers shifts, bit fields, permutations, bit counts and byte dot products.

use crate::exec::shapes::{COMBINE_AND, COMBINE_OR, binary, compare, quaternary, ternary, unary};
use crate::exec::vector;
use crate::isa::decode::{Done, Form, apply, no_type};
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd};
use crate::program::aux::Combination;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B16, B32, B64, S16, S32, S64, U16, U32, U64};

/// Lowers `shl` and `shr`. Amounts above the width count as the width.
pub fn shift<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let left = f.ins.opcode.starts_with("shl");
    let ty = f.ty()?;
    let run = match (left, ty) {
        (true, B16) => binary(b.isa, |x: u32, y: u32| if y > 15 { 0 } else { (x << y) & 0xffff }),
        (true, B32) => vector::binary(b.isa, |x: u32, y: u32| if y > 31 { 0 } else { x << y }),
        (true, B64) => vector::binary(b.isa, |x: u64, y: u32| if y > 63 { 0 } else { x << y }),
        (false, B16 | U16) => binary(b.isa, |x: u32, y: u32| if y > 15 { 0 } else { (x & 0xffff) >> y }),
        (false, S16) => binary(b.isa, |x: u32, y: u32| u32::from((i32::from(x as i16) >> y.min(15)) as u16)),
        (false, B32 | U32) => vector::binary(b.isa, |x: u32, y: u32| if y > 31 { 0 } else { x >> y }),
        (false, S32) => vector::binary(b.isa, |x: i32, y: u32| x >> y.min(31)),
        (false, B64 | U64) => vector::binary(b.isa, |x: u64, y: u32| if y > 63 { 0 } else { x >> y }),
        (false, S64) => vector::binary(b.isa, |x: i64, y: u32| x >> y.min(63)),
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [ty, ty, U32], run)
}

pub fn funnel<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (left, _) = (f.flag("l"), f.flag("r"));
    let clamp = f.flag("clamp");
    f.flag("wrap");
    let ty = f.ty()?;
    let run = match (left, clamp) {
        (true, false) => vector::ternary(b.isa, |lo: u32, hi: u32, by: u32| (pair(lo, hi) << (by & 31) >> 32) as u32),
        (true, true) => vector::ternary(b.isa, |lo: u32, hi: u32, by: u32| (pair(lo, hi) << by.min(32) >> 32) as u32),
        (false, false) => vector::ternary(b.isa, |lo: u32, hi: u32, by: u32| (pair(lo, hi) >> (by & 31)) as u32),
        (false, true) => vector::ternary(b.isa, |lo: u32, hi: u32, by: u32| (pair(lo, hi) >> by.min(32)) as u32),
    };
    apply(b, f, [ty; 4], run)
}

#[inline(always)]
fn pair(lo: u32, hi: u32) -> u64 {
    u64::from(hi) << 32 | u64::from(lo)
}

/// Lowers `clz`, `popc`, `brev` and `cnot`.
pub fn bits<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let (to, run) = match (f.ins.opcode.split('.').next().unwrap_or_default(), ty) {
        ("clz", B32) => (U32, unary(b.isa, u32::leading_zeros)),
        ("clz", B64) => (U32, unary(b.isa, u64::leading_zeros)),
        ("popc", B32) => (U32, unary(b.isa, u32::count_ones)),
        ("popc", B64) => (U32, unary(b.isa, u64::count_ones)),
        ("brev", B32) => (U32, unary(b.isa, u32::reverse_bits)),
        ("brev", B64) => (U64, unary(b.isa, u64::reverse_bits)),
        ("cnot", B16) => (U16, unary(b.isa, |x: u32| u32::from(x as u16 == 0))),
        ("cnot", B32) => (U32, unary(b.isa, |x: u32| u32::from(x == 0))),
        ("cnot", B64) => (U64, unary(b.isa, |x: u64| u64::from(x == 0))),
        (_, ty) => return no_type(ty),
    };
    apply(b, f, [to, ty], run)
}

pub fn bfind<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let shift = f.flag("shiftamt");
    let ty = f.ty()?;
    let run = match (ty, shift) {
        (U32, false) => unary(b.isa, |x: u32| 31_u32.wrapping_sub(x.leading_zeros())),
        (U32, true) => unary(b.isa, |x: u32| if x == 0 { u32::MAX } else { x.leading_zeros() }),
        (S32, false) => unary(b.isa, |x: i32| 31_u32.wrapping_sub((x ^ (x >> 31)).leading_zeros())),
        (S32, true) => unary(b.isa, |x: i32| {
            let y = x ^ (x >> 31);
            if y == 0 { u32::MAX } else { y.leading_zeros() }
        }),
        (U64, false) => unary(b.isa, |x: u64| 63_u32.wrapping_sub(x.leading_zeros())),
        (U64, true) => unary(b.isa, |x: u64| if x == 0 { u32::MAX } else { x.leading_zeros() }),
        (S64, false) => unary(b.isa, |x: i64| 63_u32.wrapping_sub((x ^ (x >> 63)).leading_zeros())),
        (S64, true) => unary(b.isa, |x: i64| {
            let y = x ^ (x >> 63);
            if y == 0 { u32::MAX } else { y.leading_zeros() }
        }),
        (ty, _) => return no_type(ty),
    };
    apply(b, f, [U32, ty], run)
}

pub fn bfe<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = match ty {
        U32 => ternary(b.isa, |x: u32, at: u32, len: u32| field(u64::from(x), at, len, 32, false) as u32),
        S32 => ternary(b.isa, |x: i32, at: u32, len: u32| field(i64::from(x) as u64, at, len, 32, true) as u32),
        U64 => ternary(b.isa, |x: u64, at: u32, len: u32| field(x, at, len, 64, false)),
        S64 => ternary(b.isa, |x: u64, at: u32, len: u32| field(x, at, len, 64, true)),
        ty => return no_type(ty),
    };
    apply(b, f, [ty, ty, U32, U32], run)
}

/// Returns the part of a position or length that hardware uses: the low eight bits for 32-bit fields, the whole value
/// for 64-bit fields.
#[inline(always)]
fn extent(v: u32, width: u32) -> u32 {
    if width == 64 { v.min(0xff) } else { v & 0xff }
}

/// Extracts `len` bits of `x`, starting at bit `at`. If `signed`, the result is sign-extended, and bits beyond `width`
/// repeat the sign.
#[inline(always)]
pub fn field(x: u64, at: u32, len: u32, width: u32, signed: bool) -> u64 {
    let (at, len) = (extent(at, width), extent(len, width));
    if len == 0 {
        return 0;
    }
    let shifted = if signed { ((x as i64) >> at.min(63)) as u64 } else { x.checked_shr(at).unwrap_or(0) };
    if len >= 64 {
        return shifted;
    }
    let kept = shifted & ((1 << len) - 1);
    let top = (at + len - 1).min(width - 1);
    if signed && x >> top & 1 == 1 { kept | !((1 << len) - 1) } else { kept }
}

pub fn bmsk<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (clamp, _) = (f.flag("clamp"), f.flag("wrap"));
    let ty = f.ty()?;
    let run = if clamp {
        binary(b.isa, |at: u32, len: u32| {
            let ones = if len > 31 { u32::MAX } else { (1 << len) - 1 };
            if at > 31 { 0 } else { ones << at }
        })
    } else {
        binary(b.isa, |at: u32, len: u32| ((1_u32 << (len & 31)) - 1) << (at & 31))
    };
    apply(b, f, [ty; 3], run)
}

pub fn szext<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (clamp, _) = (f.flag("clamp"), f.flag("wrap"));
    let ty = f.ty()?;
    let run = match (ty, clamp) {
        (U32, true) => binary(b.isa, |x: u32, len: u32| if len > 31 { x } else { x & ((1 << len) - 1) }),
        (U32, false) => binary(b.isa, |x: u32, len: u32| x & ((1 << (len & 31)) - 1)),
        (S32, true) => binary(b.isa, |x: i32, len: u32| extend(x, len.min(32))),
        (S32, false) => binary(b.isa, |x: i32, len: u32| extend(x, len & 31)),
        (ty, _) => return no_type(ty),
    };
    apply(b, f, [ty; 3], run)
}

/// Sign-extends the low `len` bits of `x`.
#[inline(always)]
fn extend(x: i32, len: u32) -> i32 {
    if len == 0 { 0 } else { x << (32 - len) >> (32 - len) }
}

pub fn bfi<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = match ty {
        B32 => quaternary(b.isa, |x: u32, y: u32, at: u32, len: u32| {
            insert(u64::from(x), u64::from(y), at, len, 32) as u32
        }),
        B64 => quaternary(b.isa, |x: u64, y: u64, at: u32, len: u32| insert(x, y, at, len, 64)),
        ty => return no_type(ty),
    };
    apply(b, f, [ty, ty, ty, U32, U32], run)
}

/// Returns `y`, with `len` bits starting at bit `at` replaced with the low bits of `x`.
#[inline(always)]
pub fn insert(x: u64, y: u64, at: u32, len: u32, width: u32) -> u64 {
    let (at, len) = (extent(at, width), extent(len, width));
    if at >= width {
        return y;
    }
    let ones = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let mask = ones << at;
    (y & !mask) | ((x << at) & mask)
}

pub fn fns<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let ty = f.ty()?;
    let run = ternary(b.isa, |mask: u32, base: u32, offset: i32| nth_set(mask, base, offset));
    apply(b, f, [ty; 4], run)
}

/// Returns the position of the `offset`-th set bit, counted upward from `base`, or downward if `offset` is negative.
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let mut left = offset.unsigned_abs();
    let mut at = i64::from(base);
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += if offset > 0 { 1 } else { -1 };
    }
    u32::MAX
}

pub fn lop3<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let combine = f.one_of(&["or", "and"]);
    let ty = f.ty()?;
    let run = vector::quaternary(b.isa, |x: u32, y: u32, z: u32, table: u32| {
        let mut out = 0;
        for k in 0..8_u32 {
            let on = 0_u32.wrapping_sub(table >> k & 1);
            let x = if k & 4 == 0 { !x } else { x };
            let y = if k & 2 == 0 { !y } else { y };
            let z = if k & 1 == 0 { !z } else { z };
            out |= on & x & y & z;
        }
        out
    });
    let (x, y, z) = (b.src(f.operand(1)?, ty)?, b.src(f.operand(2)?, ty)?, b.src(f.operand(3)?, ty)?);
    let table = b.src(f.operand(4)?, U32)?;
    f.done()?;
    let Some(combine) = combine else {
        let d = b.dst(f.operand(0)?, ty)?;
        b.emit(run, [d, x, y, z, table], 1, 0, 0);
        return Ok(());
    };
    // `d|p`: the predicate tells whether the result is nonzero, combined with the source predicate.
    let Operand::Pair(value, holds) = *f.operand(0)? else { return Err("`d|p` is expected".to_owned()) };
    let out = Opnd::Reg(b.fresh(Class::Narrow));
    b.emit(run, [out, x, y, z, table], 1, 0, 0);
    if value != "_" {
        let d = b.dst(&Operand::Name(value), ty)?;
        b.emit(unary(b.isa, |x: u32| x), [d, out], 1, 0, 0);
    }
    let p = b.dst(&Operand::Name(holds), ScalarType::Pred)?;
    let (other, negated) = b.pred(f.operand(5)?)?;
    let aux =
        if combine == "or" { COMBINE_OR } else { COMBINE_AND } | if negated { Combination::NEGATED.bits() } else { 0 };
    b.emit(compare(b.isa, |x: u32, _: u32| x != 0), [p, Opnd::None, out, out, other], 3, 0, aux);
    Ok(())
}

pub fn prmt<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mode = f.one_of(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]);
    let ty = f.ty()?;
    let run = match mode {
        None => ternary(b.isa, |x: u32, y: u32, selector: u32| {
            let bytes = pair(x, y);
            let mut out = 0;
            for k in 0..4 {
                let pick = selector >> (4 * k);
                let byte = (bytes >> (8 * (pick & 7))) as u32 & 0xff;
                let sign = if byte & 0x80 == 0 { 0 } else { 0xff };
                out |= (if pick & 8 == 0 { byte } else { sign }) << (8 * k);
            }
            out
        }),
        // Selects four bytes, starting at byte `s` and going up or down, with wraparound at the end of the pair.
        Some("f4e") => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |k| (s & 3) + k)),
        Some("b4e") => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |k| (s & 3).wrapping_sub(k) & 7)),
        Some("rc8") => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |_| s & 3)),
        // Edge modes: byte indices on one side of `s` are clamped to `s`.
        Some("ecl") => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |k| k.max(s & 3))),
        Some("ecr") => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |k| k.min(s & 3))),
        Some(_) => ternary(b.isa, |x: u32, y: u32, s: u32| picked(x, y, |k| (s & 1) * 2 + (k & 1))),
    };
    apply(b, f, [ty; 4], run)
}

/// Selects bytes of a pair of registers by the indices that `which` returns.
#[inline(always)]
fn picked(x: u32, y: u32, which: impl Fn(u32) -> u32) -> u32 {
    let bytes = pair(x, y);
    (0..4).fold(0, |out, k| out | ((bytes >> (8 * which(k))) as u32 & 0xff) << (8 * k))
}

/// Lowers `dp4a` and `dp2a`.
pub fn dot<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (_, high) = (f.flag("lo"), f.flag("hi"));
    let halves = f.ins.opcode.starts_with("dp2a");
    let types = f.types();
    let (left, right) = match types[..] {
        [x, y] => (x.is_signed(), y.is_signed()),
        _ => return Err("expected two types".to_owned()),
    };
    let mode = u64::from(left) | u64::from(right) << 1 | u64::from(halves) << 2 | u64::from(high) << 3;
    let run = quaternary(b.isa, |x: u32, y: u32, z: u32, mode: u32| {
        let byte = |v: u32, k: u32, signed: bool| {
            let v = (v >> (8 * k)) as u8;
            if signed { i32::from(v as i8) } else { i32::from(v) }
        };
        let mut sum = z;
        if mode & 4 == 0 {
            for k in 0..4 {
                sum = sum.wrapping_add((byte(x, k, mode & 1 != 0) * byte(y, k, mode & 2 != 0)) as u32);
            }
        } else {
            for k in 0..2 {
                let half = (x >> (16 * k)) as u16;
                let half = if mode & 1 == 0 { i32::from(half) } else { i32::from(half as i16) };
                let other = byte(y, k + if mode & 8 == 0 { 0 } else { 2 }, mode & 2 != 0);
                sum = sum.wrapping_add((half * other) as u32);
            }
        }
        sum
    });
    let d = b.dst(f.operand(0)?, U32)?;
    let (x, y, z) = (b.src(f.operand(1)?, U32)?, b.src(f.operand(2)?, U32)?, b.src(f.operand(3)?, U32)?);
    let mode = b.parts.constants.uniform(mode, false);
    b.emit(run, [d, x, y, z, mode], 1, 0, 0);
    f.done()
}
