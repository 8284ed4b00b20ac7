//! The shapes of [`shapes`] for the most frequent operations, with 32 lanes at once.
//!
//! Each handler is compiled for AVX-512 and AVX2, and the loader picks one for the host. An x86 processor with neither
//! (from before 2013) gets the handler from [`shapes`]; other processors get the baseline. LLVM vectorises the loops
//! over lanes; [`simd`] has the operations that LLVM does not vectorise.

use crate::exec::context::{Context, Handler};
use crate::exec::control::go_on;
use crate::exec::shapes::decide;
use crate::exec::simd::HostIsa;
use crate::exec::{shapes, simd};
use crate::program::ins::Ins;
use crate::program::row::{Flags, LANES, Lane, Row, flags, instance};

/// Compiles `$body` for every instruction set and adds the constructor `$name`, which takes the closure.
macro_rules! shape {
    (
        $(#[$doc:meta])* $name:ident, $body:ident, $avx512:ident, $avx2:ident, $base:ident; <$($t:ident),*>;
        ($($arg:ident),*) -> $ret:ty
    ) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn $avx512<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: same contract as this function.
            unsafe { $body::<$($t,)* F>(cx, i, |flags| simd::bits_avx512(flags)) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn $avx2<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: same contract as this function.
            unsafe { $body::<$($t,)* F>(cx, i, |flags| simd::bits_avx2(flags)) }
        }

        #[cfg(not(target_arch = "x86_64"))]
        unsafe fn $base<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: same contract as this function.
            unsafe { $body::<$($t,)* F>(cx, i, simd::bits_base) }
        }

        $(#[$doc])*
        pub fn $name<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(isa: HostIsa, lane: F) -> Handler {
            match isa {
                #[cfg(target_arch = "x86_64")]
                HostIsa::Avx512 => $avx512::<$($t,)* F>,
                #[cfg(target_arch = "x86_64")]
                HostIsa::Avx2 => $avx2::<$($t,)* F>,
                #[cfg(target_arch = "x86_64")]
                HostIsa::Baseline => shapes::$name(isa, lane),
                #[cfg(not(target_arch = "x86_64"))]
                HostIsa::Baseline => {
                    let _ = lane;
                    $base::<$($t,)* F>
                }
            }
        }
    };
}

/// Writes the active lanes of a row.
#[inline(always)]
fn write<D: Lane>(cx: &mut Context<'_>, i: &Ins, lane: impl Fn(usize) -> D) {
    let mask = cx.mask;
    // SAFETY: in these shapes, slot 0 is a register row of type `D`; see `Context::row_mut`.
    let d = unsafe { cx.row_mut::<D>(i.o[0]) };
    if mask == u32::MAX {
        for k in 0..LANES {
            d.0[k] = lane(k);
        }
    } else {
        for k in 0..LANES {
            let value = lane(k);
            d.0[k] = if mask & (1 << k) != 0 { value } else { d.0[k] };
        }
    }
}

#[inline(always)]
unsafe fn unary_body<D: Lane, A: Lane, F: Fn(A) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned sources of the shape's types.
    let a: Row<A> = unsafe { cx.row(i.o[1]) };
    write(cx, i, |k| f(a.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn binary_body<D: Lane, A: Lane, B: Lane, F: Fn(A, B) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned sources of the shape's types.
    let (a, b): (Row<A>, Row<B>) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2])) };
    write(cx, i, |k| f(a.0[k], b.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn ternary_body<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(A, B, C) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned sources of the shape's types.
    let (a, b, c): (Row<A>, Row<B>, Row<C>) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.row(i.o[3])) };
    write(cx, i, |k| f(a.0[k], b.0[k], c.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn quaternary_body<D: Lane, A: Lane, B: Lane, C: Lane, E: Lane, F: Fn(A, B, C, E) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned sources of the shape's types.
    let (a, b, c, e): (Row<A>, Row<B>, Row<C>, Row<E>) =
        unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.row(i.o[3]), cx.row(i.o[4])) };
    write(cx, i, |k| f(a.0[k], b.0[k], c.0[k], e.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn compare_body<A: Lane, F: Fn(A, A) -> bool + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    bits: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned sources of the shape's types.
    let (a, b): (Row<A>, Row<A>) = unsafe { (cx.row(i.o[2]), cx.row(i.o[3])) };
    let mut flags = [0; LANES];
    for (k, flag) in flags.iter_mut().enumerate() {
        *flag = if f(a.0[k], b.0[k]) { -1 } else { 0 };
    }
    decide(cx, i, bits(&flags));
    // SAFETY: the loader sets `BEFORE_BRANCH` only if `bra_if` follows.
    unsafe { go_on(cx, i) }
}

/// A division. The closure's third argument is the exponent if all lanes divide by the same power of two, otherwise
/// [`u32::MAX`].
#[inline(always)]
unsafe fn divide_body<F: Fn(u32, u32, u32) -> u32 + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned 32-bit sources.
    let (a, b, first): (Row<u32>, Row<u32>, u32) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.first(i.o[2])) };
    let differ = b.0.iter().fold(0, |bits, divisor| bits | (divisor ^ first));
    if differ == 0 && first.is_power_of_two() {
        let shift = first.trailing_zeros() & 31;
        write(cx, i, |k| f(a.0[k], first, shift));
    } else {
        write(cx, i, |k| f(a.0[k], b.0[k], u32::MAX));
    }
    Context::next(i)
}

/// Selects slot 1 or slot 2, according to the predicate in slot 3. The closure is applied to the selected value.
#[inline(always)]
unsafe fn select_body<A: Lane, F: Fn(A) -> A + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    _: impl Fn(&Flags) -> u32,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned two rows of one type and a predicate.
    let (a, b, p): (Row<A>, Row<A>, u32) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.pred(i.o[3])) };
    let chosen = flags(p);
    write(cx, i, |k| f(b.0[k].blend(a.0[k], chosen[k])));
    Context::next(i)
}

shape!(/// One source.
    unary, unary_body, unary_avx512, unary_avx2, unary_base; <D, A>; (A) -> D);
shape!(/// Two sources.
    binary, binary_body, binary_avx512, binary_avx2, binary_base; <D, A, B>; (A, B) -> D);
shape!(/// Three sources.
    ternary, ternary_body, ternary_avx512, ternary_avx2, ternary_base; <D, A, B, C>; (A, B, C) -> D);
shape!(/// Four sources.
    quaternary, quaternary_body, quaternary_avx512, quaternary_avx2, quaternary_base;
    <D, A, B, C, E>; (A, B, C, E) -> D);
shape!(/// A comparison that sets one or two predicates, combined with a third according to `aux`.
    compare, compare_body, compare_avx512, compare_avx2, compare_base; <A>; (A, A) -> bool);
shape!(/// A division; see `divide_body`.
    divide, divide_body, divide_avx512, divide_avx2, divide_base; <>; (u32, u32, u32) -> u32);
shape!(/// Selects slot 1 or slot 2, according to the predicate in slot 3, and applies the closure to it.
    select, select_body, select_avx512, select_avx2, select_base; <A>; (A) -> A);
