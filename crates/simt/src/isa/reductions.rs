//! The operations of atomics, of reductions sent within a cluster, and of bulk reductions.

use ScalarType::{B32, B64, B128, Bf16, Bf16x2, F16, F16x2, F32, F64, S32, S64, U16, U32, U64};

use crate::exec::arith::{canon, fma_odd, ftz, max32, min32};
use crate::exec::cell::Cell;
use crate::exec::context::Handler;
use crate::exec::{atomic, bulk, sending};
use crate::isa::decode::Form;
use crate::isa::half::{bf16_value, f16_value, to_bf16, to_f16};
use ptx_parser::ScalarType;

/// Handlers of an operation, for each kind of instruction that uses it.
#[derive(Debug, Clone, Copy)]
pub struct Handlers {
    /// For `atom` and `red`.
    pub atomic: Handler,
    /// For `red.async`.
    pub sent: Handler,
    /// For `cp.reduce.async.bulk`.
    pub bulk: Handler,
}

/// Returns the handlers of an operation on `M`. The closure must capture nothing.
fn handlers<M: Cell, F: Fn(M, M, M) -> M + Copy>(_operation: F) -> Handlers {
    Handlers { atomic: atomic::atomic::<M, F>, sent: sending::reduce_async::<M, F>, bulk: bulk::bulk_reduce::<M, F> }
}

/// The unit that performs an operation. Units differ in how they treat floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionUnit {
    /// Shared memory.
    Shared,
    /// Global memory, which flushes subnormals and returns an f64 NaN unchanged.
    Global,
    /// A bulk copy to global memory, which does not flush subnormals.
    Bulk,
}

/// Returns the handlers of an operation, and whether the operation commutes with itself.
pub fn cell(operation: &str, ty: ScalarType, unit: ReductionUnit) -> Result<(Handlers, bool), String> {
    macro_rules! cell {
        ($t:ty, |$old:ident, $b:ident, $c:ident| $body:expr) => {
            handlers::<$t, _>(|$old: $t, $b: $t, $c: $t| {
                let _ = ($old, $c);
                $body
            })
        };
    }
    macro_rules! float {
        ($t:ty, $f:ty, |$x:ident, $y:ident| $body:expr) => {
            handlers::<$t, _>(|old: $t, b: $t, _: $t| {
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
        ("add", F32) if unit == ReductionUnit::Global => (float!(u32, f32, |x, y| ftz(canon(ftz(x) + ftz(y)))), false),
        ("add", F32) => (float!(u32, f32, |x, y| canon(x + y)), false),
        ("add", F64) if unit == ReductionUnit::Shared => (float!(u64, f64, |x, y| x + y), false),
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

/// Applies an operation to the high halves and to the low halves of two words.
#[inline(always)]
fn pairs(x: u32, y: u32, each: impl Fn(u32, u32) -> u32) -> u32 {
    each(x >> 16, y >> 16) << 16 | each(x & 0xffff, y & 0xffff)
}

pub fn operation(f: &mut Form<'_, '_>) -> Result<&'static str, String> {
    let all = ["add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"];
    f.one_of(&all).ok_or_else(|| "expected an operation".to_owned())
}
