//! Read-modify-write operations: one table for atomics, reductions sent within a cluster, and bulk reductions.

use ScalarType::{B32, B64, B128, Bf16, Bf16x2, F16, F16x2, F32, F64, S32, S64, U16, U32, U64};

use super::half::{bf16_value, f16_value, to_bf16, to_f16};
use super::memory::{SCOPES, address, space};
use super::{Builder, Form, moves, sending};
use crate::exec::access::form;
use crate::exec::arith::{canon, fma_odd, ftz, max32, min32};
use crate::exec::atomic::{self as cells, Handlers};
use crate::exec::row::Handler;
use crate::lower::builder::class_of;
use crate::lower::mir::Opnd;
use ptx_parser::{Operand, ScalarType};

type Done = Result<(), String>;

/// Where an operation is performed: floats are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Shared memory.
    Shared,
    /// Global memory, which flushes subnormals and returns the NaN of a double unchanged.
    Global,
    /// A bulk copy to global memory, which does not flush.
    Bulk,
}

/// Picks the function that performs an operation. The second part says whether such operations commute.
pub(super) fn cell(operation: &str, ty: ScalarType, unit: Unit) -> Result<(Handlers, bool), String> {
    macro_rules! cell {
        ($t:ty, |$old:ident, $b:ident, $c:ident| $body:expr) => {
            cells::handlers::<$t, _>(|$old: $t, $b: $t, $c: $t| {
                let _ = ($old, $c);
                $body
            })
        };
    }
    macro_rules! float {
        ($t:ty, $f:ty, |$x:ident, $y:ident| $body:expr) => {
            cells::handlers::<$t, _>(|old: $t, b: $t, _: $t| {
                let ($x, $y) = (<$f>::from_bits(old), <$f>::from_bits(b));
                let r: $f = $body;
                r.to_bits()
            })
        };
    }
    Ok(match (operation, ty) {
        ("add", U32 | S32) => (cell!(u32, |old, b, c| old.wrapping_add(b)), true),
        ("add", U64 | S64) => (cell!(u64, |old, b, c| old.wrapping_add(b)), true),
        ("and", B32) => (cell!(u32, |old, b, c| old & b), true),
        ("and", B64) => (cell!(u64, |old, b, c| old & b), true),
        ("or", B32) => (cell!(u32, |old, b, c| old | b), true),
        ("or", B64) => (cell!(u64, |old, b, c| old | b), true),
        ("xor", B32) => (cell!(u32, |old, b, c| old ^ b), true),
        ("xor", B64) => (cell!(u64, |old, b, c| old ^ b), true),
        ("min", U32) => (cell!(u32, |old, b, c| old.min(b)), true),
        ("min", S32) => (cell!(u32, |old, b, c| (old as i32).min(b as i32) as u32), true),
        ("min", U64) => (cell!(u64, |old, b, c| old.min(b)), true),
        ("min", S64) => (cell!(u64, |old, b, c| (old as i64).min(b as i64) as u64), true),
        ("max", U32) => (cell!(u32, |old, b, c| old.max(b)), true),
        ("max", S32) => (cell!(u32, |old, b, c| (old as i32).max(b as i32) as u32), true),
        ("max", U64) => (cell!(u64, |old, b, c| old.max(b)), true),
        ("max", S64) => (cell!(u64, |old, b, c| (old as i64).max(b as i64) as u64), true),
        ("inc", U32) => (cell!(u32, |old, b, c| if old >= b { 0 } else { old + 1 }), false),
        ("dec", U32) => (cell!(u32, |old, b, c| if old == 0 || old > b { b } else { old - 1 }), false),
        ("exch", B32 | U32 | S32 | F32) => (cell!(u32, |old, b, c| b), false),
        ("exch", B64 | U64 | S64 | F64) => (cell!(u64, |old, b, c| b), false),
        ("cas", ScalarType::B16 | U16) => (cell!(u16, |old, b, c| if old == b { c } else { old }), false),
        ("cas", B32 | U32 | S32) => (cell!(u32, |old, b, c| if old == b { c } else { old }), false),
        ("exch", B128) => (cell!(u128, |old, b, c| b), false),
        ("cas", B128) => (cell!(u128, |old, b, c| if old == b { c } else { old }), false),
        ("cas", B64 | U64 | S64) => (cell!(u64, |old, b, c| if old == b { c } else { old }), false),
        ("add", F32) if unit == Unit::Global => (float!(u32, f32, |x, y| ftz(canon(ftz(x) + ftz(y)))), false),
        ("add", F32) => (float!(u32, f32, |x, y| canon(x + y)), false),
        ("add", F64) if unit == Unit::Shared => (float!(u64, f64, |x, y| x + y), false),
        ("add", F64) => (
            float!(u64, f64, |x, y| if x.is_nan() {
                x
            } else if y.is_nan() {
                y
            } else {
                x + y
            }),
            false,
        ),
        ("min", F32) => (float!(u32, f32, |x, y| min32(x, y)), true),
        ("max", F32) => (float!(u32, f32, |x, y| max32(x, y)), true),
        ("add", F16) => (cell!(u16, |old, b, c| f16_sum(old.into(), b.into()) as u16), false),
        ("add", Bf16) => (cell!(u16, |old, b, c| bf16_sum(old.into(), b.into()) as u16), false),
        ("add", F16x2) => (cell!(u32, |old, b, c| pairs(old, b, f16_sum)), false),
        ("add", Bf16x2) => (cell!(u32, |old, b, c| pairs(old, b, bf16_sum)), false),
        ("min", F16) => (cell!(u16, |old, b, c| f16_min(old.into(), b.into()) as u16), true),
        ("max", F16) => (cell!(u16, |old, b, c| f16_max(old.into(), b.into()) as u16), true),
        ("min", Bf16) => (cell!(u16, |old, b, c| bf16_min(old.into(), b.into()) as u16), true),
        ("max", Bf16) => (cell!(u16, |old, b, c| bf16_max(old.into(), b.into()) as u16), true),
        ("min", F16x2) => (cell!(u32, |old, b, c| pairs(old, b, f16_min)), true),
        ("max", F16x2) => (cell!(u32, |old, b, c| pairs(old, b, f16_max)), true),
        ("min", Bf16x2) => (cell!(u32, |old, b, c| pairs(old, b, bf16_min)), true),
        ("max", Bf16x2) => (cell!(u32, |old, b, c| pairs(old, b, bf16_max)), true),
        (operation, ty) => return Err(format!("atomic `.{operation}` on `{ty:?}` is not simulated")),
    })
}

