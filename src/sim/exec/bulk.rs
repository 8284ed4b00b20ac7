//! `cp.async.bulk`: copies of many bytes between global and shared memory, a lane each.
//!
//! A copy lands at once, which is one of the moments that the program must expect; the sanitizer refuses to touch its
//! target before somebody has seen it land, and to change its source before it was read. What the hardware does not
//! take ends the launch: addresses and sizes that 16 does not divide, and shared memory at both ends without clusters.

use super::access::{Region, Survey, form, misaligned, region};
use super::context::Context;
use super::row::{Ins, LANES, Row, Slot};
use super::{mbarrier, monitor, straight, traffic, visits};
use crate::sim::error::TrapKind;
use crate::sim::sanitize::{Bulk, Op, Space};

/// What addresses and sizes are multiples of.
const UNIT: u64 = 16;

/// Bits of `aux` of a bulk copy: address rows of 32 bits, and where it leads.
pub const NARROW_TO: u32 = 1;
pub const NARROW_FROM: u32 = 2;
pub const NARROW_OBJECT: u32 = 4;
pub const FROM_GLOBAL: u32 = 8;
pub const TO_GLOBAL: u32 = 16;
/// Only the cache would see it.
pub const PREFETCH: u32 = 32;

/// Bits of `imm` for the offset of each of three addresses: target, source, barrier object.
pub const OFFSET_BITS: u32 = 21;

/// The offset of address `which` in `imm`.
const fn offset(imm: i64, which: u32) -> i64 {
    let spare = 64 - OFFSET_BITS;
    (imm << (spare - which * OFFSET_BITS)) >> spare
}

/// A lane's copy.
#[derive(Debug, Clone, Copy)]
struct Copy {
    to: u64,
    from: u64,
    bytes: u32,
    /// Of the barrier object that is told.
    object: u64,
}

/// An address of a lane.
///
/// # Safety
/// The slot is an address row, of 32 bits where `narrow` says so, or none.
unsafe fn address(cx: &Context<'_>, i: &Ins, which: u32, narrow: u32, lane: usize) -> u64 {
    let (slot, by) = (i.o[which as usize], offset(i.imm, which));
    if slot == Slot::NONE {
        return 0;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        if i.aux & narrow != 0 {
            u64::from((*cx.at::<u32>(slot).add(lane)).wrapping_add(by as u32))
        } else {
            (*cx.at::<u64>(slot).add(lane)).wrapping_add(by as u64)
        }
    }
}

/// `cp.async.bulk`: slot 0 is the target's address, slot 1 the source's, slot 2 that of the barrier object or none,
/// slot 3 the size; `imm` holds the addresses' offsets.
pub unsafe fn bulk_copy(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let whole = cx.mask;
    for k in (0..LANES).filter(|&k| whole >> k & 1 == 1) {
        // SAFETY: the slots are the loader's; a lane is below 32.
        let copy = unsafe {
            Copy {
                to: address(cx, i, 0, NARROW_TO, k),
                from: address(cx, i, 1, NARROW_FROM, k),
                object: address(cx, i, 2, NARROW_OBJECT, k),
                bytes: *cx.at::<u32>(i.o[3]).add(k),
            }
        };
        cx.set_mask(1 << k);
        let done = perform(cx, i, k, copy);
        cx.set_mask(whole);
        if let Err(stopped) = done {
            return stopped;
        }
    }
    Context::next(i)
}

/// Performs a lane's copy; `Err` is what the handler returns. The lane is the only active one.
fn perform(cx: &mut Context<'_>, i: &Ins, lane: usize, copy: Copy) -> Result<(), *const Ins> {
    let (from_space, to_space) = spaces(i);
    if !u64::from(copy.bytes).is_multiple_of(UNIT) {
        let message = format!("a bulk copy of {} bytes: the size is a multiple of {UNIT}", copy.bytes);
        return Err(cx.trap(i, TrapKind::Misaligned, 1 << lane, message));
    }
    let prefetch = i.aux & PREFETCH != 0;
    if !prefetch && (from_space, to_space) == (form::SHARED, form::SHARED) && cx.launch.kernel.cluster.is_none() {
        let message = "a bulk copy from shared to shared memory in a launch without clusters: a GPU ends it with an \
                       illegal instruction";
        return Err(cx.trap(i, TrapKind::Illegal, 1 << lane, message.to_owned()));
    }
    for (space, address) in [(from_space, copy.from), (to_space, copy.to)] {
        if address & (UNIT - 1) != 0 && !(prefetch && address == copy.to) {
            return Err(misaligned(cx, &Ins { aux: space, ..*i }, &Row([address; LANES]), UNIT));
        }
    }
    if prefetch || copy.bytes == 0 {
        return Ok(());
    }
    let from = place(cx, i, from_space, copy.from, copy.bytes, false)?;
    let to = place(cx, i, to_space, copy.to, copy.bytes, true)?;
    let object = if i.o[2] == Slot::NONE { None } else { Some(place(cx, i, form::SHARED, copy.object, 8, true)?) };
    if from.space == form::REMOTE {
        let message = "a bulk copy from another block's shared memory: a block sends its own".to_owned();
        return Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message));
    }
    if object.as_ref().is_some_and(|object| visits::rank(cx, object) != visits::rank(cx, &to)) {
        let message = "a bulk copy to one block that is told to a barrier object of another".to_owned();
        return Err(cx.trap(i, TrapKind::Barrier, 1 << lane, message));
    }
    let (source, target) = (from.at(lane, copy.from), to.at(lane, copy.to));
    count(cx, &copy, (from_space, to_space));
    if cx.launch.sanitize {
        watch(cx, i, lane, &copy, (&from, &to), object.as_ref())?;
    }
    // SAFETY: both sides were checked to lie in their regions; `copy` allows overlap.
    unsafe { std::ptr::copy(source, target, copy.bytes as usize) };
    match object {
        // SAFETY: the object was checked to lie in shared memory.
        Some(r) => unsafe { mbarrier::complete(cx, i, lane, &r, copy.object, copy.bytes) },
        None => Ok(()),
    }
}

