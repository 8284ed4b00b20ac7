//! The commonest loads and stores, performed the short way where [`straight`] says that it does.
//!
//! Each says whether it was done; where it was not, nothing was done and nothing counted, and
//! [`access`](super::access) does it.

use super::access::form;
use super::context::Context;
use super::lanes::{apart, gather, spread};
use super::row::{Ins, LANES, Lane, Row, Slot, flags};
use super::shapes::instance;
use super::{straight, vector};
use crate::memory::GLOBAL_BASE;

/// Loads a parameter of the kernel at a known offset; false where it has to be looked at as any other access.
///
/// # Safety
/// The slots are those that the loader gives a load.
#[inline(always)]
pub unsafe fn parameter<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> bool {
    let (at, f) = (i.imm as u64, instance::<F>());
    let bytes = size_of::<M>() as u64;
    let aligned = at & (bytes - 1) == 0;
    if i.aux & form::VECTOR != 1 || !aligned || at.saturating_add(bytes) > cx.launch.params.len() as u64 {
        return false;
    }
    // SAFETY: the range lies in the parameters; slot 0 is the loader's.
    unsafe {
        let value = f(cx.launch.params.as_ptr().add(at as usize).cast::<M>().read_unaligned());
        if cx.mask == u32::MAX {
            cx.row_mut::<D>(i.o[0]).0 = [value; LANES];
        } else {
            let d: *mut D = cx.at(i.o[0]);
            (0..LANES).filter(|&k| cx.on(k)).for_each(|k| *d.add(k) = value);
        }
    }
    true
}

/// Loads the short way; false where that does not do.
///
/// # Safety
/// The slots are those that the loader gives a load.
#[inline(always)]
pub unsafe fn load_quick<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &mut Context<'_>, i: &Ins) -> bool {
    let Some(from) = straight::place(cx, i, i.o[4], (size_of::<M>() as u64, 1), false) else { return false };
    // SAFETY: 32 elements lie there; slot 0 is the loader's.
    unsafe { gather::<D, M, F>(cx, i.o[0], from) };
    true
}

/// Loads vectors that lie side by side; false where they do not. `WIDE` says that the processor has AVX-512.
///
/// # Safety
/// The slots are those that the loader gives a load.
#[inline(always)]
unsafe fn load_vectors<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const N: usize, const WIDE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> bool {
    let bytes = (size_of::<M>() * N) as u64;
    let Some(from) = straight::place(cx, i, i.o[4], (bytes, N as u32), false) else { return false };
    for v in (0..N).filter(|&v| i.o[v] != Slot::NONE) {
        #[cfg(target_arch = "x86_64")]
        if WIDE && size_of::<M>() == 4 {
            // SAFETY: 32 vectors of four-byte elements lie there; the processor has AVX-512 where `WIDE` says so; slots 0
            // to 3 are the loader's.
            unsafe {
                let elements: Row<M> = vector::every_avx512::<M, N>(from, v);
                let (f, d) = (instance::<F>(), cx.row_mut::<D>(i.o[v]));
                (0..LANES).for_each(|k| d.0[k] = f(elements.0[k]));
            }
            continue;
        }
        // SAFETY: 32 vectors lie there; slots 0 to 3 are the loader's.
        unsafe { apart::<D, M, F, N>(cx, i.o[v], from.cast::<M>().add(v)) };
    }
    true
}

/// Loads from global memory, lane by lane; false where the request is none for it. `WIDE` says that the processor has
/// AVX-512.
///
/// # Safety
/// The slots are those that the loader gives a load.
#[inline(always)]
pub unsafe fn load_near<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const WIDE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> bool {
    // SAFETY: forwarded from the caller.
    unsafe {
        match i.aux & form::VECTOR {
            1 => {}
            2 => return load_vectors::<D, M, F, 2, WIDE>(cx, i),
            _ => return load_vectors::<D, M, F, 4, WIDE>(cx, i),
        }
    }
    if size_of::<M>() == 4
        && let Some(from) = straight::place_row(cx, i, i.o[4], false)
    {
        // SAFETY: the active lanes' elements lie there; slot 0 is the loader's.
        unsafe { gather_active::<D, M, F, WIDE>(cx, i.o[0], from) };
        return true;
    }
    let Some((base, row)) = straight::place_near(cx, i, i.o[4], size_of::<M>() as u64, false) else { return false };
    let f = instance::<F>();
    let offset = (i.imm as u64).wrapping_sub(GLOBAL_BASE);
    if row {
        // SAFETY: the active lanes' elements lie there; the slots are the loader's.
        unsafe {
            let first = (cx.mask.trailing_zeros() & 31) as usize;
            let at = (*cx.at::<u64>(i.o[4]).add(first)).wrapping_add(offset) as usize;
            let from = base.wrapping_add(at).cast::<M>().wrapping_sub(first).cast();
            gather_active::<D, M, F, WIDE>(cx, i.o[0], from);
        }
        return true;
    }
    // SAFETY: the active lanes' elements lie behind `base`; slots 0 and 4 are the loader's. Should they be one row, a
    // lane's address is read before its element is written.
    unsafe {
        let (a, d): (*const u64, *mut D) = (cx.at(i.o[4]), cx.at(i.o[0]));
        let mut lanes = cx.mask;
        while lanes != 0 {
            let k = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            *d.add(k) = f(base.wrapping_add((*a.add(k)).wrapping_add(offset) as usize).cast::<M>().read_unaligned());
        }
    }
    true
}