fn f16_sum(x: u32, y: u32) -> u32 {
    to_f16(fma_odd(f16_value(x), 1.0, f16_value(y)))
}

fn bf16_sum(x: u32, y: u32) -> u32 {
    to_bf16(fma_odd(bf16_value(x), 1.0, bf16_value(y)))
}

fn f16_min(x: u32, y: u32) -> u32 {
    to_f16(f64::from(min32(f16_value(x), f16_value(y))))
}

fn f16_max(x: u32, y: u32) -> u32 {
    to_f16(f64::from(max32(f16_value(x), f16_value(y))))
}

fn bf16_min(x: u32, y: u32) -> u32 {
    to_bf16(f64::from(min32(bf16_value(x), bf16_value(y))))
}

fn bf16_max(x: u32, y: u32) -> u32 {
    to_bf16(f64::from(max32(bf16_value(x), bf16_value(y))))
}

/// Applies an operation to both elements of two pairs.
#[inline(always)]
fn pairs(x: u32, y: u32, each: impl Fn(u32, u32) -> u32) -> u32 {
    each(x >> 16, y >> 16) << 16 | each(x & 0xffff, y & 0xffff)
}

/// Takes the operation.
pub(super) fn operation(f: &mut Form<'_, '_>) -> Result<&'static str, String> {
    let all = ["add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"];
    f.one_of(&all).ok_or_else(|| "an operation is expected".to_owned())
}

