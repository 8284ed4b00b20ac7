//! The commonest request, the short way: all 32 lanes active, one element each, side by side in global or shared memory.
//!
//! Whatever is not of that kind, would fault or is watched by the sanitizer comes back as `None` and goes the long way
//! through [`access`](super::access), which gives the same result and counts the same.

use super::access::{form, window};
use super::context::Context;
use super::row::{Ins, LANES, Row, Slot};
use crate::sim::counters::Traffic;
use crate::sim::memory::GLOBAL_BASE;

/// Bits of `aux` that a request of the common kind may have, beside its one element a lane.
const ALLOWED: u32 = form::SPACE | form::NARROW | form::STRONG;

/// Where the lanes' elements of `bytes` bytes start on the host, once checked and counted; `slot` holds the addresses.
#[inline(always)]
pub fn place(cx: &mut Context<'_>, i: &Ins, slot: Slot, bytes: u64, store: bool) -> Option<*mut u8> {
    if i.aux & !ALLOWED != 1 || cx.mask != u32::MAX || cx.launch.sanitize {
        return None;
    }
    let at = if i.aux & form::NARROW == 0 { wide(cx, i, slot, bytes)? } else { narrow(cx, i, slot, bytes)? };
    let whole = bytes * LANES as u64;
    if at & (bytes - 1) != 0 {
        return None;
    }
    let mut space = i.aux & form::SPACE;
    if space == form::GENERIC {
        space = window(at).0;
    } else if space == form::SHARED {
        let inside = at < cx.shared_len && cx.shared_len - at >= whole;
        if !inside {
            return None;
        }
        let requests = if store { &mut cx.counters.shared_store } else { &mut cx.counters.shared_load };
        requests.requests += 1;
        return Some(cx.shared.wrapping_add(at as usize));
    }
    let known = cx.cached;
    let inside = at >= known.start && at < known.end && known.end - at >= whole;
    if space != form::GLOBAL || !inside || (store && known.constant) {
        return None;
    }
    count(if store { &mut cx.counters.global_store } else { &mut cx.counters.global_load }, at, whole);
    Some(cx.launch.memory.host(GLOBAL_BASE).wrapping_add((at - GLOBAL_BASE) as usize))
}

/// The first lane's address, where the others follow it side by side.
#[inline(always)]
fn wide(cx: &Context<'_>, i: &Ins, slot: Slot, bytes: u64) -> Option<u64> {
    // SAFETY: without `NARROW` the row is a 64-bit one.
    let a: Row<u64> = unsafe { cx.row(slot) };
    let mut bent = 0;
    for k in 0..LANES {
        bent |= a.0[k] ^ a.0[0].wrapping_add(k as u64 * bytes);
    }
    (bent == 0).then(|| a.0[0].wrapping_add(i.imm as u64))
}

/// The same of 32-bit addresses.
#[inline(always)]
fn narrow(cx: &Context<'_>, i: &Ins, slot: Slot, bytes: u64) -> Option<u64> {
    // SAFETY: with `NARROW` the row is a 32-bit one.
    let a: Row<u32> = unsafe { cx.row(slot) };
    let mut bent = 0;
    for k in 0..LANES {
        bent |= a.0[k] ^ a.0[0].wrapping_add(k as u32 * bytes as u32);
    }
    (bent == 0).then(|| u64::from(a.0[0].wrapping_add(i.imm as u32)))
}

#[inline(always)]
fn count(traffic: &mut Traffic, at: u64, whole: u64) {
    let last = at + whole - 1;
    traffic.requests += 1;
    traffic.sectors += (last >> 5) - (at >> 5) + 1;
    traffic.lines += (last >> 7) - (at >> 7) + 1;
    traffic.bytes += whole;
}
