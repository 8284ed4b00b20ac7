//! Fast path of the most frequent requests: 32 contiguous lanes in global or shared memory, or one element per lane
//! within 16 lines of global memory.
//!
//! Returns `None` for any other request, and for any that would fault or that the sanitizer might report. These take
//! the slow path through [`access`](super::access), with the same result and counts.

use crate::counters::Traffic;
use crate::exec::access::Survey;
use crate::exec::context::Context;
use crate::exec::prefetch::prefetch;
use crate::exec::window::window;
use crate::exec::{footprint, pieces, sanitizer};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};

/// Bits of `aux` that a request on this path may have, besides its one element per lane.
const ALLOWED: Access = Access::SPACE
    .union(Access::NARROW)
    .union(Access::STRONG)
    .union(Access::ACQUIRE)
    .union(Access::BLOCK_SCOPE)
    .union(Access::CLUSTER_SCOPE)
    .union(Access::CONST);
/// Like [`ALLOWED`], for addresses wider than 32 bits.
const ALLOWED_WIDE: Access = ALLOWED.difference(Access::NARROW);

/// Returns the host address of the lanes' accesses, `bytes` bytes each, after checking and counting them. `slot` holds
/// the addresses. Each lane accesses a vector of `vector` elements.
#[inline(always)]
pub fn place(cx: &mut Context<'_>, i: &Ins, slot: Slot, (bytes, vector): (u64, u32), store: bool) -> Option<*mut u8> {
    if i.aux & !ALLOWED.bits() != vector || cx.mask != u32::MAX {
        return None;
    }
    let at = if i.has(Access::NARROW) { narrow(cx, i, slot, bytes)? } else { wide(cx, i, slot, bytes)? };
    let whole = bytes * LANES as u64;
    if at & (bytes - 1) != 0 {
        return None;
    }
    let mut space = i.access().space();
    if space == StateSpace::GENERIC {
        space = window(at).0;
    } else if space == StateSpace::SHARED {
        // Only the low 32 bits of a wider register count; see `access::addresses`.
        let at = at & u64::from(u32::MAX);
        let inside = at >= cx.shared_start && at < cx.shared_end && cx.shared_end - at >= whole;
        if !inside || (cx.launch.sanitize && !sanitizer::side_by_side(cx, i, space, at, bytes, store)) {
            return None;
        }
        let counts = cx.accesses(i);
        if store { &mut counts.shared_store } else { &mut counts.shared_load }.count(0);
        return Some(cx.shared.wrapping_add(at as usize));
    }
    let known = cx.cached;
    let inside = at >= known.start && at < known.end && known.end - at >= whole;
    if space != StateSpace::GLOBAL || !inside || (store && known.constant) {
        return None;
    }
    if cx.launch.sanitize && !sanitizer::side_by_side(cx, i, space, at, bytes, store) {
        return None;
    }
    count(cx.accesses(i).global(store), at, whole);
    if !store {
        look_ahead(cx, i, at, whole);
    }
    Some(cx.launch.memory.host(GLOBAL_BASE).wrapping_add((at - GLOBAL_BASE) as usize))
}

/// Prefetches the `whole` bytes that the instruction is likely to load soon, judging by its current load at `at`.
#[inline(always)]
fn look_ahead(cx: &mut Context<'_>, i: &Ins, at: u64, whole: u64) {
    let next = cx.strides.predict(i, at);
    if cx.cached.holds(next, next, whole) {
        let host = cx.launch.memory.host(GLOBAL_BASE).wrapping_add((next - GLOBAL_BASE) as usize);
        (0..whole as usize).step_by(64).for_each(|offset| prefetch(host.wrapping_add(offset)));
    }
}

