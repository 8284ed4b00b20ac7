//! Lane-wise handlers, each compiled for several instruction sets.
//!
//! A handler is made of a shape (how many sources) and a closure (what one lane does). The closures are plain
//! arithmetic; each shape is instantiated for AVX-512, AVX2 and the baseline, and the loader picks by what the
//! processor has. LLVM turns the loops over 32 lanes into vector code. The closures capture nothing, so a function
//! pointer stands for the whole handler.

use std::ptr::NonNull;

use super::context::Context;
use super::row::{Handler, Ins, LANES, Lane, Row};

/// Instruction sets of the host that handlers are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostIsa {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl HostIsa {
    /// The widest that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

/// A value of a closure type that captures nothing.
#[inline(always)]
pub fn instance<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a lane closure captures nothing") };
    // SAFETY: reading a type of size zero touches no bytes, and a `Copy` closure has no invariant beyond its type; one
    // value of it was passed to the shape's constructor, so the type is inhabited.
    unsafe { NonNull::<F>::dangling().read() }
}

/// Compiles `$body` for every instruction set and adds the constructor `$name`, which takes the closure.
macro_rules! shape {
    ($(#[$doc:meta])* $name:ident, $body:ident, $avx512:ident, $avx2:ident, $base:ident; <$($t:ident),*>; ($($arg:ident),*) -> $ret:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn $avx512<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: forwarded from the caller.
            unsafe { $body::<$($t,)* F>(cx, i) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn $avx2<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: forwarded from the caller.
            unsafe { $body::<$($t,)* F>(cx, i) }
        }

        unsafe fn $base<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: forwarded from the caller.
            unsafe { $body::<$($t,)* F>(cx, i) }
        }

        $(#[$doc])*
        pub fn $name<$($t: Lane,)* F: Fn($($arg),*) -> $ret + Copy>(isa: HostIsa, _lane: F) -> Handler {
            match isa {
                #[cfg(target_arch = "x86_64")]
                HostIsa::Avx512 => $avx512::<$($t,)* F>,
                #[cfg(target_arch = "x86_64")]
                HostIsa::Avx2 => $avx2::<$($t,)* F>,
                HostIsa::Baseline => $base::<$($t,)* F>,
            }
        }
    };
}

/// Writes a row where lanes are active.
#[inline(always)]
fn write<D: Lane>(cx: &mut Context<'_>, i: &Ins, lane: impl Fn(usize) -> D) {
    let full = cx.mask == u32::MAX;
    let active = cx.active;
    // SAFETY: slot 0 of an instruction of these shapes is a frame row of type `D`; see `Context::row_mut`.
    let d = unsafe { cx.row_mut::<D>(i.o[0]) };
    if full {
        for k in 0..LANES {
            d.0[k] = lane(k);
        }
    } else {
        for k in 0..LANES {
            d.0[k] = D::blend(active.0[k], lane(k), d.0[k]);
        }
    }
}

#[inline(always)]
unsafe fn unary_body<D: Lane, A: Lane, F: Fn(A) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader gives sources of the shape's types.
    let a: Row<A> = unsafe { cx.row(i.o[1]) };
    write(cx, i, |k| f(a.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn binary_body<D: Lane, A: Lane, B: Lane, F: Fn(A, B) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader gives sources of the shape's types.
    let (a, b): (Row<A>, Row<B>) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2])) };
    write(cx, i, |k| f(a.0[k], b.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn ternary_body<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(A, B, C) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader gives sources of the shape's types.
    let (a, b, c): (Row<A>, Row<B>, Row<C>) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.row(i.o[3])) };
    write(cx, i, |k| f(a.0[k], b.0[k], c.0[k]));
    Context::next(i)
}

#[inline(always)]
unsafe fn quaternary_body<D: Lane, A: Lane, B: Lane, C: Lane, E: Lane, F: Fn(A, B, C, E) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader gives sources of the shape's types.
    let (a, b, c, e): (Row<A>, Row<B>, Row<C>, Row<E>) =
        unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.row(i.o[3]), cx.row(i.o[4])) };
    write(cx, i, |k| f(a.0[k], b.0[k], c.0[k], e.0[k]));
    Context::next(i)
}

/// Bits of `aux` of a comparison: how the result meets the predicate in slot 4.
pub const COMBINE_AND: u32 = 1;
pub const COMBINE_OR: u32 = 2;
pub const COMBINE_XOR: u32 = 3;
/// The predicate in slot 4 is negated first.
pub const COMBINE_NOT: u32 = 4;

#[inline(always)]
unsafe fn compare_body<A: Lane, F: Fn(A, A) -> bool + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let f = instance::<F>();
    // SAFETY: the loader gives sources of the shape's types; slots 0 and 1 are predicates.
    unsafe {
        let (a, b): (Row<A>, Row<A>) = (cx.row(i.o[2]), cx.row(i.o[3]));
        let mut bits = 0_u32;
        for k in 0..LANES {
            bits |= u32::from(f(a.0[k], b.0[k])) << k;
        }
        if i.aux == 0 {
            cx.set_pred(i.o[0], bits);
        } else {
            let other = cx.pred(i.o[4]) ^ if i.aux & COMBINE_NOT == 0 { 0 } else { u32::MAX };
            let combine = |x: u32| match i.aux & 3 {
                COMBINE_AND => x & other,
                COMBINE_OR => x | other,
                COMBINE_XOR => x ^ other,
                _ => x,
            };
            cx.set_pred(i.o[0], combine(bits));
            if i.o[1] != super::row::Slot::NONE {
                cx.set_pred(i.o[1], combine(!bits));
            }
            return Context::next(i);
        }
        if i.o[1] != super::row::Slot::NONE {
            cx.set_pred(i.o[1], !bits);
        }
    }
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
shape!(/// A comparison into one predicate or two, combined with a third as `aux` says.
    compare, compare_body, compare_avx512, compare_avx2, compare_base; <A>; (A, A) -> bool);
