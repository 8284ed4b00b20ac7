//! Prepares every memory access, in any state space: computes the lanes' addresses, surveys them (range, alignment,
//! contiguity) and checks bounds, once for the whole request if possible.

use crate::error::{Site, TrapKind};
use crate::exec::context::Context;
use crate::exec::findings;
use crate::exec::window::{STRETCH, owner, window};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};

/// Fuel that a polling access costs, in addition to the back edge of its loop.
const POLL_COST: u32 = 63;

/// Properties of a request's addresses, over the active lanes.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    pub lo: u64,
    pub hi: u64,
    /// A bit that is zero here is zero in every address, which is enough to check alignment.
    pub low_bits: u64,
    /// Whether lane `k`'s address is a common start plus `k` times the access size.
    pub contiguous: bool,
}

/// Host memory of a region.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    pub host: *mut u8,
    /// Simulated address of the byte at `host`.
    pub origin: u64,
    /// Bytes between the local memories of neighbouring lanes; 0 in the other state spaces.
    pub stride: usize,
    pub space: StateSpace,
}

impl Region {
    #[inline(always)]
    pub fn at(&self, lane: usize, address: u64) -> *mut u8 {
        // In bounds: the survey has checked the address against the region.
        self.host.wrapping_add((address - self.origin) as usize).wrapping_add(lane * self.stride)
    }
}

