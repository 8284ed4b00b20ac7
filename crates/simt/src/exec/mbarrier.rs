//! Executes `mbarrier`. The objects are in shared memory and count arrivals and the bytes of asynchronous copies.
//!
//! A phase completes when neither arrivals nor bytes are pending. Undefined behaviour ends the launch: an object that
//! was never initialised, more arrivals than a phase expects, or counts out of range.

use crate::error::TrapKind;
use crate::exec::access::{Region, addresses, region, survey};
use crate::exec::context::{Context, Event};
use crate::exec::{findings, remote, sanitizer};
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::sanitize::{Op, Space};

/// Operations on an mbarrier object, in slot 5.
pub const INIT: u32 = 0;
pub const ARRIVE: u32 = 1;
pub const TEST: u32 = 2;
pub const TEST_PARITY: u32 = 3;
pub const INVALIDATE: u32 = 4;
pub const ARRIVE_DROP: u32 = 5;
/// Arrival that is triggered when the thread's asynchronous copies complete.
pub const ARRIVE_BEHIND_COPIES: u32 = 6;
/// Expects bytes, without an arrival.
pub const EXPECT: u32 = 7;
/// Completes bytes, without an arrival.
pub const COMPLETE: u32 = 8;

/// Maximum arrival count, and maximum number of expected or completed bytes.
pub const MOST: u32 = (1 << 20) - 1;

/// An mbarrier object. Layout in memory: pending arrivals in bits 0 to 19, expected arrivals in bits 20 to 39, pending
/// bytes in two's complement in bits 40 to 60, the phase in bit 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Object {
    phase: bool,
    expected: u32,
    pending: u32,
    /// Expected minus completed bytes.
    bytes: i32,
}

impl Object {
    fn from_word(word: u64) -> Self {
        let count = |at: u32| (word >> at) as u32 & MOST;
        // Shift up, then down again with sign extension.
        let bytes = (word << 3) as i64 >> 43;
        Self { phase: word >> 63 == 1, pending: count(0), expected: count(20), bytes: bytes as i32 }
    }

    fn word(self) -> u64 {
        let bytes = u64::from(self.bytes as u32 & 0x1f_ffff);
        u64::from(self.pending) | u64::from(self.expected) << 20 | bytes << 40 | u64::from(self.phase) << 63
    }