/// The spaces of source and target.
fn spaces(i: &Ins) -> (u32, u32) {
    let of = |global: bool| if global { form::GLOBAL } else { form::SHARED };
    (of(i.aux & FROM_GLOBAL != 0), of(i.aux & TO_GLOBAL != 0))
}

/// The region of one side; `Err` is what the handler returns.
fn place(
    cx: &mut Context<'_>,
    i: &Ins,
    space: u32,
    address: u64,
    bytes: u32,
    store: bool,
) -> Result<Region, *const Ins> {
    let i = &Ins { aux: space, ..*i };
    let a = Row([address; LANES]);
    if bytes == 8 && address & 7 != 0 {
        return Err(misaligned(cx, i, &a, 8));
    }
    let survey = Survey { lo: address, hi: address, low_bits: 0, straight: false };
    region(cx, i, &a, &survey, u64::from(bytes), store)
}

/// Counts a copy as one request to each space that it touches.
fn count(cx: &mut Context<'_>, copy: &Copy, (from, to): (u32, u32)) {
    let bytes = u64::from(copy.bytes);
    if from == form::GLOBAL {
        straight::count(&mut cx.counters.global_load, copy.from, bytes);
    } else {
        cx.counters.shared_load.requests += 1;
    }
    if to == form::GLOBAL {
        straight::count(&mut cx.counters.global_store, copy.to, bytes);
    } else {
        cx.counters.shared_store.requests += 1;
    }
}

/// Checks what a copy reads and writes against what came before, and says that it is on its way.
fn watch(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    copy: &Copy,
    (from, to): (&Region, &Region),
    object: Option<&Region>,
) -> Result<(), *const Ins> {
    let bytes = u64::from(copy.bytes);
    let memory = cx.launch.memory;
    if from.space == form::GLOBAL && !memory.is_written(copy.from, bytes) {
        return Err(traffic::uninitialised(cx, i, &Row([copy.from; LANES]), bytes));
    }
    if to.space == form::GLOBAL {
        memory.mark_written(copy.to, bytes);
    }
    let by = monitor::sender(cx, i, lane);
    let space = |r: &Region| if r.space == form::GLOBAL { Space::Global } else { Space::Shared };
    let source = Bulk { space: space(from), offset: copy.from - from.origin, bytes };
    let target = Bulk { space: space(to), offset: copy.to - to.origin, bytes };
    let host = from.at(lane, copy.from);
    let remote = to.space == form::REMOTE;
    for (side, op) in [(source, Op::Load), (target, Op::Store)].into_iter().take(if remote { 1 } else { 2 }) {
        if let Some(stopped) = monitor::bulk(cx, i, by, side, op, host) {
            return Err(stopped);
        }
    }
    match object {
        Some(object) if remote => {
            visits::owner(cx, to).sent_from_afar(by, target, copy.object - object.origin);
        }
        Some(object) => cx.monitor.send_bulk(by, target, copy.object - object.origin),
        None => cx.monitor.lend(by, source),
    }
    Ok(())
}

/// `cp.async.bulk.commit_group`.
pub unsafe fn commit(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.monitor.commit_bulk(cx.warp.index, cx.mask);
    }
    Context::next(i)
}

/// `cp.async.bulk.wait_group`: `imm` is the number of groups that need not be there.
pub unsafe fn wait(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if cx.launch.sanitize {
        cx.monitor.wait_bulk(cx.warp.index, cx.mask, i.imm as u32);
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
