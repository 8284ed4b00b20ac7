//! Executes `st`, for each type: stores elements from registers to memory.

use crate::exec::context::{Context, Handler};
use crate::exec::elements::{Elements, Pointers};
use crate::exec::lanes::{spread, spread_active, spread_apart};
use crate::exec::simd::HostIsa;
use crate::exec::{contiguous, resolve};
use crate::memory::GLOBAL_BASE;
use crate::program::ins::Ins;
use crate::program::row::{Lane, each, instance};

/// Writes the source rows of a store.
///
/// # Safety
///
/// `elements` and `apart` must come from resolving `i`; the loader assigned slots 1 to 4.
#[inline(always)]
unsafe fn put<V: Lane, M: Lane, F: Fn(V) -> M + Copy, const WIDE: bool>(
    cx: &Context<'_>,
    i: &Ins,
    elements: Elements,
    apart: &Pointers,
) -> *const Ins {
    // SAFETY: `elements` and `apart` come from resolving `i`, and the loader assigned the slots.
    unsafe {
        match elements {
            Elements::All(to) => spread::<V, M, F>(cx, i.o[1], to),
            Elements::Active(to) => spread_active::<V, M, F, WIDE>(cx, i.o[1], to),
            Elements::Same(_) => unreachable!("a store is never resolved to one address"),
            Elements::Apart => {
                (0..(i.access().elements()) as usize).for_each(|v| spread_apart::<V, M, F>(cx, i.o[1 + v], apart, v));
            }
            Elements::Done(next) => return next,
        }
    }
    Context::next(i)
}

/// Whether the type is common enough for its own fast path: 32-bit words, and pairs of them.
const fn is_common<M>() -> bool {
    size_of::<M>() >= 4
}

/// Stores elements to global memory within 16 lines; returns false for any other request. `WIDE`: the host has AVX-512.
///
/// # Safety
///
/// The loader assigned the slots for a store.
#[inline(always)]
unsafe fn store_near<V: Lane, M: Lane, F: Fn(V) -> M + Copy, const WIDE: bool>(cx: &mut Context<'_>, i: &Ins) -> bool {
    if size_of::<M>() == 4
        && let Some(to) = contiguous::place_row(cx, i, i.o[0], true)
    {
        // SAFETY: `to` has room for the active lanes' elements; the loader assigned slot 1.
        unsafe { spread_active::<V, M, F, WIDE>(cx, i.o[1], to) };
        return true;
    }
    let Some((base, _)) = contiguous::place_near(cx, i, i.o[0], size_of::<M>() as u64, true) else { return false };
    let (f, offset) = (instance::<F>(), (i.imm as u64).wrapping_sub(GLOBAL_BASE));
    // SAFETY: the active lanes' elements are inside the memory after `base`; the loader assigned slots 0 and 1.
    unsafe {
        let (a, values): (*const u64, *const V) = (cx.at(i.o[0]), cx.at(i.o[1]));
        let pointer = |k: usize| base.wrapping_add((*a.add(k)).wrapping_add(offset) as usize);
        each(cx.mask, |k| pointer(k).cast::<M>().write_unaligned(f(*values.add(k))));
    }
    true
}

/// The handler for one instruction set. Handles contiguous lanes itself and leaves all other requests to separate
/// functions, so that the most frequent case does not pay for their prologues. `$wide`: the set is AVX-512. `$short`:
/// common types have the fast path.
macro_rules! handler {
    ($(#[$feature:meta])* $name:ident, $wide:literal, $short:expr) => {
        $(#[$feature])*
        unsafe fn $name<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            $(#[$feature])*
            #[inline(never)]
            unsafe fn any<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
                // SAFETY: the loader chose the instruction set and created the instruction.
                unsafe {
                    let mut apart = Pointers::new();
 let elements = resolve::$name(cx, i, size_of::<M>() as u64, $short && is_common::<M>(), &mut apart);
                    put::<V, M, F, $wide>(cx, i, elements, &apart)
                }
            }
            $(#[$feature])*
            #[inline(never)]
            unsafe fn near<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
                // SAFETY: same contract as this function.
                unsafe { if store_near::<V, M, F, $wide>(cx, i) { Context::next(i) } else { any::<V, M, F>(cx, i) } }
            }
            if !($short && is_common::<M>()) {
                // SAFETY: same contract as this function.
                return unsafe { any::<V, M, F>(cx, i) };
            }
            let Some(to) = contiguous::place(cx, i, i.o[0], (size_of::<M>() as u64, 1), true) else {
                // SAFETY: same contract as this function.
                return unsafe { near::<V, M, F>(cx, i) };
            };
            // SAFETY: `to` has room for 32 elements; the loader assigned slot 1.
            unsafe { spread::<V, M, F>(cx, i.o[1], to) };
            Context::next(i)
        }
    };
}

handler!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    store_avx512,
    true,
    true
);
handler!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    store_avx2,
    false,
    true
);
handler!(store_base, false, cfg!(not(target_arch = "x86_64")));

/// `st`. Slot 0: address; slots 1 to 4: elements.
pub fn handler<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(isa: HostIsa, _convert: F) -> Handler {
    match isa {
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx512 => store_avx512::<V, M, F>,
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx2 => store_avx2::<V, M, F>,
        HostIsa::Baseline => store_base::<V, M, F>,
    }
}
