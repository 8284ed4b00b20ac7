//! What a kernel asks of the system: printf, assertions, clocks, asynchronous copies, barrier objects.

use super::access::{addresses, form, region, survey, window};
use super::context::{Context, Event};
use super::format;
use super::row::{Ins, LANES, Row, Slot};
use crate::sim::error::TrapKind;

/// A byte at a generic address, as a lane sees it; `None` where nothing lies.
pub fn byte_at(cx: &Context<'_>, lane: usize, address: u64) -> Option<u8> {
    match window(address) {
        (form::SHARED, base) => {
            let offset = address - base;
            // SAFETY: inside the block's shared memory.
            (offset < cx.shared_len).then(|| unsafe { *cx.shared.add(offset as usize) })
        }
        (form::LOCAL, base) => {
            let offset = (address - base) as usize;
            (offset < cx.warp.local_stride).then(|| cx.warp.local.get(lane * cx.warp.local_stride + offset).copied())?
        }
        (form::PARAM, base) => cx.launch.params.get((address - base) as usize).copied(),
        // SAFETY: inside an allocation.
        _ => cx.launch.memory.owns(address, 1).then(|| unsafe { *cx.launch.memory.host(address) }),
    }
}

fn text_at(cx: &Context<'_>, lane: usize, address: u64) -> String {
    let bytes: Vec<u8> = (address..).map_while(|at| byte_at(cx, lane, at).filter(|&b| b != 0)).take(1 << 16).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `vprintf`: `imm` holds the offsets of both arguments in the locals (format low, arguments high), `aux` the
/// result's or `u32::MAX`.
pub unsafe fn printf(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let (pattern, args) = (cx.local_u64(k, i.imm as u32), cx.local_u64(k, (i.imm >> 32) as u32));
        let pattern = text_at(cx, k, pattern);
        let mut at = args;
        let printed = format::format(
            &pattern,
            &mut |bytes| {
                at = at.next_multiple_of(bytes);
                let value = (0..bytes).rev().fold(0, |v, b| v << 8 | u64::from(byte_at(cx, k, at + b).unwrap_or(0)));
                at += bytes;
                value
            },
            &|address| text_at(cx, k, address),
        );
        let count = format::conversions(&pattern);
        cx.printed.push_str(&printed);
        if i.aux != u32::MAX {
            let at = k * cx.warp.local_stride + (cx.locals + i.aux) as usize;
            if let Some(bytes) = cx.warp.local.get_mut(at..at + 4) {
                bytes.copy_from_slice(&count.to_le_bytes());
            }
        }
    }
    Context::next(i)
}

/// `__assertfail`: `imm` holds the offsets of the message and of the file, `aux` that of the line.
pub unsafe fn assert_failed(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let k = (cx.mask.trailing_zeros() & 31) as usize;
    let message = text_at(cx, k, cx.local_u64(k, i.imm as u32));
    let file = text_at(cx, k, cx.local_u64(k, (i.imm >> 32) as u32));
    let line = cx.local_u64(k, i.aux) as u32;
    cx.trap(i, TrapKind::Assert, 1 << k, format!("assertion `{message}` failed ({file}:{line})"))
}

/// `%clock` and its like, from the instructions that the block has issued: slot 0 is the destination, 64 bits wide
/// where `aux` is 1. Deterministic, and of no unit.
pub unsafe fn clock(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let now = cx.issued + cx.counters.warp_instructions + 1 - u64::from(i.ahead);
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: slot 0 is a row of the width that `aux` says.
        unsafe {
            if i.aux == 1 {
                cx.set_lane(i.o[0], k, now);
            } else {
                cx.set_lane(i.o[0], k, now as u32);
            }
        }
    }
    Context::next(i)
}

/// Lets the other warps of the block run.
pub unsafe fn pause(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.polls += 1;
    cx.stop_at(Event::Slice, Context::next(i))
}

/// Goes on: a warp's accesses happen in program order. `aux` is not zero where other blocks are meant.
pub unsafe fn fence(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    super::monitor::fence(cx, i.aux != 0);
    Context::next(i)
}

/// Goes on.
pub unsafe fn nothing(_: &mut Context<'_>, i: &Ins) -> *const Ins {
    Context::next(i)
}

/// `cp.async.commit_group`.
pub unsafe fn commit_copies(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.monitor.commit(cx.warp.index, cx.mask);
    }
    Context::next(i)
}