/// Returns the host address of the start of global memory, after checking and counting one access of `bytes` bytes per
/// active lane. `slot` holds the addresses, which are less than 16 lines above the first active lane's. Also returns
/// whether the active lanes have the same addresses as in a contiguous request of all lanes.
#[inline(always)]
pub fn place_near(cx: &mut Context<'_>, i: &Ins, slot: Slot, bytes: u64, store: bool) -> Option<(*mut u8, bool)> {
    let known = cx.cached;
    let generic = i.access().space() == StateSpace::GENERIC;
    let global = generic || i.access().space() == StateSpace::GLOBAL;
    if i.aux & !ALLOWED_WIDE.bits() != 1 || !global || (store && known.constant) {
        return None;
    }
    // SAFETY: without `NARROW`, the row has 64 bits per lane.
    let (a, lowest): (Row<u64>, u64) = unsafe { (cx.row(slot), *cx.at::<u64>(slot).add(cx.first_lane())) };
    let offset = i.imm as u64;
    // Rejects an allocation that is smaller than the access.
    let room = (known.end - known.start).checked_sub(bytes)?;
    let anchor = lowest.wrapping_add(offset) >> 7 << 2;
    let (mut bad, mut far, mut mismatch, mut seen) = (0, 0, 0, 0_u64);
    let start = lowest.wrapping_sub(u64::from(cx.mask.trailing_zeros() & 31) * bytes);
    for k in 0..LANES {
        let beside = start.wrapping_add(k as u64 * bytes);
        mismatch |= if cx.is_active(k) { a.0[k] ^ beside } else { 0 };
        let at = a.0[k].wrapping_add(offset);
        let sector = (at >> 5).wrapping_sub(anchor);
        let outside = at.wrapping_sub(known.start) > room;
        let unaligned = at & (bytes - 1);
        bad |= if cx.is_active(k) { unaligned | u64::from(outside) } else { 0 };
        far |= if cx.is_active(k) { sector >> 6 } else { 0 };
        seen |= if cx.is_active(k) { 1 << (sector & 63) } else { 0 };
    }
    if bad | far != 0 {
        return None;
    }
    if cx.launch.sanitize && !pieces::near(cx, i, &a, (bytes, mismatch == 0), store) {
        return None;
    }
    let distinct = if mismatch == 0 { u64::from(cx.lanes) } else { distinct(cx.mask, &a) };
    let lines = (seen | seen >> 1 | seen >> 2 | seen >> 3) & 0x1111_1111_1111_1111;
    let traffic = cx.accesses(i).global(store);
    traffic.requests += 1;
    traffic.sectors += u64::from(seen.count_ones());
    traffic.lines += u64::from(lines.count_ones());
    traffic.bytes += distinct * bytes;
    if !store {
        look_ahead(cx, i, lowest.wrapping_add(offset), LANES as u64 * bytes);
    }
    Some((cx.launch.memory.host(GLOBAL_BASE), mismatch == 0))
}

/// Returns the host address of lane 0's four-byte element, even if lane 0 is inactive, after checking and counting one
/// access to global memory per active lane. `slot` holds the addresses. The active lanes have the same addresses as in
/// a contiguous request of all lanes, so their mask alone describes the access. Not used with the sanitizer.
#[inline(always)]
pub fn place_row(cx: &mut Context<'_>, i: &Ins, slot: Slot, store: bool) -> Option<*mut u8> {
    let known = cx.cached;
    let global = matches!(i.access().space(), StateSpace::GENERIC | StateSpace::GLOBAL);
    if i.aux & !ALLOWED_WIDE.bits() != 1 || !global || (store && known.constant) || cx.launch.sanitize {
        return None;
    }
    let (first, top) = (cx.mask.trailing_zeros() & 31, (cx.mask | 1).ilog2());
    // SAFETY: without `NARROW`, the row has 64 bits per lane.
    let [lowest, highest] = [first, top].map(|k| unsafe { *cx.at::<u64>(slot).add(k as usize) });
    // Most non-contiguous requests end here.
    let start = lowest.wrapping_sub(u64::from(first) * 4);
    if highest != start.wrapping_add(u64::from(top) * 4) {
        return None;
    }
    // SAFETY: without `NARROW`, the row has 64 bits per lane.
    let a: Row<u64> = unsafe { cx.row(slot) };
    let mut mismatch = 0;
    for k in 0..LANES {
        mismatch |= if cx.is_active(k) { a.0[k] ^ start.wrapping_add(k as u64 * 4) } else { 0 };
    }
    let (origin, at) = (start.wrapping_add(i.imm as u64), lowest.wrapping_add(i.imm as u64));
    let last = highest.wrapping_add(i.imm as u64);
    if mismatch != 0 || at % 4 != 0 || !known.holds(at, at, 4) || !known.holds(last, last, 4) {
        return None;
    }
    let mask = cx.mask;
    count_row(cx.accesses(i).global(store), mask, origin);
    if !store {
        look_ahead(cx, i, at, LANES as u64 * 4);
    }
    Some(cx.launch.memory.host(GLOBAL_BASE).wrapping_add(origin.wrapping_sub(GLOBAL_BASE) as usize))
}

