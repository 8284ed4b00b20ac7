//! Executes `cp.async`, which copies from global to shared memory.
//!
//! Copies take effect immediately: the program must allow for this, since they may complete at any time. The sanitizer
//! reports an access to the bytes of a copy that has not been waited for.

use crate::error::TrapKind;
use crate::exec::access::{addresses, misaligned, region, survey};
use crate::exec::context::Context;
use crate::exec::{footprint, sanitizer, traffic};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};

/// Starts a copy. Slot 0: shared address; slot 1: global address; slot 2: number of bytes to read, if fewer than the
/// size; the rest is filled with zeros. `imm` has the offsets, the upper half of `aux` the size.
pub unsafe fn copy_async(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let bytes = i.aux >> 16;
    let to_form = Ins {
        aux: (Access::to(StateSpace::SHARED) | i.access() & Access::NARROW).bits(),
        imm: i.imm & 0xffff_ffff,
        ..*i
    };
    let from_form = Ins { aux: Access::to(StateSpace::GLOBAL).bits(), imm: i.imm >> 32, ..*i };
    let (to, from) = (addresses(cx, &to_form, i.o[0]), addresses(cx, &from_form, i.o[1]));
    let width = u64::from(bytes);
    let to_survey = survey(cx, &to, width);
    let target = match region(cx, &to_form, &to, &to_survey, width, true) {
        Ok(r) => r,
        Err(stopped) => return stopped,
    };
    if target.space == StateSpace::REMOTE {
        let message =
            "an asynchronous copy to another block's shared memory, which only bulk copies can write".to_owned();
        return cx.trap(i, TrapKind::OutOfBounds, cx.mask, message);
    }
    let mut wanted = Row([bytes; LANES]);
    if i.o[2] != Slot::NONE {
        // SAFETY: slot 2, if present, is a 32-bit row.
        let fewer: Row<u32> = unsafe { cx.row(i.o[2]) };
        wanted.0.iter_mut().zip(fewer.0).for_each(|(wanted, fewer)| *wanted = fewer.min(bytes));
    }
    let whole = cx.mask;
    let checked = read(cx, &from_form, &from, &wanted, bytes);
    cx.set_mask(whole);
    if let Err(stopped) = checked {
        return stopped;
    }
    cx.accesses(i).shared_store.count(0);
    if cx.launch.sanitize
        && let Some(stopped) = sanitizer::copy(cx, i, &to, &to_survey, &target, width)
    {
        return stopped;
    }
    for k in (0..LANES).filter(|&k| whole >> k & 1 == 1) {
        let wanted = wanted.0[k] as usize;
        // SAFETY: the bytes to read and the whole target were checked.
        unsafe {
            let at = target.at(k, to.0[k]);
            if wanted > 0 {
                std::ptr::copy_nonoverlapping(cx.launch.memory.host(from.0[k]), at, wanted);
            }
            std::ptr::write_bytes(at.add(wanted), 0, bytes as usize - wanted);
        }
        if cx.launch.sanitize {
            let line = cx.launch.shadow.line(cx.function, i.line);
            cx.shadow.send(cx.warp.index, k, to.0[k] - target.origin, bytes, line);
        }
    }
    Context::next(i)
}

/// Checks and counts the reads of a copy. May change the active mask. `Err` is the handler's return value.
///
/// A lane accesses only the bytes that it reads. If it reads none, its address may be anything.
fn read(cx: &mut Context<'_>, i: &Ins, from: &Row<u64>, wanted: &Row<u32>, bytes: u32) -> Result<(), *const Ins> {
    let whole = cx.mask;
    let lanes_of = |of: &dyn Fn(u32) -> bool| {
        (0..LANES).filter(|&k| whole >> k & 1 == 1 && of(wanted.0[k])).fold(0_u32, |m, k| m | 1 << k)
    };
    let (reading, short) = (lanes_of(&|n| n > 0), lanes_of(&|n| n > 0 && n < bytes));
    if reading == 0 {
        return Ok(());
    }
    let width = u64::from(bytes);
    cx.set_mask(reading);
    let all = survey(cx, from, width);
    if all.low_bits & (width - 1) != 0 {
        return Err(misaligned(cx, i, from, width));
    }
    let mut counted = cx.accesses(i).global_load;
    footprint::count(&mut counted, reading, from, &all, width);
    let spared = (0..LANES).filter(|&k| short >> k & 1 == 1).map(|k| width - u64::from(wanted.0[k])).sum();
    counted.bytes = counted.bytes.saturating_sub(spared);
    part(cx, i, from, reading & !short, width)?;
    // A short read is split into aligned powers of two.
    for piece in [8, 4, 2, 1] {
        let lanes = short & lanes_of(&|n| n & piece != 0);
        let mut at = *from;
        at.0.iter_mut().zip(wanted.0).for_each(|(at, n)| *at = at.wrapping_add(u64::from(n & !(2 * piece - 1))));
        part(cx, i, &at, lanes, u64::from(piece))?;
    }
    // All these reads count as one request.
    cx.accesses(i).global_load = counted;
    Ok(())
}

/// Checks the reads of the given lanes.
fn part(cx: &mut Context<'_>, i: &Ins, at: &Row<u64>, lanes: u32, bytes: u64) -> Result<(), *const Ins> {
    if lanes == 0 {
        return Ok(());
    }
    cx.set_mask(lanes);
    let s = survey(cx, at, bytes);
    let r = region(cx, i, at, &s, bytes, false)?;
    debug_assert_eq!(r.origin, GLOBAL_BASE);
    traffic::load(cx, i, at, &s, &r, bytes).map_or(Ok(()), Err)
}
