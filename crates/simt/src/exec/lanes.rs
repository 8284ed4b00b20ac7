//! Moves elements between memory and the lanes of a row, once the request has been checked.

use crate::exec::context::Context;
use crate::exec::elements::Pointers;
use crate::exec::simd;
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Lane, Row, each, flags, instance};

/// Returns the number of lanes. Hidden from the compiler, which would otherwise unroll 32 steps for every type.
#[inline(always)]
fn rolled() -> usize {
    std::hint::black_box(LANES).min(LANES)
}

/// Fills a row with contiguous elements, starting at `from`.
///
/// # Safety
///
/// 32 elements can be read; the slot is a register row.
#[inline(always)]
pub unsafe fn gather<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &Context<'_>, slot: Slot, from: *const u8) {
    let f = instance::<F>();
    // SAFETY: the caller guarantees 32 readable elements and a register row.
    unsafe {
        let from: [M; LANES] = from.cast::<[M; LANES]>().read_unaligned();
        for (to, from) in cx.row_mut::<D>(slot).0.iter_mut().zip(from) {
            *to = f(from);
        }
    }
}

/// Fills the active lanes of a row with elements of global memory. `from` is the address of lane 0's element, even if
/// lane 0 is inactive. `WIDE`: the host has AVX-512.
///
/// # Safety
///
/// The active lanes' elements can be read; the slot is a register row.
#[inline(always)]
pub unsafe fn gather_active<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const WIDE: bool>(
    cx: &Context<'_>,
    slot: Slot,
    from: *const u8,
) {
    let f = instance::<F>();
    // SAFETY: the active lanes' elements can be read. Device memory extends by more than a row before the first
    // allocation and after the last one, so all 32 elements are readable; those of inactive lanes are dropped.
    unsafe {
        let from: [M; LANES] = from.cast::<[M; LANES]>().read_unaligned();
        #[cfg(target_arch = "x86_64")]
        if WIDE && size_of::<D>() == 4 {
            let mut row = Row([D::default(); LANES]);
            (0..LANES).for_each(|k| row.0[k] = f(from[k]));
            return simd::put_avx512(cx.bases.register(slot), &row, cx.mask);
        }
        let (on, d) = (flags(cx.mask), cx.row_mut::<D>(slot));
        for k in 0..LANES {
            d.0[k] = d.0[k].blend(f(from[k]), on[k]);
        }
    }
}

/// Fills the rows of slots 0 to `N` with the elements of 32 contiguous vectors, starting at `from`. `WIDE`: the host
/// has AVX-512.
///
/// # Safety
///
/// The vectors can be read; each slot is a register row, or none.
#[inline(always)]
pub unsafe fn gather_vectors<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const N: usize, const WIDE: bool>(
    cx: &Context<'_>,
    i: &Ins,
    from: *const u8,
) {
    let f = instance::<F>();
    for v in (0..N).filter(|&v| i.o[v] != Slot::NONE) {
        // SAFETY: the caller guarantees readable vectors, and that each slot is a register row or none.
        unsafe {
            let d = cx.row_mut::<D>(i.o[v]);
            #[cfg(target_arch = "x86_64")]
            if WIDE && size_of::<M>() == 4 && size_of::<D>() == 4 {
                let elements: Row<M> = simd::every_avx512::<M, N>(from, v);
                (0..LANES).for_each(|k| d.0[k] = f(elements.0[k]));
                continue;
            }
            let from = from.cast::<M>().add(v);
            (0..rolled()).for_each(|k| d.0[k] = f(from.add(k * N).read_unaligned()));
        }
    }
}

/// Fills the active lanes of a row with one value.
///
/// # Safety
///
/// The slot is a register row.
#[inline(always)]
pub unsafe fn fill<D: Lane>(cx: &Context<'_>, slot: Slot, value: D) {
    // SAFETY: the slot is a register row.
    let d = unsafe { cx.row_mut::<D>(slot) };
    if cx.mask == u32::MAX {
        d.0 = [value; LANES];
    } else {
        each(cx.mask, |k| d.0[k & 31] = value);
    }
}

/// Fills the active lanes of a row with element `v` after each lane's pointer.
///
/// # Safety
///
/// The pointers are set and the elements can be read; the slot is a register row.
#[inline(always)]
pub unsafe fn gather_apart<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(
    cx: &Context<'_>,
    slot: Slot,
    from: &Pointers,
    v: usize,
) {
    let f = instance::<F>();
    // SAFETY: the caller guarantees set pointers, readable elements and a register row.
    unsafe {
        let d = cx.row_mut::<D>(slot);
        let lane = |k: usize| f(from.element(k).cast::<M>().add(v).read_unaligned());
        if size_of::<M>() >= 4 && size_of::<D>() == size_of::<M>() && cx.mask == u32::MAX {
            (0..LANES).for_each(|k| d.0[k] = lane(k));
        } else {
            each(cx.mask, |k| d.0[k & 31] = lane(k));
        }
    }
}

/// Writes the lanes of a row contiguously, starting at `to`.
///
/// # Safety
///
/// There is room for 32 elements; the slot is a row of the width of `V`.
#[inline(always)]
pub unsafe fn spread<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &Context<'_>, slot: Slot, to: *mut u8) {
    let f = instance::<F>();
    let mut elements = [M::default(); LANES];
    // SAFETY: there is room for 32 elements, and the slot is a row of the width of `V`.
    unsafe {
        let values: Row<V> = cx.row(slot);
        for (element, value) in elements.iter_mut().zip(values.0) {
            *element = f(value);
        }
        to.cast::<[M; LANES]>().write_unaligned(elements);
    }
}

/// Writes the active lanes of a row to global memory. `to` is the address of lane 0's element, even if lane 0 is
/// inactive. `WIDE`: the host has AVX-512.
///
/// # Safety
///
/// There is room for the active lanes' elements; the slot is a row of the width of `V`.
#[inline(always)]
pub unsafe fn spread_active<V: Lane, M: Lane, F: Fn(V) -> M + Copy, const WIDE: bool>(
    cx: &Context<'_>,
    slot: Slot,
    to: *mut u8,
) {
    let f = instance::<F>();
    // SAFETY: there is room for the active lanes' elements; the slot is a row of the width of `V`.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE && size_of::<M>() == 4 {
            let values: Row<V> = cx.row(slot);
            let mut elements = Row([M::default(); LANES]);
            (0..LANES).for_each(|k| elements.0[k] = f(values.0[k]));
            return simd::put_avx512(to, &elements, cx.mask);
        }
        let values: *const V = cx.at(slot);
        each(cx.mask, |k| to.cast::<M>().wrapping_add(k).write_unaligned(f(*values.add(k))));
    }
}

/// Writes the active lanes of a row to element `v` after each lane's pointer.
///
/// # Safety
///
/// The pointers are set and there is room for the elements; the slot is a row of the width of `V`.
#[inline(always)]
pub unsafe fn spread_apart<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(
    cx: &Context<'_>,
    slot: Slot,
    to: &Pointers,
    v: usize,
) {
    let f = instance::<F>();
    // SAFETY: the caller guarantees set pointers, room for the elements and a row of the width of `V`.
    unsafe {
        let values: *const V = cx.at(slot);
        each(cx.mask, |k| to.element(k).cast::<M>().add(v).write_unaligned(f(*values.add(k))));
    }
}