/// `cp.async.wait_group`: `imm` is the number of groups that need not be there, negative for `wait_all`.
pub unsafe fn wait_for_copies(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.monitor.wait(cx.warp.index, cx.mask, u32::try_from(i.imm).ok());
    }
    Context::next(i)
}

/// Operations on a barrier object in shared memory, in the low bits of `aux` above the address form.
pub const INIT: i64 = 0;
pub const ARRIVE: i64 = 1;
pub const TEST: i64 = 2;
pub const TEST_PARITY: i64 = 3;
pub const INVALIDATE: i64 = 4;
pub const ARRIVE_DROP: i64 = 5;
/// The arrival that the thread's asynchronous copies make when they have landed.
pub const ARRIVE_BEHIND_COPIES: i64 = 6;

/// `mbarrier`: slot 0 is the destination or none, slot 1 the address, slot 2 a count, state or parity; slot 5 holds
/// the operation as a raw number.
///
/// The object is a word of phase (bit 63), expected (bits 32 to 51) and pending arrivals (bits 0 to 19).
pub unsafe fn barrier_object(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let a = addresses(cx, i, i.o[1]);
    let s = survey(cx, &a, 8);
    let r = match region(cx, i, &a, &s, 8, true) {
        Ok(r) => r,
        Err(stopped) => return stopped,
    };
    let mut operation = i64::from(i.o[5].0);
    if operation == ARRIVE_BEHIND_COPIES {
        operation = ARRIVE;
        if cx.launch.sanitize {
            cx.monitor.wait(cx.warp.index, cx.mask, None);
        }
    }
    let mut passed = 0_u32;
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: the address was checked; slot 2 is a row of the operation's width where it has one.
        unsafe {
            #[expect(clippy::cast_ptr_alignment, reason = "it is read and written unaligned")]
            let at = r.at(k, a.0[k]).cast::<u64>();
            let old = at.read_unaligned();
            let narrow = |slot: Slot, default: u32| if slot == Slot::NONE { default } else { cx.row::<u32>(slot).0[k] };
            match operation {
                INIT => {
                    let count = u64::from(narrow(i.o[2], 1)) & 0xf_ffff;
                    at.write_unaligned(count << 32 | count);
                }
                ARRIVE | ARRIVE_DROP => {
                    let by = u64::from(narrow(i.o[2], 1));
                    let dropped = if operation == ARRIVE_DROP { by << 32 } else { 0 };
                    let state = old - dropped;
                    let left = (state & 0xf_ffff).saturating_sub(by);
                    let expected = state >> 32 & 0xf_ffff;
                    let phase = state >> 63;
                    let new = if left == 0 {
                        (phase ^ 1) << 63 | expected << 32 | expected
                    } else {
                        phase << 63 | expected << 32 | left
                    };
                    at.write_unaligned(new);
                    if i.o[0] != Slot::NONE {
                        cx.set_lane(i.o[0], k, old);
                    }
                }
                TEST => passed |= u32::from(old >> 63 != cx.row::<u64>(i.o[2]).0[k] >> 63) << k,
                TEST_PARITY => passed |= u32::from(old >> 63 != u64::from(narrow(i.o[2], 0) & 1)) << k,
                _ => at.write_unaligned(0),
            }
        }
        if cx.launch.sanitize {
            cx.monitor.shared_written(a.0[k] - r.origin, 8);
        }
    }
    if operation != TEST && operation != TEST_PARITY {
        return Context::next(i);
    }
    // SAFETY: a test's destination is a predicate.
    unsafe { cx.set_pred(i.o[0], passed) };
    if passed & cx.mask == cx.mask {
        cx.monitor.barrier();
        return Context::next(i);
    }
    cx.polls += 1;
    cx.stop_at(Event::Slice, Context::next(i))
}

/// `isspacep`: slot 0 is a predicate, slot 1 the address; `aux` the space.
pub unsafe fn is_space(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slot 1 is a 64-bit row, slot 0 a predicate.
    unsafe {
        let a: Row<u64> = cx.row(i.o[1]);
        let bits = (0..LANES).filter(|&k| window(a.0[k]).0 == i.aux).fold(0, |m, k| m | 1 << k);
        cx.set_pred(i.o[0], bits);
    }
    Context::next(i)
}
