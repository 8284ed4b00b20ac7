//! Elements between memory and the lanes of rows, once a request has been checked: a full warp's side by side by one copy,
//! others lane by lane.

use super::access::{Region, Survey};
use super::context::Context;
use super::row::{Ins, LANES, Lane, Row, Slot};
use super::shapes::instance;

/// Loads `vector` elements a lane into the slots from 0 on.
///
/// # Safety
/// All active lanes were checked to lie in the region, aligned; destinations are the loader's.
#[inline(always)]
pub unsafe fn fetch<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    s: &Survey,
    r: &Region,
    vector: usize,
) {
    let f = instance::<F>();
    // SAFETY: by the caller's promise.
    unsafe {
        if vector == 1 && r.stride == 0 && cx.mask == u32::MAX {
            if s.straight {
                return gather::<D, M, F>(cx, i.o[0], r.at(0, s.lo));
            }
            let d = cx.row_mut::<D>(i.o[0]);
            if s.lo == s.hi {
                let one = f(r.at(0, s.lo).cast::<M>().read_unaligned());
                d.0 = [one; LANES];
            } else {
                for k in 0..LANES {
                    d.0[k] = f(r.at(0, a.0[k]).cast::<M>().read_unaligned());
                }
            }
            return;
        }
        let together = s.straight && r.stride == 0 && cx.mask == u32::MAX;
        for v in 0..vector {
            if i.o[v] == Slot::NONE {
                continue;
            }
            if together && vector == 4 {
                apart::<D, M, F, 4>(cx, i.o[v], r.at(0, s.lo).cast::<M>().add(v));
                continue;
            }
            if together && vector == 2 {
                apart::<D, M, F, 2>(cx, i.o[v], r.at(0, s.lo).cast::<M>().add(v));
                continue;
            }
            let d: *mut D = cx.at(i.o[v]);
            let mut lanes = cx.mask;
            while lanes != 0 {
                let k = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                *d.add(k) = f(r.at(k, a.0[k]).cast::<M>().add(v).read_unaligned());
            }
        }
    }
}

/// Fills a row with every `N`th element from `from` on: one element of vectors that lie side by side.
///
/// # Safety
/// 32 vectors can be read; the slot is a row of the frame.
#[inline(always)]
pub unsafe fn apart<D: Lane, M: Lane, F: Fn(M) -> D + Copy, const N: usize>(
    cx: &mut Context<'_>,
    slot: Slot,
    from: *const M,
) {
    let f = instance::<F>();
    // SAFETY: by the caller's promise.
    unsafe {
        let d = cx.row_mut::<D>(slot);
        for k in 0..LANES {
            d.0[k] = f(from.add(k * N).read_unaligned());
        }
    }
}

/// Fills a row with the elements that lie side by side from `from` on.
///
/// # Safety
/// 32 elements can be read; the slot is a row of the frame.
#[inline(always)]
pub unsafe fn gather<D: Lane, M: Lane, F: Fn(M) -> D + Copy>(cx: &Context<'_>, slot: Slot, from: *const u8) {
    let f = instance::<F>();
    // SAFETY: by the caller's promise.
    unsafe {
        let from: [M; LANES] = from.cast::<[M; LANES]>().read_unaligned();
        for (to, from) in cx.row_mut::<D>(slot).0.iter_mut().zip(from) {
            *to = f(from);
        }
    }
}

/// Writes the lanes of a row side by side from `to` on.
///
/// # Safety
/// There is room for 32 elements; the slot is a row of `V`s' width.
#[inline(always)]
pub unsafe fn spread<V: Lane, M: Lane, F: Fn(V) -> M + Copy>(cx: &Context<'_>, slot: Slot, to: *mut u8) {
    let f = instance::<F>();
    let mut elements = [M::default(); LANES];
    // SAFETY: by the caller's promise.
    unsafe {
        let values: Row<V> = cx.row(slot);
        for (element, value) in elements.iter_mut().zip(values.0) {
            *element = f(value);
        }
        to.cast::<[M; LANES]>().write_unaligned(elements);
    }
}