/// Returns the addresses of all lanes. PTX truncates them to the width of the state space: 32 bits, except for global
/// memory and generic addresses.
#[inline(always)]
pub fn addresses(cx: &Context<'_>, i: &Ins, slot: Slot) -> Row<u64> {
    let mut offset = i.imm as u64;
    if i.has(Access::FRAME) {
        offset = offset.wrapping_add(u64::from(cx.locals));
    }
    let width = match i.access().space() {
        StateSpace::SHARED | StateSpace::LOCAL | StateSpace::PARAM => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    if i.has(Access::ABSOLUTE) {
        return Row([offset & width; LANES]);
    }
    let mut out = Row([0; LANES]);
    if i.has(Access::NARROW) {
        // SAFETY: the loader sets the bit only for 32-bit rows.
        let a: Row<u32> = unsafe { cx.row(slot) };
        for k in 0..LANES {
            out.0[k] = u64::from(a.0[k].wrapping_add(offset as u32));
        }
    } else {
        // SAFETY: without the bit, the row has 64 bits per lane.
        let a: Row<u64> = unsafe { cx.row(slot) };
        // If the compiler knew the number of lanes, it would write some of them one by one, and a later vector load
        // would have to wait for those writes.
        let lanes = std::hint::black_box(LANES).min(LANES);
        for k in 0..lanes {
            out.0[k] = a.0[k].wrapping_add(offset) & width;
        }
    }
    out
}

/// Restores constant addresses that were truncated to 32 bits. The simulator keeps constants in global memory, so an
/// address outside every allocation stands for the constant with the same low 32 bits.
#[inline(never)]
pub fn truncate_constants(cx: &Context<'_>, a: &mut Row<u64>) {
    let memory = cx.launch.memory;
    for k in (0..LANES).filter(|&k| cx.is_active(k)) {
        let address = a.0[k];
        if !cx.cached.holds(address, address, 1) && memory.extent(address).is_none() {
            a.0[k] = memory.constant(address as u32).unwrap_or(address);
        }
    }
}

/// Surveys the active lanes' addresses, for accesses of `bytes` bytes each.
#[inline(always)]
pub fn survey(cx: &Context<'_>, a: &Row<u64>, bytes: u64) -> Survey {
    let first = cx.first_lane();
    let last = (cx.mask | 1).ilog2() as usize;
    // Access sizes are powers of two, and vector units shift faster than they multiply.
    let shift = bytes.trailing_zeros();
    let start = a.0[first].wrapping_sub((first as u64) << shift);
    let mut mismatch = 0;
    for k in 0..LANES {
        let apart = a.0[k] ^ start.wrapping_add((k as u64) << shift);
        mismatch |= if cx.is_active(k) { apart } else { 0 };
    }
    if mismatch == 0 && a.0[last] >= a.0[first] {
        return Survey { lo: a.0[first], hi: a.0[last], low_bits: a.0[first], contiguous: true };
    }
    let (mut lo, mut hi, mut low_bits) = (u64::MAX, 0, 0);
    for k in 0..LANES {
        // Inactive lanes repeat the first active lane's address, which does not change the result.
        let x = if cx.is_active(k) { a.0[k] } else { a.0[first] };
        lo = if x < lo { x } else { lo };
        hi = if x > hi { x } else { hi };
        low_bits |= x;
    }
    Survey { lo, hi, low_bits, contiguous: false }
}

/// Finds the region that contains the addresses of all active lanes, which must be in the same region. `Err` is the
/// handler's return value.
#[inline(always)]
pub fn region(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    s: &Survey,
    bytes: u64,
    store: bool,
) -> Result<Region, *const Ins> {
    if s.low_bits & (bytes - 1) != 0 {
        return Err(misaligned(cx, i, a, bytes));
    }
    let mut space = i.access().space();
    let mut base = 0;
    if space == StateSpace::GENERIC {
        (space, base) = window(s.lo);
    }
    match space {
        StateSpace::GLOBAL => {
            if !cx.cached.holds(s.lo, s.hi, bytes) {
                locate(cx, i, a, bytes, store)?;
            } else if store && cx.cached.constant {
                return Err(read_only(cx, i, a, cx.first_lane()));
            }
            Ok(Region { host: cx.launch.memory.host(GLOBAL_BASE), origin: GLOBAL_BASE, stride: 0, space })
        }
        StateSpace::SHARED => {
            if s.lo - base < cx.shared_start || s.hi - base + bytes > cx.shared_end {
                return in_cluster(cx, i, a, s, base, bytes);
            }
            Ok(Region { host: cx.shared, origin: base, stride: 0, space })
        }
        StateSpace::LOCAL => {
            let top = cx.locals + cx.launch.kernel.functions[cx.function].locals;
            if s.hi - base + bytes > u64::from(top) {
                return Err(outside(cx, i, a, base, u64::from(top), bytes, "local memory"));
            }
            Ok(Region { host: cx.warp.local.as_mut_ptr(), origin: base, stride: cx.warp.local_stride, space })
        }
        _ => {
            let len = cx.launch.params.len() as u64;
            if store || s.hi - base + bytes > len {
                return Err(outside(cx, i, a, base, len, bytes, "kernel parameters"));
            }
            Ok(Region { host: cx.launch.params.as_ptr().cast_mut(), origin: base, stride: 0, space })
        }
    }
}

/// Returns the region of a request to shared memory beyond the block's own window, which belongs to a block of the
/// cluster.
#[cold]
fn in_cluster(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    s: &Survey,
    base: u64,
    bytes: u64,
) -> Result<Region, *const Ins> {
    let (rank, first) = owner(s.lo - base);
    let origin = s.lo - first;
    let inside = first >= cx.shared_start && s.hi - origin + bytes <= cx.shared_end;
    let known = rank.filter(|&rank| rank < cx.cluster_blocks() && inside);
    let Some(rank) = known else {
        let start = if rank.is_some_and(|rank| rank < cx.cluster_blocks()) { origin } else { base };
        let (first, len) = (start + cx.shared_start, cx.shared_end - cx.shared_start);
        return Err(outside(cx, i, a, first, len, bytes, "shared memory"));
    };
    if rank == cx.cluster_rank() {
        return Ok(Region { host: cx.shared, origin, stride: 0, space: StateSpace::SHARED });
    }
    let host = reach(cx, i, rank)?;
    Ok(Region { host, origin, stride: 0, space: StateSpace::REMOTE })
}

/// Returns the state space of an address, and the start of its region.
#[inline(always)]
fn region_start(space: StateSpace, address: u64) -> (StateSpace, u64) {
    let (space, base) = if space == StateSpace::GENERIC { window(address) } else { (space, 0) };
    let places = if space == StateSpace::SHARED { (address - base) / STRETCH } else { 0 };
    (space, base + places * STRETCH)
}

/// Returns the lanes in the same region as the first active lane.
#[inline(always)]
pub fn same_region(cx: &Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey) -> u32 {
    let space = i.access().space();
    if !matches!(space, StateSpace::GENERIC | StateSpace::SHARED)
        || region_start(space, s.lo) == region_start(space, s.hi)
    {
        return cx.mask;
    }
    let first = region_start(space, a.0[cx.first_lane()]);
    (0..LANES).filter(|&k| cx.mask >> k & 1 == 1 && region_start(space, a.0[k]) == first).fold(0, |m, k| m | 1 << k)
}

/// Slow path of the bounds check: checks each lane separately and caches the last lane's allocation.
#[cold]
#[inline(never)]
fn locate(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, bytes: u64, store: bool) -> Result<(), *const Ins> {
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let address = a.0[k];
        if !cx.cached.holds(address, address, bytes) {
            match cx.launch.memory.extent(address) {
                Some(found) if bytes <= found.end - address => cx.cached = found,
                _ => return Err(out_of_bounds(cx, i, k as u32, (address, bytes), store)),
            }
        }
        if store && cx.cached.constant {
            return Err(read_only(cx, i, a, k));
        }
    }
    Ok(())
}

