//! Operations across the lanes of a warp, except shuffles: votes, match, reductions and barrier arrivals.

use std::ptr;

use crate::error::TrapKind;
use crate::exec::context::{Arrival, Context, Event, Handler};
use crate::exec::control;
use crate::program::aux::{Barrier, Vote};
use crate::program::ins::{Ins, Slot};
use crate::program::row;
use crate::program::row::{LANES, Lane as _, Row, flags};

/// Waits for the lanes of the member mask in `slot`. `Err` is the handler's return value while lanes are missing.
pub fn members(cx: &mut Context<'_>, i: &Ins, slot: Slot) -> Result<u32, *const Ins> {
    // SAFETY: the slot is a 32-bit row.
    let masks: Row<u32> = unsafe { cx.row(slot) };
    let mask = masks.0[cx.first_lane()];
    if mask & cx.mask != cx.mask {
        let missing = cx.mask & !mask;
        let message = format!("a lane executes a warp operation whose mask {mask:#010x} does not include it");
        return Err(cx.trap(i, TrapKind::Shuffle, missing, message));
    }
    let wanted = mask & cx.alive();
    if wanted & !cx.mask != 0 {
        cx.warp.awaited.retain(|&(at, _)| !ptr::eq(at, i));
        let expected = wanted & !exiting(cx);
        cx.warp.awaited.push((i, expected));
        return Err(cx.stop_at(Event::Lanes { wanted }, i));
    }
    if !cx.warp.awaited.is_empty() {
        note_absent(cx, i);
    }
    let alive = cx.alive();
    cx.shadow.warp_sync(cx.warp.index, cx.mask, alive);
    Ok(mask)
}

/// Returns the lanes on waiting paths that have nothing left to do but exit.
fn exiting(cx: &Context<'_>) -> u32 {
    let (mut seen, mut exiting) = (cx.mask, 0);
    for waiting in cx.stack.iter().rev() {
        // A lane continues on its topmost path in the stack.
        let lanes = waiting.mask & !seen;
        seen |= lanes;
        if control::leads_to_exit(waiting.pc) {
            exiting |= lanes;
        }
    }
    exiting
}

/// Records lanes that exited although an operation waited for them. PTX waits for "all non-exited threads" of the mask
/// (PTX ISA, `shfl.sync`). CUDA C++ requires all non-exited threads named in the mask to execute the operation, and
/// otherwise leaves the result undefined (CUDA C++ Programming Guide, "Warp Shuffle Functions").
#[cold]
fn note_absent(cx: &mut Context<'_>, i: &Ins) {
    let Some(at) = cx.warp.awaited.iter().position(|&(at, _)| ptr::eq(at, i)) else { return };
    let (_, wanted) = cx.warp.awaited.swap_remove(at);
    let absent = wanted & cx.warp.exited;
    if absent != 0 && cx.launch.sanitize {
        let line = cx.launch.shadow.line(cx.function, i.line);
        let (warp, here) = (cx.warp.index, cx.first_lane());
        cx.shadow.note_absent(absent, (warp, here as u32, line));
    }
}

/// Runs `part` for each group of lanes with the same member mask if the active lanes have several masks, as tiles of a
/// partition do. `None` if all have the same mask.
#[inline(always)]
pub fn by_members(cx: &mut Context<'_>, i: &Ins, slot: Slot, part: Handler) -> Option<*const Ins> {
    // SAFETY: the slot is a 32-bit row.
    let masks: Row<u32> = unsafe { cx.row(slot) };
    let first = masks.0[cx.first_lane()];
    if masks.0.iter().fold(0, |differ, mask| differ | (mask ^ first)) == 0 {
        return None;
    }
    let mut differ = 0;
    for k in 0..LANES {
        differ |= if cx.is_active(k) { masks.0[k] ^ first } else { 0 };
    }
    if differ == 0 { None } else { Some(each_group(cx, i, &masks, part)) }
}

