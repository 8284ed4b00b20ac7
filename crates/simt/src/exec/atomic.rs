//! Atomic read-modify-write operations, one lane after another.
//!
//! In global memory each operation is also atomic on the host, since blocks run on several threads. Operations whose
//! order is visible have [`Access::ORDERED`] and wait for the block's place in commit order.

use crate::error::TrapKind;
use crate::exec::access::{Region, addresses, enter, misaligned, region, same_region, split, survey};
use crate::exec::cell::Cell;
use crate::exec::context::Context;
use crate::exec::sanitizer;
use crate::exec::traffic::{note_written, reads_unwritten, uninitialised};
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{Row, each, instance};

/// Performs an operation for the active lanes, whose addresses are known to be in the region. Returns whether any lane
/// changes memory.
type Perform = unsafe fn(&mut Context<'_>, &Ins, &Row<u64>, &Region) -> bool;

unsafe fn perform<M: Cell, F: Fn(M, M, M) -> M + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    r: &Region,
) -> bool {
    let f = instance::<F>();
    let mut changes = false;
    each(cx.mask, |k| {
        // SAFETY: the whole request was checked; the loader assigned the source and destination rows.
        unsafe {
            let b = M::narrow(*cx.at::<M::Register>(i.o[2]).add(k));
            let c = if i.o[3] == Slot::NONE { b } else { M::narrow(*cx.at::<M::Register>(i.o[3]).add(k)) };
            let old = M::update(r.at(k, a.0[k]), |old| f(old, b, c));
            changes |= f(old, b, c).widen() != old.widen();
            if i.o[0] != Slot::NONE {
                cx.set_lane(i.o[0], k, old.widen());
            }
        }
    });
    changes
}

/// `atom` and `red`. Slot 0: old value; slot 1: address; slots 2 and 3: operands.
pub unsafe fn atomic<M: Cell, F: Fn(M, M, M) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { request(cx, i, size_of::<M>() as u64, perform::<M, F>) }
}

/// Checks, counts and performs a request for `bytes` bytes per lane.
///
/// # Safety
///
/// `i` must come from the loader, and `perform` must match its type.
unsafe fn request(cx: &mut Context<'_>, i: &Ins, bytes: u64, perform: Perform) -> *const Ins {
    if let Some(stopped) = enter(cx, i) {
        return stopped;
    }
    let a = addresses(cx, i, i.o[1]);
    let s = survey(cx, &a, bytes);
    // The first element stands for the whole vector; the others are not separate instructions.
    let vector = u64::from(i.access().elements());
    let overlap = s.contiguous && cx.lanes > 1;
    if vector > 1 && (overlap || s.low_bits & (bytes * vector - 1) != 0) {
        return misaligned(cx, i, &a, bytes * vector);
    }
    if same_region(cx, i, &a, &s) != cx.mask {
        // SAFETY: same contract as this function.
        return unsafe { split(cx, i, &a, &s) };
    }
    let r = match region(cx, i, &a, &s, bytes, true) {
        Ok(r) => r,
        Err(stopped) => return stopped,
    };
    if vector > 1 && r.space != StateSpace::GLOBAL {
        let message = "a vector atomic outside of global memory".to_owned();
        return cx.trap(i, TrapKind::OutOfBounds, cx.mask, message);
    }
    if matches!(r.space, StateSpace::SHARED | StateSpace::REMOTE) {
        cx.accesses(i).shared_atomics += 1;
    } else {
        if cx.launch.sample.is_some() {
            return cx.communicates(i);
        }
        cx.accesses(i).global_atomics += u64::from(vector > 0);
    }
    if cx.launch.sanitize {
        if r.space == StateSpace::GLOBAL {
            if !i.has(Access::REPLACES) && reads_unwritten(cx, &a, &s, bytes) {
                return uninitialised(cx, i, &a, bytes);
            }
            note_written(cx, &a, &s, bytes);
        }
        if let Some(stopped) = sanitizer::atomic(cx, i, &a, &s, &r, bytes) {
            return stopped;
        }
    }
    // SAFETY: the whole request was checked.
    let changes = unsafe { perform(cx, i, &a, &r) };
    if i.has(Access::POLL) {
        // An atomic that leaves the value unchanged is a poll; one that changes it is progress.
        if changes {
            cx.progress();
        } else {
            cx.poll(i, a.0[cx.first_lane()]);
        }
    }
    Context::next(i)
}
