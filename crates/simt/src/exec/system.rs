//! System services: printf, assertions, clocks, groups of asynchronous copies.

use crate::error::TrapKind;
use crate::exec::context::{Context, Event};
use crate::exec::window::{owner, window};
use crate::exec::{format, sanitizer};
use crate::printed;
use crate::program::aux::{Fence, StateSpace};
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// Returns the byte at a lane's generic address; `None` outside all memory.
pub fn byte_at(cx: &Context<'_>, lane: usize, address: u64) -> Option<u8> {
    match window(address) {
        (StateSpace::SHARED, base) => {
            let offset = address - base;
            // SAFETY: the offset is inside the block's shared memory.
            (offset >= cx.shared_start && offset < cx.shared_end).then(|| unsafe { *cx.shared.add(offset as usize) })
        }
        (StateSpace::LOCAL, base) => {
            let offset = (address - base) as usize;
            (offset < cx.warp.local_stride).then(|| cx.warp.local.get(lane * cx.warp.local_stride + offset).copied())?
        }
        (StateSpace::PARAM, base) => cx.launch.params.get((address - base) as usize).copied(),
        // SAFETY: the address is inside an allocation.
        _ => cx.launch.memory.owns(address, 1).then(|| unsafe { *cx.launch.memory.host(address) }),
    }
}

/// Maximum number of bytes read from a string.
const LONGEST_TEXT: u64 = 1 << 16;

fn text_at(cx: &Context<'_>, lane: usize, address: u64) -> String {
    let longest = address..address.saturating_add(LONGEST_TEXT);
    let is_text = |byte: &u8| *byte != 0;
    let bytes: Vec<u8> = match window(address) {
        (StateSpace::SHARED | StateSpace::LOCAL | StateSpace::PARAM, _) => {
            longest.map_while(|at| byte_at(cx, lane, at).filter(is_text)).collect()
        }
        // The allocation is looked up only once: a kernel may print millions of characters.
        _ => match cx.launch.memory.extent(address) {
            Some(extent) => {
                // SAFETY: the address is inside an allocation.
                let byte = |at| unsafe { *cx.launch.memory.host(at) };
                (address..longest.end.min(extent.end)).map(byte).take_while(is_text).collect()
            }
            None => Vec::new(),
        },
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `vprintf`. `imm` has the offsets of both arguments in the locals (format in the low half, arguments in the high
/// half). `aux`: offset of the result, or `u32::MAX` for none.
pub unsafe fn printf(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let (pattern, args) = (cx.local_u64(k, i.imm as u32), cx.local_u64(k, (i.imm >> 32) as u32));
        let pattern = text_at(cx, k, pattern);
        let count = format::conversions(&pattern);
        if !printed::is_full(&cx.printed) {
            let mut at = args;
            let text = format::format(
                &pattern,
                &mut |bytes| {
                    at = at.next_multiple_of(bytes);
                    let value =
                        (0..bytes).rev().fold(0, |v, b| v << 8 | u64::from(byte_at(cx, k, at + b).unwrap_or(0)));
                    at += bytes;
                    value
                },
                &|address| text_at(cx, k, address),
            );
            printed::append(&mut cx.printed, &text);
        }
        if i.aux != u32::MAX {
            let at = k * cx.warp.local_stride + (cx.locals + i.aux) as usize;
            if let Some(bytes) = cx.warp.local.get_mut(at..at + 4) {
                bytes.copy_from_slice(&count.to_le_bytes());
            }
        }
    }
    Context::next(i)
}

/// `__assertfail`. `imm` has the offsets of the message and the file; `aux`: offset of the line.
pub unsafe fn assert_failed(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let k = cx.first_lane();
    let message = text_at(cx, k, cx.local_u64(k, i.imm as u32));
    let file = text_at(cx, k, cx.local_u64(k, (i.imm >> 32) as u32));
    let line = cx.local_u64(k, i.aux) as u32;
    cx.trap(i, TrapKind::Assert, 1 << k, format!("assertion `{message}` failed ({file}:{line})"))
}

/// `%clock` and similar registers, derived from the number of instructions that the block has issued. The clock is
/// deterministic and has no unit. Slot 0: destination, with 64 bits if `aux` is 1.
pub unsafe fn clock(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let now = cx.issued + cx.counters.warp_instructions + 1 - u64::from(i.ahead);
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: slot 0 is a row of the width in `aux`.
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

/// Executes a fence. Only the sanitizer needs it, since a warp's accesses are in program order anyway.
pub unsafe fn fence(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    sanitizer::fence(cx, i);
    if i.has(Fence::BULK) {
        sanitizer::fence_bulk(cx);
    }
    Context::next(i)
}

/// Executes an instruction that has no effect.
pub unsafe fn nothing(_: &mut Context<'_>, i: &Ins) -> *const Ins {
    Context::next(i)
}

/// Executes `cp.async.commit_group`.
pub unsafe fn commit_copies(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.shadow.commit(cx.warp.index, cx.mask);
    }
    Context::next(i)
}

/// `cp.async.wait_group`. `imm`: number of groups that may still be pending; negative for `wait_all`.
pub unsafe fn wait_for_copies(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.shadow.wait(cx.warp.index, cx.mask, u32::try_from(i.imm).ok());
    }
    Context::next(i)
}

/// Whether a generic address is in a state space, for the block with this rank in its cluster. [`StateSpace::REMOTE`]
/// is the shared memory of all blocks of the cluster.
fn lies_in(address: u64, space: StateSpace, rank: Option<u32>) -> bool {
    let (found, base) = window(address);
    let own = || matches!(owner(address - base).0, place if place.is_none() || place == rank);
    match space {
        StateSpace::REMOTE => found == StateSpace::SHARED,
        StateSpace::SHARED => found == StateSpace::SHARED && own(),
        _ => found == space,
    }
}

/// `isspacep`. Slot 0: predicate; slot 1: address; `aux`: state space.
pub unsafe fn is_space(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slot 1 is a 64-bit row, slot 0 a predicate.
    unsafe {
        let a: Row<u64> = cx.row(i.o[1]);
        let rank = Some(cx.cluster_rank());
        let bits = (0..LANES).filter(|&k| lies_in(a.0[k], i.access().space(), rank)).fold(0, |m, k| m | 1 << k);
        cx.set_pred(i.o[0], bits);
    }
    Context::next(i)
}

/// Writes the address of a local variable, in the local state space, to slot 0, a 64-bit row. `imm`: offset of the
/// variable in the function's locals.
pub unsafe fn local_address(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let address = u64::from(cx.locals).wrapping_add(i.imm as u64);
    for k in 0..LANES {
        if cx.is_active(k) {
            // SAFETY: slot 0 is a 64-bit register row.
            unsafe { cx.set_lane(i.o[0], k, address) };
        }
    }
    Context::next(i)
}