#[cold]
fn each_group(cx: &mut Context<'_>, i: &Ins, masks: &Row<u32>, part: Handler) -> *const Ins {
    let (whole, alive) = (cx.mask, cx.alive());
    let groups = || {
        let mut left = whole;
        std::iter::from_fn(move || {
            let mask = (left != 0).then(|| masks.0[(left.trailing_zeros() & 31) as usize])?;
            let group = left & same(masks, mask);
            left &= !group;
            Some((group, mask))
        })
    };
    for (group, mask) in groups() {
        if mask & whole != group {
            let message = format!(
                "lanes {group:#010x} pass the mask {mask:#010x}, but other lanes in that mask pass a different one"
            );
            return cx.trap(i, TrapKind::Shuffle, group, message);
        }
    }
    // Lanes on other paths arrive later or exit.
    let missing = groups().fold(0, |missing, (_, mask)| missing | mask & alive & !whole);
    if missing != 0 {
        return cx.stop_at(Event::Lanes { wanted: whole | missing }, i);
    }
    for (group, _) in groups() {
        cx.set_mask(group);
        // SAFETY: the instruction is the same, with fewer active lanes, which all have the same member mask.
        let next = unsafe { part(cx, i) };
        cx.set_mask(whole);
        if next.is_null() {
            return next;
        }
    }
    Context::next(i)
}

fn same(rows: &Row<u32>, value: u32) -> u32 {
    (0..LANES).filter(|&k| rows.0[k] == value).fold(0, |m, k| m | 1 << k)
}

#[inline(always)]
pub fn write_u32(cx: &mut Context<'_>, slot: Slot, values: &Row<u32>) {
    if slot == Slot::NONE {
        return;
    }
    // SAFETY: the slot is a 32-bit register row.
    let d = unsafe { cx.row_mut::<u32>(slot) };
    if cx.mask == u32::MAX {
        *d = *values;
        return;
    }
    for (k, on) in flags(cx.mask).into_iter().enumerate() {
        d.0[k] = d.0[k].blend(values.0[k], on);
    }
}

/// Modes of `vote`, in the low bits of `aux`.
pub const ALL: u32 = 0;
pub const ANY: u32 = 1;
pub const UNIFORM: u32 = 2;
pub const BALLOT: u32 = 3;

/// `vote.sync`. Slot 0: destination; slot 1: source predicate; slot 2: member mask.
pub unsafe fn vote(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[2], vote) {
        return next;
    }
    if let Err(stopped) = members(cx, i, i.o[2]) {
        return stopped;
    }
    // SAFETY: slot 1 is a predicate; slot 0 is a predicate or a 32-bit row, depending on the mode.
    unsafe {
        let bits = cx.pred(i.o[1]) ^ if i.has(Vote::NEGATED) { u32::MAX } else { 0 };
        let yes = bits & cx.mask;
        let result = match i.aux & 3 {
            BALLOT => {
                write_u32(cx, i.o[0], &Row([yes; LANES]));
                return Context::next(i);
            }
            ALL => yes == cx.mask,
            ANY => yes != 0,
            _ => yes == cx.mask || yes == 0,
        };
        cx.set_pred(i.o[0], if result { u32::MAX } else { 0 });
    }
    Context::next(i)
}

/// `match.any.sync` (`aux` is 0) and `match.all.sync` (`aux` is 1). Slot 0: destination; slot 1: predicate, or none;
/// slot 2: source, with 64 bits if `imm` is 1; slot 3: member mask.
pub unsafe fn matching(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[3], matching) {
        return next;
    }
    if let Err(stopped) = members(cx, i, i.o[3]) {
        return stopped;
    }
    let mut values = [0_u64; LANES];
    // SAFETY: slot 2 is a row of the width in `imm`.
    unsafe {
        if i.imm == 1 {
            values = cx.row::<u64>(i.o[2]).0;
        } else {
            values.iter_mut().zip(cx.row::<u32>(i.o[2]).0).for_each(|(wide, narrow)| *wide = u64::from(narrow));
        }
    }
    let mut out = Row([0; LANES]);
    for k in 0..LANES {
        let equal = (0..LANES).filter(|&j| values[j] == values[k]).fold(0_u32, |m, j| m | 1 << j) & cx.mask;
        out.0[k] = if i.aux == 0 || equal == cx.mask { equal } else { 0 };
    }
    let first = cx.first_lane();
    let all = out.0[first] == cx.mask;
    write_u32(cx, i.o[0], &out);
    // SAFETY: slot 1 is a predicate or none.
    unsafe { cx.set_pred(i.o[1], if all { u32::MAX } else { 0 }) };
    Context::next(i)
}

/// `elect.sync`: elects the lowest lane. Slot 0: destination, or none; slot 1: predicate, or none; slot 2: member mask.
pub unsafe fn elect(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[2], elect) {
        return next;
    }
    if let Err(stopped) = members(cx, i, i.o[2]) {
        return stopped;
    }
    let lane = cx.mask.trailing_zeros() & 31;
    write_u32(cx, i.o[0], &Row([lane; LANES]));
    // SAFETY: slot 1 is a predicate or none.
    unsafe { cx.set_pred(i.o[1], 1 << lane) };
    Context::next(i)
}