    /// Completes the phase if nothing is pending; returns whether it did so.
    fn settle(&mut self) -> bool {
        let ends = self.pending == 0 && self.bytes == 0;
        if ends {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
        ends
    }

    fn add_bytes(&mut self, more: i64) -> Result<(), String> {
        let sum = i64::from(self.bytes) + more;
        if sum.unsigned_abs() > u64::from(MOST) {
            return Err(format!("an mbarrier object that waits for {sum} bytes: at most {MOST} are allowed"));
        }
        self.bytes = sum as i32;
        Ok(())
    }

    fn arrive(&mut self, count: u32, drops: bool) -> Result<(), String> {
        if count == 0 || count > MOST {
            return Err(format!("{count} arrivals at once at an mbarrier object: 1 to {MOST} are allowed"));
        }
        let Some(left) = self.pending.checked_sub(count) else {
            let pending = self.pending;
            return Err(format!("{count} arrivals at an mbarrier object whose phase waits for {pending} more"));
        };
        self.pending = left;
        if drops {
            self.expected = self.expected.saturating_sub(count);
        }
        Ok(())
    }
}

/// One lane's request to an mbarrier object.
#[derive(Debug, Clone, Copy)]
struct Request {
    operation: u32,
    /// Number of arrivals, or the parity of a test.
    count: u32,
    /// Bytes that the arrival expects, or bytes of [`EXPECT`] and [`COMPLETE`].
    bytes: u32,
}

impl Request {
    /// Performs the request; returns whether the phase has completed.
    fn perform(self, object: &mut Object) -> Result<bool, String> {
        match self.operation {
            INIT if self.count == 0 || self.count > MOST => {
                Err(format!("an mbarrier object for {} arrivals: 1 to {MOST} are allowed", self.count))
            }
            INIT => {
                *object = Object { phase: false, expected: self.count, pending: self.count, bytes: 0 };
                Ok(false)
            }
            ARRIVE | ARRIVE_DROP => {
                object.add_bytes(i64::from(self.bytes))?;
                object.arrive(self.count, self.operation == ARRIVE_DROP)?;
                Ok(object.settle())
            }
            EXPECT | COMPLETE => {
                let bytes = i64::from(self.bytes);
                object.add_bytes(if self.operation == EXPECT { bytes } else { -bytes })?;
                Ok(object.settle())
            }
            _ => Ok(false),
        }
    }
}

/// `mbarrier`. Slot 0: destination, or none; slot 1: address; slot 2: count, state or parity; slot 3: expected or
/// completed bytes; slot 5: number of the operation.
pub unsafe fn barrier_object(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let a = addresses(cx, i, i.o[1]);
    let s = survey(cx, &a, 8);
    let r = match region(cx, i, &a, &s, 8, true) {
        Ok(r) => r,
        Err(stopped) => return stopped,
    };
    let mut operation = i.o[5].0;
    if operation == ARRIVE_BEHIND_COPIES {
        operation = ARRIVE;
        if cx.launch.sanitize {
            cx.shadow.wait(cx.warp.index, cx.mask, None);
        }
    }
    if cx.launch.sanitize && r.space == StateSpace::REMOTE && operation == ARRIVE {
        // Threads that wait on the object acquire what the block has done so far.
        sanitizer::release_block(cx);
    }
    if matches!(operation, TEST | TEST_PARITY) {
        if r.space == StateSpace::REMOTE {
            let message = "a wait for an mbarrier object of another block; only that block can wait for it".to_owned();
            return cx.trap(i, TrapKind::Barrier, cx.mask, message);
        }
        // SAFETY: same contract as this function.
        return unsafe { test(cx, i, operation, &a, &r) };
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: the address was checked; slots 2 and 3, if present, are 32-bit rows, and slot 0 a 64-bit one.
        unsafe {
            let narrow = |slot: Slot, default: u32| if slot == Slot::NONE { default } else { cx.row::<u32>(slot).0[k] };
            let request = Request { operation, count: narrow(i.o[2], 1), bytes: narrow(i.o[3], 0) };
            match apply(cx, i, k, &r, a.0[k], request) {
                Err(stopped) => return stopped,
                Ok(old) if i.o[0] != Slot::NONE => cx.set_lane(i.o[0], k, old),
                Ok(_) => {}
            }
        }
    }
    Context::next(i)
}

/// Performs a lane's request on the object at `address`. Returns the old value. `Err` is the handler's return value.
///
/// # Safety
///
/// The region has eight bytes at `address`.
unsafe fn apply(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    r: &Region,
    address: u64,
    request: Request,
) -> Result<u64, *const Ins> {
    let sanitize = cx.launch.sanitize;
    let (at, offset) = (r.at(lane, address), address - r.origin);
    if sanitize && request.operation != INIT && !remote::owner(cx, r).is_shared_written(offset, 8) {
        let site = findings::site(cx.launch, Space::Shared, offset);
        let message = format!("mbarrier object at {site}, which was never initialised");
        let stopped = cx.trap(i, TrapKind::Uninitialised, 1 << lane, message);
        cx.locate_trap(site);
        return Err(stopped);
    }
    if sanitize && r.space != StateSpace::REMOTE {
        let op = if matches!(request.operation, INIT | INVALIDATE) { Op::Store } else { Op::Change };
        if let Some(stopped) = sanitizer::object(cx, i, lane, offset, op) {
            return Err(stopped);
        }
    }
    #[expect(clippy::cast_ptr_alignment, reason = "it is read and written unaligned")]
    let at = at.cast::<u64>();
    // SAFETY: the region has eight bytes at `address`.
    let old = unsafe { at.read_unaligned() };
    let mut object = Object::from_word(old);
    let ended = match request.perform(&mut object) {
        Ok(ended) => ended,
        Err(message) => return Err(cx.trap(i, TrapKind::Barrier, 1 << lane, message)),
    };
    let new = if request.operation == INVALIDATE { 0 } else { object.word() };
    // SAFETY: the region has eight bytes at `address`.
    unsafe { at.write_unaligned(new) };
    if sanitize {
        remote::owner(cx, r).shared_written(offset, 8);
        if r.space != StateSpace::REMOTE && i.has(Access::RELEASE) && matches!(request.operation, ARRIVE | ARRIVE_DROP)
        {
            cx.shadow.arrive(offset, (cx.warp.index, lane));
        }
        let owner = remote::owner(cx, r);
        if ended {
            owner.phase_ended(offset);
        }
        if r.space == StateSpace::REMOTE {
            remote::note(cx, i, lane, r);
        }
    }
    Ok(old)
}

/// Completes bytes of the object at `address`, for a lane's bulk copy `i`. `Err` is the handler's return value.
///
/// # Safety
///
/// The region has eight bytes at `address`.
pub unsafe fn complete(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    r: &Region,
    address: u64,
    bytes: u32,
) -> Result<(), *const Ins> {
    let request = Request { operation: COMPLETE, count: 0, bytes };
    // SAFETY: same contract as this function.
    unsafe { apply(cx, i, lane, r, address, request).map(|_| ()) }
}

/// `test_wait` and `try_wait` on the objects at the addresses `a`. If the phase that a lane asks for has not completed,
/// other warps run first.
unsafe fn test(cx: &mut Context<'_>, i: &Ins, operation: u32, a: &Row<u64>, r: &Region) -> *const Ins {
    let mut passed = 0_u32;
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: the addresses were checked; slot 2 is a row of the operation's width.
        let asked = unsafe {
            if operation == TEST { cx.row::<u64>(i.o[2]).0[k] >> 63 } else { u64::from(cx.row::<u32>(i.o[2]).0[k] & 1) }
        };
        // SAFETY: the address was checked.
        let phase = unsafe { r.at(k, a.0[k]).cast::<u64>().read_unaligned() } >> 63;
        passed |= u32::from(phase != asked) << k;
    }
    if cx.launch.sanitize {
        let asking = cx.mask;
        for k in (0..LANES).filter(|k| asking >> k & 1 == 1) {
            if let Some(stopped) = sanitizer::object(cx, i, k, a.0[k] - r.origin, Op::Poll) {
                return stopped;
            }
        }
    }
    // SAFETY: a test's destination is a predicate.
    unsafe { cx.set_pred(i.o[0], passed) };
    if passed != 0 {
        if !cx.peers.is_empty() {
            cx.shadow.barrier();
        }
        remote::acquire(cx);
        if cx.launch.sanitize {
            for k in (0..LANES).filter(|k| passed >> k & 1 == 1) {
                cx.shadow.phase_observed(a.0[k] - r.origin, cx.warp.index, k as u32);
            }
        }
    }
    if passed & cx.mask == cx.mask {
        return Context::next(i);
    }
    cx.polls += 1;
    cx.stop_at(Event::Slice, Context::next(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(expected: u32) -> Object {
        Object { phase: false, expected, pending: expected, bytes: 0 }
    }

    fn perform(object: &mut Object, operation: u32, count: u32, bytes: u32) -> Result<bool, String> {
        Request { operation, count, bytes }.perform(object)
    }

    #[test]
    fn an_object_survives_its_word() {
        for bytes in [0, 1, -1, 1_048_575, -1_048_575] {
            for phase in [false, true] {
                let object = Object { phase, expected: MOST, pending: 5, bytes };
                assert_eq!(Object::from_word(object.word()), object);
            }
        }
    }

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_have_come() {
        let mut it = object(2);
        assert_eq!(perform(&mut it, ARRIVE, 1, 64), Ok(false));
        assert_eq!(perform(&mut it, ARRIVE, 1, 0), Ok(false));
        assert_eq!(perform(&mut it, COMPLETE, 0, 32), Ok(false));
        assert_eq!(perform(&mut it, COMPLETE, 0, 32), Ok(true));
        assert_eq!(it, Object { phase: true, ..object(2) });
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let mut it = object(1);
        assert_eq!(perform(&mut it, COMPLETE, 0, 1024), Ok(false));
        assert_eq!(it.bytes, -1024);
        assert_eq!(perform(&mut it, EXPECT, 0, 1024), Ok(false));
        assert_eq!(perform(&mut it, ARRIVE, 1, 0), Ok(true));
    }

    #[test]
    fn counts_out_of_range_are_refused() {
        assert!(perform(&mut object(1), INIT, 0, 0).is_err());
        assert!(perform(&mut object(1), INIT, MOST + 1, 0).is_err());
        assert!(perform(&mut object(1), ARRIVE, 2, 0).is_err());
        assert!(perform(&mut object(1), EXPECT, 0, MOST).is_ok());
        assert!(perform(&mut object(1), EXPECT, 0, MOST + 1).is_err());
        assert!(perform(&mut object(1), COMPLETE, 0, MOST + 1).is_err());
    }

    #[test]
    fn who_drops_out_is_not_waited_for_again() {
        let mut it = object(2);
        assert_eq!(perform(&mut it, ARRIVE_DROP, 1, 0), Ok(false));
        assert_eq!(perform(&mut it, ARRIVE, 1, 0), Ok(true));
        assert_eq!(it, Object { phase: true, ..object(1) });
    }
}