/// `atom` and `red`.
pub fn atomic<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let returns = f.ins.opcode.starts_with("atom");
    if !returns && f.flag("async") {
        return sending::reduce(b, f);
    }
    let strong = f.one_of(&["relaxed", "acquire", "release", "acq_rel"]);
    f.ignore(&SCOPES);
    f.ignore(&["noftz", "L2::cache_hint"]);
    let space = space(f);
    let operation = operation(f)?;
    let vector = f.one_of(&["v2", "v4", "v8"]);
    let ty = f.ty()?;
    f.done()?;
    if vector.is_none() && operation != "add" && matches!(ty, F16 | Bf16 | F16x2 | Bf16x2) {
        return Err(format!("atomic `.{operation}` on `{ty:?}` is not known to PTX"));
    }
    let unit = if space == form::SHARED { Unit::Shared } else { Unit::Global };
    let (Handlers { atomic: run, .. }, commutes) = cell(operation, ty, unit)?;
    let first = usize::from(returns);
    let (row, imm, aux) = address(b, f.operand(first)?, space)?;
    if let Some(vector) = vector {
        let release = if matches!(strong, Some("release" | "acq_rel")) { form::RELEASE } else { 0 };
        return atomic_vector(b, f, (vector, ty, returns), (run, operation), (row, imm, aux | release));
    }
    if !returns && matches!(operation, "exch" | "cas") {
        return Err(format!("`red` has no `.{operation}`, which returns the old value"));
    }
    let d = match f.operand(0)? {
        Operand::Sink => Opnd::None,
        d if returns && ty == B128 => b.quad(d)?,
        d if returns => b.dst(d, ty)?,
        _ => Opnd::None,
    };
    let mut source = |at: usize| match f.operand(first + at)? {
        x if ty == B128 => b.quad(x),
        x => b.src(x, ty),
    };
    let x = source(1)?;
    let y = if operation == "cas" { source(2)? } else { Opnd::None };
    let local_order = aux & form::SPACE == form::SHARED;
    // Operations that only this block sees, and sums that commute, need no commit order; a result that is read does.
    let ordered = if local_order || commutes { 0 } else { form::ORDERED };
    let polls = if matches!(operation, "cas" | "exch") || strong.is_some() { form::POLL } else { 0 };
    let release = if matches!(strong, Some("release" | "acq_rel")) { form::RELEASE } else { 0 };
    let aux = aux | 1 | form::STRONG | ordered | polls | release;
    let inst = b.emit(run, [d, row, x, y], u8::from(returns), imm, aux);
    // A block that polls may wait for a sum whose result no thread reads.
    inst.publishes = !local_order;
    inst.polls = returns && !local_order;
    inst.ordered_by_result = returns && !local_order && ordered == 0 && d != Opnd::None;
    Ok(())
}

/// Atomics on the elements of a vector in global memory, one after the other; the vector as a whole is not atomic.
fn atomic_vector<'a>(
    b: &mut Builder<'a, '_>,
    f: &mut Form<'a, '_>,
    (vector, ty, returns): (&str, ScalarType, bool),
    (run, operation): (Handler, &str),
    (row, imm, aux): (Opnd, i64, u32),
) -> Done {
    let count = match (vector, ty) {
        ("v2", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 2,
        ("v4", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 4,
        ("v8", F16 | Bf16) => 8,
        _ => return Err(format!("vectors `.{vector}` of `{ty:?}` are not known to PTX")),
    };
    if !matches!((operation, ty), ("add", _) | ("min" | "max", F16 | Bf16 | F16x2 | Bf16x2)) {
        return Err(format!("atomic `.{operation}` on vectors of `{ty:?}` is not known to PTX"));
    }
    if !matches!(aux & form::SPACE, form::GLOBAL | form::GENERIC) {
        return Err("atomics on vectors are in global memory only".to_owned());
    }
    let parts = |at: usize| match f.operand(at)? {
        Operand::Vector(parts) if parts.len() == count => Ok(parts),
        other => Err(format!("{count} elements are expected, not {other:?}")),
    };
    let sources = parts(usize::from(returns) + 1)?;
    let mut olds = Vec::new();
    for (k, source) in sources.iter().enumerate() {
        let x = b.src(source, ty)?;
        // The destination of one element may be the source of a later one: all destinations are written at the end.
        let old = if returns { Opnd::Reg(b.fresh(class_of(ty)?)) } else { Opnd::None };
        olds.push(old);
        // The first element represents the vector in the counters, and has the vector's address.
        let width = if k == 0 { count as u32 } else { 0 };
        let at = imm + k as i64 * i64::from(ty.size());
        let inst = b.emit(run, [old, row, x], u8::from(returns), at, aux | width | form::STRONG | form::ORDERED);
        (inst.publishes, inst.polls, inst.counts) = (true, returns, u32::from(k == 0));
    }
    if returns {
        for (target, old) in parts(0)?.iter().zip(olds) {
            let d = b.dst(target, ty)?;
            if d == Opnd::None {
                continue;
            }
            moves::copy(b, d, old, false);
            if let Some(last) = b.body.insts.last_mut() {
                last.counts = 0;
            }
        }
    }
    Ok(())
}
