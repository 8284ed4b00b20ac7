//! `mapa`, `getctarank`, and the cluster barrier with its separate arrive and wait.
//!
//! Waiting without having arrived ends the launch, and so does arriving twice.

use crate::error::TrapKind;
use crate::exec::context::{Context, Event};
use crate::exec::sanitizer;
use crate::exec::window::{STRETCH, owner};
use crate::memory::{SHARED_WINDOW, WINDOW};
use crate::program::aux::ClusterAddress;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// Returns a lane's address as an offset in shared memory. `Err` is the handler's return value.
fn offset_of(cx: &mut Context<'_>, i: &Ins, lane: usize, address: u64) -> Result<u64, *const Ins> {
    if i.has(ClusterAddress::OFFSET) {
        // Addresses in shared memory have 32 bits, however wide their register is.
        return Ok(address & u64::from(u32::MAX));
    }
    if (SHARED_WINDOW..SHARED_WINDOW + WINDOW).contains(&address) {
        return Ok(address - SHARED_WINDOW);
    }
    let message = format!("an address in the cluster for {address:#x}, which is outside of shared memory");
    Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message))
}

/// Returns the addresses in slot 1 plus `imm`.
///
/// # Safety
///
/// Slot 1 is a row of the width in `aux`.
unsafe fn given(cx: &Context<'_>, i: &Ins) -> Row<u64> {
    let by = i.imm as u64;
    // SAFETY: slot 1 is a row of the width in `aux`.
    unsafe {
        if i.has(ClusterAddress::NARROW) {
            Row(cx.row::<u32>(i.o[1]).0.map(|a| u64::from(a.wrapping_add(by as u32))))
        } else {
            Row(cx.row::<u64>(i.o[1]).0.map(|a| a.wrapping_add(by)))
        }
    }
}

/// `mapa`. Slot 0: the address from slot 1, mapped to the block whose rank is in slot 2.
pub unsafe fn map(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: the loader assigned the slots.
    let (addresses, ranks) = unsafe { (given(cx, i), cx.row::<u32>(i.o[2])) };
    let blocks = cx.cluster_blocks();
    let active = cx.mask;
    for k in (0..LANES).filter(|&k| active >> k & 1 == 1) {
        let offset = match offset_of(cx, i, k, addresses.0[k]) {
            Ok(offset) => owner(offset).1,
            Err(stopped) => return stopped,
        };
        let rank = ranks.0[k];
        if rank >= blocks {
            let message = format!("the cluster has no block {rank}: it has {blocks}");
            return cx.trap(i, TrapKind::OutOfBounds, 1 << k, message);
        }
        let mapped = (u64::from(rank) + 1) * STRETCH + offset;
        // SAFETY: slot 0 is a row of the width in `aux`.
        unsafe {
            if i.has(ClusterAddress::NARROW) {
                cx.set_lane(i.o[0], k, mapped as u32);
            } else {
                cx.set_lane(i.o[0], k, if i.has(ClusterAddress::OFFSET) { mapped } else { SHARED_WINDOW + mapped });
            }
        }
    }
    Context::next(i)
}

/// `getctarank`. Slot 0: rank of the block that owns the address in slot 1.
pub unsafe fn rank(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: the loader assigned the slots.
    let addresses = unsafe { given(cx, i) };
    let active = cx.mask;
    for k in (0..LANES).filter(|&k| active >> k & 1 == 1) {
        let rank = match offset_of(cx, i, k, addresses.0[k]) {
            Ok(offset) => owner(offset).0.unwrap_or(cx.cluster_rank()),
            Err(stopped) => return stopped,
        };
        // SAFETY: slot 0 is a 32-bit row.
        unsafe { cx.set_lane(i.o[0], k, rank) };
    }
    Context::next(i)
}

/// Executes `barrier.cluster.arrive`.
pub unsafe fn arrive(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let again = cx.warp.arrived & cx.mask;
    if again != 0 {
        let message = "a thread arrives at the cluster barrier a second time before the others have arrived".to_owned();
        return cx.trap(i, TrapKind::Barrier, again, message);
    }
    cx.warp.arrived |= cx.mask;
    cx.counters.barriers += 1;
    cx.progress();
    sanitizer::release_block(cx);
    Context::next(i)
}

/// Executes `barrier.cluster.wait`.
pub unsafe fn wait(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let missing = cx.mask & !(cx.warp.arrived | cx.warp.released);
    if missing != 0 {
        let message = "a thread waits at the cluster barrier without having arrived".to_owned();
        return cx.trap(i, TrapKind::Barrier, missing, message);
    }
    if cx.mask & !cx.warp.released == 0 {
        cx.warp.released &= !cx.mask;
        return Context::next(i);
    }
    cx.stop_at(Event::Cluster, Context::next(i))
}
