//! Executes `cp.async.bulk` and `cp.reduce.async.bulk`, which copy or reduce many bytes per lane between global and
//! shared memory.
//!
//! Copies take effect immediately: the program must allow for this, since they may complete at any time. The sanitizer
//! reports an access to the target that does not wait for the copy, and a change of the source before it was read. As
//! on hardware, the launch fails if addresses or sizes are not multiples of 16, or if source and target are both in
//! shared memory and there is no cluster.

use crate::error::TrapKind;
use crate::exec::access::{Region, enter, misaligned};
use crate::exec::async_write::{AsyncWrite, place, write_async};
use crate::exec::cell::Cell;
use crate::exec::context::Context;
use crate::exec::window::{STRETCH, owner};
use crate::exec::{contiguous, sanitizer, traffic};
use crate::memory::GLOBAL_BASE;
use crate::program::aux;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row, instance};
use crate::sanitize::{Bulk, Fault, Op, Space, Way};

/// Addresses and sizes must be multiples of this many bytes.
const UNIT: u64 = 16;

/// Number of bits in `imm` for each of the three offsets (target, source, mbarrier object).
pub const OFFSET_BITS: u32 = 21;

const fn offset(imm: i64, which: u32) -> i64 {
    let spare = 64 - OFFSET_BITS;
    (imm << (spare - which * OFFSET_BITS)) >> spare
}

/// A lane's copy.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    to: u64,
    from: u64,
    bytes: u32,
    /// Address of the mbarrier object that counts the bytes.
    object: u64,
    /// Mask of the blocks that a multicast writes to.
    blocks: u32,
}

/// Function that copies bytes from the first address to the second, or combines them with the bytes at the second.
pub type Combine = unsafe fn(*const u8, *mut u8, usize);

/// What a copy does to its target.
#[derive(Debug, Clone, Copy)]
struct Effect {
    combine: Combine,
    reduces: bool,
}

/// Returns one of a lane's addresses. Addresses in shared memory have 32 bits, however wide their row is.
///
/// # Safety
///
/// The slot is empty or an address row, with 32 bits per lane if `i` has the flag `narrow`.
pub unsafe fn address(cx: &Context<'_>, i: &Ins, which: u32, narrow: aux::Bulk, lane: usize) -> u64 {
    let (slot, by) = (i.o[which as usize], offset(i.imm, which));
    if slot == Slot::NONE {
        return 0;
    }
    let global = [aux::Bulk::TO_GLOBAL, aux::Bulk::FROM_GLOBAL].get(which as usize).is_some_and(|&flag| i.has(flag));
    let width = if global || i.has(aux::Bulk::GENERIC) { u64::MAX } else { u64::from(u32::MAX) };
    // SAFETY: the caller guarantees the row's width.
    unsafe {
        if i.has(narrow) {
            u64::from((*cx.at::<u32>(slot).add(lane)).wrapping_add(by as u32))
        } else {
            (*cx.at::<u64>(slot).add(lane)).wrapping_add(by as u64) & width
        }
    }
}

/// `cp.async.bulk`. Slot 0: target address; slot 1: source address; slot 2: address of the mbarrier object, or none;
/// slot 3: size; slot 4: block mask, or none. `imm` has the offsets of the addresses.
pub unsafe fn bulk_copy(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { each_lane(cx, i, Effect { combine: std::ptr::copy::<u8>, reduces: false }) }
}

/// Executes `cp.reduce.async.bulk`, with the slots of [`bulk_copy`].
pub unsafe fn bulk_reduce<M: Cell, F: Fn(M, M, M) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(stopped) = enter(cx, i) {
        return stopped;
    }
    // SAFETY: same contract as this function.
    unsafe { each_lane(cx, i, Effect { combine: combine::<M, F>, reduces: true }) }
}

/// Combines source elements into the target.
///
/// # Safety
///
/// Both addresses have `bytes` valid bytes, aligned for the type.
pub unsafe fn combine<M: Cell, F: Fn(M, M, M) -> M + Copy>(from: *const u8, to: *mut u8, bytes: usize) {
    let f = instance::<F>();
    for at in (0..bytes).step_by(size_of::<M>()) {
        // SAFETY: both addresses have `bytes` valid, aligned bytes.
        unsafe {
            let operand = from.add(at).cast::<M>().read_unaligned();
            M::update(to.add(at), |old| f(old, operand, operand));
        }
    }
}