/// Fills the active lanes of a row of global memory's elements: lane 0's lies at `from`, or would lie there. `WIDE` says
/// that the processor has AVX-512.
///
/// # Safety
/// The active lanes' elements can be read; the slot is a row of the frame.
#[inline(always)]
unsafe fn gather_active<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const WIDE: bool>(
    cx: &mut Context<'_>,
    slot: Slot,
    from: *const u8,
) {
    let f = instance::<F>();
    // SAFETY: by the caller's promise. Device memory has more than a row before the first allocation and behind the last
    // one, so that all 32 elements can be read; what lies where no lane is active is dropped.
    unsafe {
        let from: [M; LANES] = from.cast::<[M; LANES]>().read_unaligned();
        #[cfg(target_arch = "x86_64")]
        if WIDE && size_of::<D>() == 4 {
            let mut row = Row([D::default(); LANES]);
            (0..LANES).for_each(|k| row.0[k] = f(from[k]));
            return vector::put_avx512(cx.bases.register(slot), &row, cx.mask);
        }
        let (on, d) = (flags(cx.mask), cx.row_mut::<D>(slot));
        for k in 0..LANES {
            d.0[k] = d.0[k].blend(f(from[k]), on[k]);
        }
    }
}

/// Stores the short way; false where that does not do.
///
/// # Safety
/// The slots are those that the loader gives a store.
#[inline(always)]
pub unsafe fn store_quick<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> bool {
    let Some(to) = straight::place(cx, i, i.o[0], (size_of::<M>() as u64, 1), true) else { return false };
    // SAFETY: there is room for 32 elements; slot 1 is the loader's.
    unsafe { spread::<V, M, F>(cx, i.o[1], to) };
    true
}

/// Stores to global memory, lane by lane; false where the request is none for it. `WIDE` says that the processor has
/// AVX-512.
///
/// # Safety
/// The slots are those that the loader gives a store.
#[inline(always)]
pub unsafe fn store_near<V: Lane, M: Lane, F: Fn(V) -> M + Copy, const WIDE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> bool {
    let f = instance::<F>();
    #[cfg(target_arch = "x86_64")]
    if WIDE
        && size_of::<M>() == 4
        && let Some(to) = straight::place_row(cx, i, i.o[0], true)
    {
        // SAFETY: there is room for the active lanes' elements; the processor has AVX-512 where `WIDE` says so; slot 1 is
        // the loader's.
        unsafe {
            let values: Row<V> = cx.row(i.o[1]);
            let mut elements = Row([M::default(); LANES]);
            (0..LANES).for_each(|k| elements.0[k] = f(values.0[k]));
            vector::put_avx512(to, &elements, cx.mask);
        }
        return true;
    }
    let Some((base, _)) = straight::place_near(cx, i, i.o[0], size_of::<M>() as u64, true) else { return false };
    let offset = (i.imm as u64).wrapping_sub(GLOBAL_BASE);
    // SAFETY: there is room for the active lanes' elements behind `base`; slots 0 and 1 are the loader's.
    unsafe {
        let (a, values): (*const u64, *const V) = (cx.at(i.o[0]), cx.at(i.o[1]));
        let mut lanes = cx.mask;
        while lanes != 0 {
            let k = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let to = base.wrapping_add((*a.add(k)).wrapping_add(offset) as usize).cast::<M>();
            to.write_unaligned(f(*values.add(k)));
        }
    }
    true
}