#[cold]
fn out_of_bounds(cx: &mut Context<'_>, i: &Ins, lane: u32, (address, bytes): (u64, u64), store: bool) -> *const Ins {
    let message = findings::out_of_bounds(cx.launch, address, bytes, store);
    let kind = if findings::is_absent_workspace(address) { TrapKind::Barrier } else { TrapKind::OutOfBounds };
    fault(cx, i, kind, lane, message, address)
}

#[cold]
pub fn misaligned(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, bytes: u64) -> *const Ins {
    let lane = (0..LANES).find(|&k| cx.mask >> k & 1 == 1 && a.0[k] & (bytes - 1) != 0).unwrap_or(0);
    let site = findings::site_of(cx.launch, i.access().space(), a.0[lane]);
    let message = format!("misaligned {bytes}-byte access to {site}");
    fault(cx, i, TrapKind::Misaligned, lane as u32, message, a.0[lane])
}

#[cold]
fn read_only(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, lane: usize) -> *const Ins {
    let address = a.0[lane];
    let site = findings::site_of(cx.launch, i.access().space(), address);
    fault(cx, i, TrapKind::OutOfBounds, lane as u32, format!("a store to constant memory at {site}"), address)
}

#[cold]
fn outside(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, base: u64, len: u64, bytes: u64, what: &str) -> *const Ins {
    let bad = |k: usize| a.0[k].wrapping_sub(base).saturating_add(bytes) > len;
    let lane = (0..LANES).find(|&k| cx.mask >> k & 1 == 1 && bad(k)).unwrap_or(0);
    let offset = a.0[lane].wrapping_sub(base);
    let message = findings::outside(what, len, offset, bytes);
    let stopped = cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message);
    cx.locate_trap(Site::inside(what, offset));
    stopped
}

/// Ends the launch with a fault of one lane's access to an address.
fn fault(cx: &mut Context<'_>, i: &Ins, kind: TrapKind, lane: u32, message: String, address: u64) -> *const Ins {
    let site = findings::site_of(cx.launch, i.access().space(), address);
    let stopped = cx.trap(i, kind, 1 << lane, message);
    cx.locate_trap(site);
    stopped
}

/// Prepares an access: waits for the block's place in commit order and charges fuel for a poll.
#[inline(always)]
pub fn enter(cx: &mut Context<'_>, i: &Ins) -> Option<*const Ins> {
    if i.has(Access::ORDERED) {
        if let Some(stopped) = cx.wait_for_commit(i) {
            return Some(stopped);
        }
        cx.shadow.note_commit();
    }
    if i.has(Access::POLL) {
        // A path that polls yields to the others sooner than one that computes.
        cx.fuel = cx.fuel.saturating_sub(POLL_COST);
    }
    None
}

/// Counts a poll if the instruction accesses the same address as last time. Any other access is progress.
#[inline(always)]
pub fn poll(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>) {
    if i.has(Access::POLL) {
        let address = a.0[cx.first_lane()];
        cx.poll(i, address);
    }
}

/// Performs a generic request whose lanes are in different windows, one window at a time.
///
/// # Safety
///
/// `i` must come from the loader.
#[cold]
#[inline(never)]
pub unsafe fn split(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey) -> *const Ins {
    let whole = cx.mask;
    let first = same_region(cx, i, a, s);
    let unordered = Ins { aux: i.access().difference(Access::ORDERED | Access::POLL).bits(), ..*i };
    let mut next = std::ptr::null();
    for mask in [first, whole & !first] {
        cx.set_mask(mask);
        // SAFETY: `i` comes from the loader; the copy differs only in flags.
        next = unsafe { (unordered.run.handler())(cx, &unordered) };
        if next.is_null() {
            break;
        }
    }
    cx.set_mask(whole);
    if next.is_null() { next } else { Context::next(i) }
}

/// Returns the host address of another block's shared memory. `Err` is the handler's return value if the access is not
/// allowed.
pub fn reach(cx: &mut Context<'_>, i: &Ins, rank: u32) -> Result<*mut u8, *const Ins> {
    let Some(peer) = cx.peers.get(rank as usize) else {
        let message = format!("the cluster has no block {rank}");
        return Err(cx.trap(i, TrapKind::OutOfBounds, cx.mask, message));
    };
    let (shared, [x, y, z]) = (peer.shared, peer.index);
    if peer.ended {
        let message = format!("access to the shared memory of block ({x},{y},{z}), which has ended");
        return Err(cx.trap(i, TrapKind::OutOfBounds, cx.mask, message));
    }
    if cx.launch.sanitize && !cx.shadow.cluster_has_started() {
        let message = format!(
            "access to the shared memory of block ({x},{y},{z}) before the blocks of the cluster have synchronised: \
             that block may not have started"
        );
        return Err(cx.trap(i, TrapKind::Race, cx.mask, message));
    }
    Ok(shared)
}