/// Performs the active lanes' copies, one after another.
///
/// # Safety
///
/// The loader assigned the slots.
unsafe fn each_lane(cx: &mut Context<'_>, i: &Ins, effect: Effect) -> *const Ins {
    let whole = cx.mask;
    for k in (0..LANES).filter(|&k| whole >> k & 1 == 1) {
        // SAFETY: the loader assigned the slots; a lane is below 32.
        let copy = unsafe {
            Transfer {
                to: address(cx, i, 0, aux::Bulk::NARROW_TO, k),
                from: address(cx, i, 1, aux::Bulk::NARROW_FROM, k),
                object: address(cx, i, 2, aux::Bulk::NARROW_OBJECT, k),
                bytes: *cx.at::<u32>(i.o[3]).add(k),
                blocks: if i.has(aux::Bulk::MULTICAST) { *cx.at::<u32>(i.o[4]).add(k) & 0xffff } else { 0 },
            }
        };
        cx.set_mask(1 << k);
        let done = perform(cx, i, k, &copy, effect);
        cx.set_mask(whole);
        if let Err(stopped) = done {
            return stopped;
        }
    }
    Context::next(i)
}

/// Performs a lane's copy. The lane is the only active one. `Err` is the handler's return value.
fn perform(cx: &mut Context<'_>, i: &Ins, lane: usize, copy: &Transfer, effect: Effect) -> Result<(), *const Ins> {
    let (from_space, to_space) = spaces(i);
    check(cx, i, lane, copy)?;
    if i.has(aux::Bulk::PREFETCH) || copy.bytes == 0 {
        return Ok(());
    }
    let from = place(cx, i, from_space, (copy.from, copy.bytes, UNIT), false)?;
    if from.space == StateSpace::REMOTE {
        let message = "a bulk copy from another block's shared memory: a block can only send its own".to_owned();
        return Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message));
    }
    let source = from.at(lane, copy.from);
    if from.space == StateSpace::GLOBAL {
        contiguous::count(&mut cx.accesses(i).global_load, copy.from, u64::from(copy.bytes));
    } else {
        cx.accesses(i).shared_load.count(0);
    }
    if cx.launch.sanitize {
        check_source(cx, i, lane, copy, &from)?;
    }
    if i.o[2] == Slot::NONE {
        return leave(cx, i, lane, copy, &from, effect);
    }
    let way = Way { reduces: effect.reduces, bulk: true };
    let send = |cx: &mut Context<'_>, to: u64, object: u64| {
        cx.accesses(i).shared_store.count(0);
        let request = AsyncWrite { to, bytes: copy.bytes, object, way };
        // SAFETY: both sides were checked to be aligned and inside their regions.
        let write = |at: *mut u8| unsafe { (effect.combine)(source, at, copy.bytes as usize) };
        write_async(cx, i, (lane, to_space), &request, source, write)
    };
    if !i.has(aux::Bulk::MULTICAST) {
        return send(cx, copy.to, copy.object);
    }
    let blocks = cx.cluster_blocks();
    for rank in (0..u32::BITS).filter(|rank| copy.blocks >> rank & 1 == 1) {
        if rank >= blocks {
            let message = format!("a bulk copy to block {rank} of a cluster of {blocks}");
            return Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message));
        }
        let there = |address: u64| (u64::from(rank) + 1) * STRETCH + owner(address).1;
        send(cx, there(copy.to), there(copy.object))?;
    }
    Ok(())
}

/// Ends the launch if the hardware would refuse the copy.
fn check(cx: &mut Context<'_>, i: &Ins, lane: usize, copy: &Transfer) -> Result<(), *const Ins> {
    let (from_space, to_space) = spaces(i);
    if !u64::from(copy.bytes).is_multiple_of(UNIT) {
        let message = format!("a bulk copy of {} bytes: the size must be a multiple of {UNIT}", copy.bytes);
        return Err(cx.trap(i, TrapKind::Misaligned, 1 << lane, message));
    }
    let prefetch = i.has(aux::Bulk::PREFETCH);
    if !prefetch && (from_space, to_space) == (StateSpace::SHARED, StateSpace::SHARED) && !cx.launch.is_clustered {
        let message = "a bulk copy from shared to shared memory in a launch without clusters: a GPU ends it with an \
                       illegal instruction";
        return Err(cx.trap(i, TrapKind::Illegal, 1 << lane, message.to_owned()));
    }
    for (space, address) in [(from_space, copy.from), (to_space, copy.to)] {
        if address & (UNIT - 1) != 0 && !(prefetch && address == copy.to) {
            return Err(misaligned(cx, &Ins { aux: Access::to(space).bits(), ..*i }, &Row([address; LANES]), UNIT));
        }
    }
    Ok(())
}

