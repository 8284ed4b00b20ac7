//! Builds lane-by-lane handlers from a shape and a closure.
//!
//! The shape determines the number of sources, the closure what one lane does. Closures capture nothing, so a function
//! pointer represents the whole handler. There are two families with the same shapes:
//!
//! - here, the closure runs for one active lane after another. These handlers are small, and hundreds of operations use
//!   them;
//! - in [`vector`](super::vector), all 32 lanes run at once, and each handler is compiled for every instruction set.
//!   This is for the few operations in which kernels spend their time; for the others it would only slow down builds.

use crate::exec::context::{Context, Handler};
use crate::exec::control::go_on;
use crate::exec::simd::HostIsa;
use crate::program::aux::Combination;
use crate::program::ins::Ins;
use crate::program::row::{Lane, each, instance};

/// Adds the constructor `$name` of the handler `$body`. It ignores the instruction set, which it takes only so that
/// both families have the same signature.
macro_rules! shape {
    ($(#[$doc:meta])* $name:ident, $body:ident; <$($t:ident),*>; ($($arg:ident),*) -> $ret:ty) => {
        $(#[$doc])*
        pub fn $name<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(_isa: HostIsa, _lane: F) -> Handler {
            $body::<$($t,)* F>
        }
    };
}

unsafe fn unary_body<D: Lane, A: Lane, F: Fn(A) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned rows of the shape's types; a lane is below 32.
    unsafe {
        let (d, a) = (cx.at::<D>(i.o[0]), cx.at::<A>(i.o[1]));
        each(cx.mask, |k| *d.add(k) = f(*a.add(k)));
    }
    Context::next(i)
}

unsafe fn binary_body<D: Lane, A: Lane, B: Lane, F: Fn(A, B) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned rows of the shape's types; a lane is below 32.
    unsafe {
        let (d, a, b) = (cx.at::<D>(i.o[0]), cx.at::<A>(i.o[1]), cx.at::<B>(i.o[2]));
        each(cx.mask, |k| *d.add(k) = f(*a.add(k), *b.add(k)));
    }
    Context::next(i)
}

unsafe fn ternary_body<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(A, B, C) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned rows of the shape's types; a lane is below 32.
    unsafe {
        let (d, a, b, c) = (cx.at::<D>(i.o[0]), cx.at::<A>(i.o[1]), cx.at::<B>(i.o[2]), cx.at::<C>(i.o[3]));
        each(cx.mask, |k| *d.add(k) = f(*a.add(k), *b.add(k), *c.add(k)));
    }
    Context::next(i)
}

unsafe fn quaternary_body<D: Lane, A: Lane, B: Lane, C: Lane, E: Lane, F: Fn(A, B, C, E) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned rows of the shape's types; a lane is below 32.
    unsafe {
        let (d, a, b) = (cx.at::<D>(i.o[0]), cx.at::<A>(i.o[1]), cx.at::<B>(i.o[2]));
        let (c, e) = (cx.at::<C>(i.o[3]), cx.at::<E>(i.o[4]));
        each(cx.mask, |k| *d.add(k) = f(*a.add(k), *b.add(k), *c.add(k), *e.add(k)));
    }
    Context::next(i)
}

/// A division. The closure's third argument means that no divisor is known to be a power of two.
unsafe fn divide_body<F: Fn(u32, u32, u32) -> u32 + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned 32-bit rows; a lane is below 32.
    unsafe {
        let (d, a, b) = (cx.at::<u32>(i.o[0]), cx.at::<u32>(i.o[1]), cx.at::<u32>(i.o[2]));
        each(cx.mask, |k| *d.add(k) = f(*a.add(k), *b.add(k), u32::MAX));
    }
    Context::next(i)
}

/// Selects slot 1 or slot 2, according to the predicate in slot 3.
unsafe fn select_body<A: Lane, F: Fn(A) -> A + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader assigned two rows of one type and a predicate; a lane is below 32.
    unsafe {
        let (d, a, b) = (cx.at::<A>(i.o[0]), cx.at::<A>(i.o[1]), cx.at::<A>(i.o[2]));
        let chosen = cx.pred(i.o[3]);
        each(cx.mask, |k| *d.add(k) = f(if chosen >> k & 1 == 1 { *a.add(k) } else { *b.add(k) }));
    }
    Context::next(i)
}

/// Bits of a comparison's `aux` with the logic that combines the result with the predicate in slot 4.
const COMBINE: u32 = 3;
pub const COMBINE_AND: u32 = 1;
pub const COMBINE_OR: u32 = 2;
pub const COMBINE_XOR: u32 = 3;

unsafe fn compare_body<A: Lane, F: Fn(A, A) -> bool + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    let mut bits = 0_u32;
    // SAFETY: the loader assigned sources of the shape's types; a lane is below 32.
    unsafe {
        let (a, b) = (cx.at::<A>(i.o[2]), cx.at::<A>(i.o[3]));
        each(cx.mask, |k| bits |= u32::from(f(*a.add(k), *b.add(k))) << k);
    }
    decide(cx, i, bits);
    // SAFETY: the loader sets `BEFORE_BRANCH` only if `bra_if` follows.
    unsafe { go_on(cx, i) }
}

/// Writes the result of a comparison to the predicates in slots 0 and 1, combined according to `aux`.
#[inline(always)]
pub fn decide(cx: &mut Context<'_>, i: &Ins, bits: u32) {
    let (mut yes, mut no) = (bits, !bits);
    // SAFETY: slots 0 and 1 are predicates, as is slot 4 if `aux` says so.
    unsafe {
        if i.aux & (COMBINE | Combination::NEGATED.bits()) != 0 {
            let other = cx.pred(i.o[4]) ^ if i.has(Combination::NEGATED) { u32::MAX } else { 0 };
            let combine = |x: u32| match i.aux & COMBINE {
                COMBINE_AND => x & other,
                COMBINE_OR => x | other,
                COMBINE_XOR => x ^ other,
                _ => x,
            };
            (yes, no) = (combine(yes), combine(no));
        }
        cx.set_pred(i.o[0], yes);
        cx.set_pred(i.o[1], no);
    }
}

shape!(/// One source.
    unary, unary_body; <D, A>; (A) -> D);
shape!(/// Two sources.
    binary, binary_body; <D, A, B>; (A, B) -> D);
shape!(/// Three sources.
    ternary, ternary_body; <D, A, B, C>; (A, B, C) -> D);
shape!(/// Four sources.
    quaternary, quaternary_body; <D, A, B, C, E>; (A, B, C, E) -> D);
shape!(/// A comparison that sets one or two predicates, combined with a third according to `aux`.
    compare, compare_body; <A>; (A, A) -> bool);
shape!(/// A division; see `divide_body`.
    divide, divide_body; <>; (u32, u32, u32) -> u32);
shape!(/// Selects slot 1 or slot 2, according to the predicate in slot 3, and applies the closure to it.
    select, select_body; <A>; (A) -> A);