/// `redux.sync`. Slot 0: destination; slot 1: source; slot 2: member mask. Applies `M` to every value before `F`
/// combines them.
pub unsafe fn reduce<M: Fn(u32) -> u32 + Copy, F: Fn(u32, u32) -> u32 + Copy>(
    cx: &mut Context<'_>,
    i: &Ins,
) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[2], reduce::<M, F>) {
        return next;
    }
    if let Err(stopped) = members(cx, i, i.o[2]) {
        return stopped;
    }
    let (m, f) = (row::instance::<M>(), row::instance::<F>());
    // SAFETY: slot 1 is a 32-bit row.
    let a: Row<u32> = unsafe { cx.row(i.o[1]) };
    let active = (0..LANES).filter(|k| cx.mask >> k & 1 == 1).map(|k| m(a.0[k]));
    let result = active.reduce(f).unwrap_or(0);
    write_u32(cx, i.o[0], &Row([result; LANES]));
    Context::next(i)
}

/// Returns the handler of a `redux` with this operation. The closure must capture nothing.
pub fn reducer<F: Fn(u32, u32) -> u32 + Copy>(operation: F) -> Handler {
    mapped_reducer(|x: u32| x, operation)
}

/// Returns the handler of a `redux` that maps every value first. The closures must capture nothing.
pub fn mapped_reducer<M: Fn(u32) -> u32 + Copy, F: Fn(u32, u32) -> u32 + Copy>(_map: M, _operation: F) -> Handler {
    reduce::<M, F>
}

/// `bar.warp.sync`: slot 0 is the member mask.
pub unsafe fn warp_sync(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[0], warp_sync) {
        return next;
    }
    match members(cx, i, i.o[0]) {
        Ok(_) => Context::next(i),
        Err(stopped) => stopped,
    }
}

/// `activemask`: slot 0 is the destination.
pub unsafe fn active_mask(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let mask = cx.mask;
    write_u32(cx, i.o[0], &Row([mask; LANES]));
    Context::next(i)
}

/// `bar.sync`, `bar.red`, `bar.arrive`. Slot 0: barrier id; slot 1: thread count; slot 2: predicate.
pub unsafe fn barrier(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let first = cx.first_lane();
    if i.aux & !Barrier::ALIGNED.bits() == 0 {
        // SAFETY: slot 0 is a 32-bit row.
        let id = unsafe { *cx.at::<u32>(i.o[0]).add(first) };
        if id < 16 {
            return cx.stop_at(Event::Sync { id }, Context::next(i));
        }
    }
    // SAFETY: slots 0 and 1 are 32-bit rows; slot 2 is a predicate if `aux` says so.
    let (id, threads, votes) = unsafe {
        let id = *cx.at::<u32>(i.o[0]).add(first);
        let threads = i.has(Barrier::WITH_COUNT).then(|| *cx.at::<u32>(i.o[1]).add(first));
        let votes = if i.has(Barrier::WITH_VOTE) { cx.pred(i.o[2]) } else { 0 };
        (id, threads, if i.has(Barrier::NEGATED_VOTE) { !votes } else { votes })
    };
    if id > 15 {
        return cx.trap(i, TrapKind::Barrier, cx.mask, format!("barrier {id}: only barriers 0 to 15 exist"));
    }
    if threads.is_some_and(|t| t == 0 || t % 32 != 0) {
        let message = format!("barrier {id} for {} threads: the count must be a multiple of 32", threads.unwrap_or(0));
        return cx.trap(i, TrapKind::Barrier, cx.mask, message);
    }
    let arrival = Arrival { id, threads, waits: !i.has(Barrier::ARRIVE), votes: votes & cx.mask };
    cx.stop_at(Event::Barrier(arrival), Context::next(i))
}

/// Operations of a barrier reduction, in `aux`.
pub const RED_AND: u32 = 0;
pub const RED_OR: u32 = 1;
pub const RED_POPC: u32 = 2;

/// Writes the result of the preceding `bar.red` to slot 0. Not counted as an instruction.
pub unsafe fn barrier_result(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    control::uncount(cx, i);
    let (yes, votes) = cx.warp.reduced;
    let result = match i.aux {
        RED_POPC => {
            write_u32(cx, i.o[0], &Row([yes; LANES]));
            return Context::next(i);
        }
        RED_AND => yes == votes,
        _ => yes > 0,
    };
    // SAFETY: slot 0 is a predicate.
    unsafe { cx.set_pred(i.o[0], if result { u32::MAX } else { 0 }) };
    Context::next(i)
}