/// Returns the state spaces of the source and the target.
fn spaces(i: &Ins) -> (StateSpace, StateSpace) {
    let space = |global: bool| if global { StateSpace::GLOBAL } else { StateSpace::SHARED };
    (space(i.has(aux::Bulk::FROM_GLOBAL)), space(i.has(aux::Bulk::TO_GLOBAL)))
}

/// Checks the source of a copy for races and uninitialised bytes.
fn check_source(cx: &mut Context<'_>, i: &Ins, lane: usize, copy: &Transfer, from: &Region) -> Result<(), *const Ins> {
    let bytes = u64::from(copy.bytes);
    let global = from.space == StateSpace::GLOBAL;
    let reports_unwritten = cx.launch.shadow.ignored().reports(Fault::Unwritten);
    if global && reports_unwritten && !cx.launch.memory.is_written(copy.from, bytes) {
        return Err(traffic::uninitialised(cx, i, &Row([copy.from; LANES]), bytes));
    }
    let space = if global { Space::Global } else { Space::Shared };
    let source = Bulk { space, offset: copy.from - from.origin, bytes };
    sanitizer::bulk(cx, i, lane, source, Op::Load, from.at(lane, copy.from)).map_or(Ok(()), Err)
}

/// Performs a copy from shared to global memory. The copy belongs to the bulk group that the lane commits next.
fn leave(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    copy: &Transfer,
    from: &Region,
    effect: Effect,
) -> Result<(), *const Ins> {
    let bytes = u64::from(copy.bytes);
    if effect.reduces && cx.launch.sample.is_some() {
        return Err(cx.communicates(i));
    }
    let to = place(cx, i, StateSpace::GLOBAL, (copy.to, copy.bytes, UNIT), true)?;
    contiguous::count(&mut cx.accesses(i).global_store, copy.to, bytes);
    let source = from.at(lane, copy.from);
    if cx.launch.sanitize {
        let memory = cx.launch.memory;
        let reports_unwritten = cx.launch.shadow.ignored().reports(Fault::Unwritten);
        if effect.reduces && reports_unwritten && !memory.is_written(copy.to, bytes) {
            return Err(traffic::uninitialised(cx, i, &Row([copy.to; LANES]), bytes));
        }
        memory.mark_written(copy.to, bytes);
        let op = if effect.reduces { Op::Change } else { Op::Store };
        let target = Bulk { space: Space::Global, offset: copy.to - GLOBAL_BASE, bytes };
        if let Some(stopped) = sanitizer::bulk(cx, i, lane, target, op, source) {
            return Err(stopped);
        }
        let by = sanitizer::sender(cx, i, lane);
        cx.shadow.send_from(by, Bulk { space: Space::Shared, offset: copy.from - from.origin, bytes });
    }
    // SAFETY: both sides were checked to be aligned and inside their regions.
    unsafe { (effect.combine)(source, to.at(lane, copy.to), copy.bytes as usize) };
    Ok(())
}

/// Executes `cp.async.bulk.commit_group`.
pub unsafe fn commit(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.shadow.commit_bulk(cx.warp.index, cx.mask);
    }
    Context::next(i)
}

/// `cp.async.bulk.wait_group`: `imm` is the number of groups that may still be pending.
pub unsafe fn wait(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.shadow.wait_bulk(cx.warp.index, cx.mask, i.imm as u32);
    }
    Context::next(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_offsets_share_a_word_with_their_signs() {
        let field = |value: i64, which: u32| (value & ((1 << OFFSET_BITS) - 1)) << (which * OFFSET_BITS);
        let imm = field(-16, 0) | field(1_048_560, 1) | field(-8, 2);
        assert_eq!([offset(imm, 0), offset(imm, 1), offset(imm, 2)], [-16, 1_048_560, -8]);
    }
}