/// Counts the words of the lanes in `mask`. `origin` is lane 0's address, even if lane 0 is inactive.
#[inline(always)]
fn count_row(traffic: &mut Traffic, mask: u32, origin: u64) {
    // One bit per word, from the start of the first line; the lanes span at most two lines.
    let words = u64::from(mask) << (origin / 4 % 32);
    let pairs = words | words >> 1;
    let fours = pairs | pairs >> 2;
    let sectors = (fours | fours >> 4) & 0x0101_0101_0101_0101;
    traffic.requests += 1;
    traffic.sectors += u64::from(sectors.count_ones());
    traffic.lines += u64::from(words as u32 != 0) + u64::from(words >> 32 != 0);
    traffic.bytes += u64::from(mask.count_ones()) * 4;
}

/// Returns the number of distinct addresses of the lanes in `mask`.
#[inline(always)]
fn distinct(mask: u32, a: &Row<u64>) -> u64 {
    let first = a.0[(mask.trailing_zeros() & 31) as usize];
    let differ = (0..LANES).fold(0, |bits, k| bits | if mask >> k & 1 == 1 { a.0[k] ^ first } else { 0 });
    // Only one property of the survey matters here: whether there is more than one address.
    let s = Survey { lo: 0, hi: u64::from(differ != 0), low_bits: 0, contiguous: false };
    footprint::addresses(mask, a, &s)
}

/// Returns the first lane's address if the others follow it contiguously.
#[inline(always)]
fn wide(cx: &Context<'_>, i: &Ins, slot: Slot, bytes: u64) -> Option<u64> {
    // SAFETY: without `NARROW`, the row has 64 bits per lane.
    let (a, first): (Row<u64>, u64) = unsafe { (cx.row(slot), cx.first(slot)) };
    let mut mismatch = 0;
    for k in 0..LANES {
        mismatch |= a.0[k] ^ first.wrapping_add(k as u64 * bytes);
    }
    (mismatch == 0).then(|| first.wrapping_add(i.imm as u64))
}

/// [`wide`] for 32-bit addresses.
#[inline(always)]
fn narrow(cx: &Context<'_>, i: &Ins, slot: Slot, bytes: u64) -> Option<u64> {
    // SAFETY: with `NARROW`, the row has 32 bits per lane.
    let (a, first): (Row<u32>, u32) = unsafe { (cx.row(slot), cx.first(slot)) };
    let mut mismatch = 0;
    for k in 0..LANES {
        mismatch |= a.0[k] ^ first.wrapping_add(k as u32 * bytes as u32);
    }
    (mismatch == 0).then(|| u64::from(first.wrapping_add(i.imm as u32)))
}

/// Counts a request for `whole` bytes, starting at `at`.
#[inline(always)]
pub fn count(traffic: &mut Traffic, at: u64, whole: u64) {
    let last = at + whole - 1;
    traffic.requests += 1;
    traffic.sectors += (last >> 5) - (at >> 5) + 1;
    traffic.lines += (last >> 7) - (at >> 7) + 1;
    traffic.bytes += whole;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(mask: u32, origin: u64) -> [u64; 4] {
        let mut traffic = Traffic::default();
        count_row(&mut traffic, mask, origin);
        [traffic.requests, traffic.sectors, traffic.lines, traffic.bytes]
    }

    #[test]
    fn a_row_under_a_mask_touches_what_its_lanes_touch() {
        assert_eq!(counted(u32::MAX, 0x1000), [1, 4, 1, 128]);
        assert_eq!(counted(u32::MAX, 0x1004), [1, 5, 2, 128]);
        assert_eq!(counted(0x5555_5555, 0x1000), [1, 4, 1, 64]);
        assert_eq!(counted(0x0001_0001, 0x1000), [1, 2, 1, 8]);
        // Lane 0 would be in the previous line, where no lane accesses anything.
        assert_eq!(counted(0x8000_0000, 0x107c), [1, 1, 1, 4]);
        assert_eq!(counted(0x0000_0001, 0x107c), [1, 1, 1, 4]);
        assert_eq!(counted(0x8000_0001, 0x1060), [1, 2, 2, 8]);
    }
}
