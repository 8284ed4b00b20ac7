//! Read-modify-write operations, lane after lane in lane order.
//!
//! On global memory each step is atomic on the host as well, since blocks run on several threads. Operations whose
//! order can be seen carry [`form::ORDERED`] and wait for the block's turn.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::access::{Region, addresses, enter, form, misaligned, region, same_home, split, survey};
use super::bulk::bulk_reduce;
use super::context::Context;
use super::lanes::each;
use super::row::{Handler, Ins, Lane, Row, Slot};
use super::sending::reduce_async;
use super::traffic::note_written;
use crate::error::TrapKind;

/// A type in memory that atomics work on; registers hold it in `Register`.
pub trait Cell: Lane {
    type Register: Lane + PartialEq;
    fn widen(self) -> Self::Register;
    fn narrow(register: Self::Register) -> Self;
    /// Replaces what stands at `at` by `f` of it; gives the old value.
    ///
    /// # Safety
    /// `at` is valid for this type and aligned for it.
    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self;
}

macro_rules! cell {
    ($t:ty, $register:ty, $atomic:ty) => {
        impl Cell for $t {
            type Register = $register;

            #[inline(always)]
            fn widen(self) -> $register {
                <$register>::from(self)
            }

            #[inline(always)]
            fn narrow(register: $register) -> Self {
                register as Self
            }

            #[inline(always)]
            unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
                // SAFETY: by the caller's promise; other threads reach the cell by the same type while they race.
                let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    match cell.compare_exchange_weak(old, f(old), Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    };
}
cell!(u16, u32, AtomicU16);
cell!(u32, u32, AtomicU32);
cell!(u64, u64, AtomicU64);

/// Held while 128 bits are changed, which the host does not do at once everywhere.
static PAIR: Mutex<()> = Mutex::new(());

impl Cell for u128 {
    type Register = Self;

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }

    #[inline(always)]
    fn narrow(register: Self) -> Self {
        register
    }

    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
        let _held = PAIR.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: by the caller's promise; what is aligned for 128 bits is for 64.
        let [low, high] = [0, 8].map(|half| unsafe { AtomicU64::from_ptr(at.add(half).cast()) });
        let old = Self::from(high.load(Ordering::Acquire)) << 64 | Self::from(low.load(Ordering::Acquire));
        let new = f(old);
        low.store(new as u64, Ordering::Release);
        high.store((new >> 64) as u64, Ordering::Release);
        old
    }
}

/// Performs an operation of the active lanes at their addresses, which were checked to lie in the region; whether any of
/// them changes something.
type Perform = unsafe fn(&mut Context<'_>, &Ins, &Row<u64>, &Region) -> bool;

unsafe fn perform<M: Cell, F: Fn(M, M, M) -> M + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    r: &Region,
) -> bool {
    let f = super::shapes::instance::<F>();
    let mut changes = false;
    each(cx.mask, |k| {
        // SAFETY: the request was checked as a whole; sources and destination are the loader's rows.
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

/// `atom` and `red`: slot 0 takes the old value, slot 1 is the address, slots 2 and 3 the operands.
unsafe fn atomic<M: Cell, F: Fn(M, M, M) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: forwarded from the caller.
    unsafe { request(cx, i, size_of::<M>() as u64, perform::<M, F>) }
}

/// Checks and counts a request for `bytes` bytes a lane, and has it performed.
///
/// # Safety
/// The instruction is the loader's, and `perform` is of its type.
unsafe fn request(cx: &mut Context<'_>, i: &Ins, bytes: u64, perform: Perform) -> *const Ins {
    if let Some(stopped) = enter(cx, i) {
        return stopped;
    }
    let a = addresses(cx, i, i.o[1]);
    let s = survey(cx, &a, bytes);
    // Of a vector the first element stands for all; those behind it are no instruction of their own.
    let vector = u64::from(i.aux & form::VECTOR);
    let overlap = s.straight && cx.lanes > 1;
    if vector > 1 && (overlap || s.low_bits & (bytes * vector - 1) != 0) {
        return misaligned(cx, i, &a, bytes * vector);
    }
    if same_home(cx, i, &a, &s) != cx.mask {
        // SAFETY: forwarded from the caller.
        return unsafe { split(cx, i, &a, &s) };
    }
    let r = match region(cx, i, &a, &s, bytes, true) {
        Ok(r) => r,
        Err(stopped) => return stopped,
    };
    if vector > 1 && r.space != form::GLOBAL {
        let message = "an atomic on a vector that does not lie in global memory".to_owned();
        return cx.trap(i, TrapKind::OutOfBounds, cx.mask, message);
    }
    if matches!(r.space, form::SHARED | form::REMOTE) {
        cx.counters.shared_atomics += 1;
    } else {
        cx.counters.global_atomics += u64::from(vector > 0);
    }
    if cx.launch.sanitize {
        if r.space == form::GLOBAL {
            note_written(cx, &a, &s, bytes);
        }
        if let Some(stopped) = super::monitor::atomic(cx, i, &a, &s, &r, bytes) {
            return stopped;
        }
    }
    // SAFETY: the request was checked as a whole.
    let changes = unsafe { perform(cx, i, &a, &r) };
    if i.aux & form::POLL != 0 {
        // An atomic that leaves the value as it was is how a program asks; one that changes it is how it gets on.
        if changes {
            cx.progress();
        } else {
            cx.poll(i, a.0[(cx.mask.trailing_zeros() & 31) as usize]);
        }
    }
    Context::next(i)
}

/// What performs an operation, by what asks for it.
#[derive(Debug, Clone, Copy)]
pub struct Handlers {
    /// `atom` and `red`.
    pub atomic: Handler,
    /// `red.async`.
    pub sent: Handler,
    /// `cp.reduce.async.bulk`.
    pub bulk: Handler,
}

/// The handlers for an operation on `M`; the closure captures nothing.
pub fn handlers<M: Cell, F: Fn(M, M, M) -> M + Copy>(_operation: F) -> Handlers {
    Handlers { atomic: atomic::<M, F>, sent: reduce_async::<M, F>, bulk: bulk_reduce::<M, F> }
}
