//! Executes `ld`, for each type: loads elements from memory to registers.

use crate::exec::context::{Context, Handler};
use crate::exec::elements::{Elements, Pointers};
use crate::exec::lanes::{fill, gather, gather_active, gather_apart, gather_vectors};
use crate::exec::simd::HostIsa;
use crate::exec::{contiguous, resolve};
use crate::memory::GLOBAL_BASE;
use crate::program::ins::{Ins, Slot};
use crate::program::row::{Lane, each, instance};

/// Fills the destination rows of a load.
///
/// # Safety
///
/// `elements` and `apart` must come from resolving `i`; the loader assigned slots 0 to 3.
#[inline(always)]
unsafe fn fetch<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const WIDE: bool>(
    cx: &Context<'_>,
    i: &Ins,
    elements: Elements,
    apart: &Pointers,
) -> *const Ins {
    let count = (i.access().elements()) as usize;
    let slots = i.o[..count.min(4)].iter().enumerate().filter(|&(_, &slot)| slot != Slot::NONE);
    // SAFETY: `elements` and `apart` come from resolving `i`, and the loader assigned the slots.
    unsafe {
        match elements {
            Elements::All(from) if count == 1 => gather::<D, M, F>(cx, i.o[0], from),
            Elements::All(from) if count == 2 => gather_vectors::<D, M, F, 2, WIDE>(cx, i, from),
            Elements::All(from) => gather_vectors::<D, M, F, 4, WIDE>(cx, i, from),
            Elements::Active(from) => gather_active::<D, M, F, WIDE>(cx, i.o[0], from),
            Elements::Same(from) => slots.for_each(|(v, &slot)| {
                fill(cx, slot, instance::<F>()(from.cast::<M>().add(v).read_unaligned()));
            }),
            Elements::Apart => slots.for_each(|(v, &slot)| gather_apart::<D, M, F>(cx, slot, apart, v)),
            Elements::Done(next) => return next,
        }
    }
    Context::next(i)
}

/// Whether the type is common enough for its own fast path: 32-bit words, and pairs of them.
const fn is_common<D, M>() -> bool {
    size_of::<M>() >= 4 && size_of::<D>() == size_of::<M>()
}

/// Loads contiguous vectors; returns false if they are not contiguous.
///
/// # Safety
///
/// The loader assigned the slots for a load.
#[inline(always)]
unsafe fn load_vectors<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const N: usize, const WIDE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> bool {
    let bytes = (size_of::<M>() * N) as u64;
    let Some(from) = contiguous::place(cx, i, i.o[4], (bytes, N as u32), false) else { return false };
    // SAFETY: `from` points to 32 vectors; the loader assigned slots 0 to 3.
    unsafe { gather_vectors::<D, M, F, N, WIDE>(cx, i, from) };
    true
}

/// Loads contiguous vectors, or elements of global memory within 16 lines; returns false for any other request. `WIDE`:
/// the host has AVX-512.
///
/// # Safety
///
/// The loader assigned the slots for a load.
#[inline(always)]
unsafe fn load_near<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const WIDE: bool>(cx: &mut Context<'_>, i: &Ins) -> bool {
    let bytes = size_of::<M>();
    // SAFETY: same contract as this function.
    unsafe {
        match i.access().elements() {
            1 => {}
            2 => return load_vectors::<D, M, F, 2, WIDE>(cx, i),
            _ => return load_vectors::<D, M, F, 4, WIDE>(cx, i),
        }
    }
    if bytes == 4
        && let Some(from) = contiguous::place_row(cx, i, i.o[4], false)
    {
        // SAFETY: the active lanes' elements are at `from`; the loader assigned slot 0.
        unsafe { gather_active::<D, M, F, WIDE>(cx, i.o[0], from) };
        return true;
    }
    let Some((base, row)) = contiguous::place_near(cx, i, i.o[4], bytes as u64, false) else { return false };
    let (f, offset) = (instance::<F>(), (i.imm as u64).wrapping_sub(GLOBAL_BASE));
    // SAFETY: the active lanes' elements are inside the memory after `base`; the loader assigned slots 0 and 4. If both
    // are the same row, each lane's address is read before its element is written.
    unsafe {
        let (a, d): (*const u64, *mut D) = (cx.at(i.o[4]), cx.at(i.o[0]));
        let pointer = |k: usize| base.wrapping_add((*a.add(k)).wrapping_add(offset) as usize);
        if row {
            let first = cx.first_lane();
            gather_active::<D, M, F, WIDE>(cx, i.o[0], pointer(first).wrapping_sub(first * bytes));
        } else {
            each(cx.mask, |k| *d.add(k) = f(pointer(k).cast::<M>().read_unaligned()));
        }
    }
    true
}

/// The handler for one instruction set. Handles contiguous lanes itself and leaves all other requests to separate
/// functions, so that the most frequent case does not pay for their prologues. `$wide`: the set is AVX-512. `$short`:
/// common types have the fast path.
macro_rules! handler {
    ($(#[$feature:meta])* $name:ident, $wide:literal, $short:expr) => {
        $(#[$feature])*
        unsafe fn $name<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            $(#[$feature])*
            #[inline(never)]
            unsafe fn any<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
                // SAFETY: the loader chose the instruction set and created the instruction.
                unsafe {
                    let mut apart = Pointers::new();
 let elements = resolve::$name(cx, i, size_of::<M>() as u64, $short && is_common::<D, M>(), &mut apart);
                    fetch::<D, M, F, $wide>(cx, i, elements, &apart)
                }
            }
            $(#[$feature])*
            #[inline(never)]
            unsafe fn near<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
                // SAFETY: same contract as this function.
                unsafe { if load_near::<D, M, F, $wide>(cx, i) { Context::next(i) } else { any::<D, M, F>(cx, i) } }
            }
            if !($short && is_common::<D, M>()) {
                // SAFETY: same contract as this function.
                return unsafe { any::<D, M, F>(cx, i) };
            }
            let Some(from) = contiguous::place(cx, i, i.o[4], (size_of::<M>() as u64, 1), false) else {
                // SAFETY: same contract as this function.
                return unsafe { near::<D, M, F>(cx, i) };
            };
            // SAFETY: `from` points to 32 elements; the loader assigned slot 0.
            unsafe { gather::<D, M, F>(cx, i.o[0], from) };
            Context::next(i)
        }
    };
}

handler!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    load_avx512,
    true,
    true
);
handler!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    load_avx2,
    false,
    true
);
handler!(load_base, false, cfg!(not(target_arch = "x86_64")));

/// `ld`. Slots 0 to 3: elements; slot 4: address.
pub fn handler<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(isa: HostIsa, _convert: F) -> Handler {
    match isa {
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx512 => load_avx512::<D, M, F>,
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx2 => load_avx2::<D, M, F>,
        HostIsa::Baseline => load_base::<D, M, F>,
    }
}
