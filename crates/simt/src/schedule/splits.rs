//! Splits and merges the paths of a warp. Lanes that wait for other lanes get their own split, and splits at the same
//! position become one.

use std::ptr;

use crate::exec::context::{Context, Event};
use crate::exec::control::{leads_to_exit, pop};
use crate::exec::warp::{Split, SplitState, Waiting, Warp};
use crate::program::ins::Ins;

/// Continues the splits whose awaited lanes have all arrived.
pub fn regroup(cx: &mut Context<'_>) {
    let alive = cx.alive();
    let splits = &mut cx.warp.splits;
    for k in 0..splits.len() {
        let SplitState::Lanes { wanted } = splits[k].state else { continue };
        let wanted = wanted & alive;
        let pc = splits[k].pc;
        let here = |f: &Split| ptr::eq(f.pc, pc) && matches!(f.state, SplitState::Lanes { .. });
        let together = splits.iter().filter(|f| here(f)).fold(0, |m, f| m | f.mask);
        if wanted & !together != 0 {
            continue;
        }
        let mut merged = splits[k].clone();
        merged.mask = together;
        merged.state = SplitState::Ready;
        for f in splits.iter().filter(|f| here(f)) {
            for (mine, theirs) in merged.frames.iter_mut().zip(&f.frames) {
                mine.mask |= theirs.mask;
            }
        }
        splits.retain(|f| !here(f));
        splits.push(merged);
        return regroup(cx);
    }
}

/// Makes ready the splits that waited at the barrier `id`, and merges those at the same position.
pub fn rejoin(warp: &mut Warp, id: u32) {
    let waits = SplitState::Barrier { id };
    if let [split] = &mut warp.splits[..] {
        split.state = SplitState::Ready;
        return;
    }
    let mut joined: Vec<Split> = Vec::new();
    for mut split in std::mem::take(&mut warp.splits) {
        if split.state != waits {
            joined.push(split);
            continue;
        }
        split.state = SplitState::Ready;
        let plain = |f: &Split| f.stack.is_empty() && f.frames.is_empty() && f.state == SplitState::Ready;
        match joined.iter_mut().find(|f| ptr::eq(f.pc, split.pc) && plain(f) && plain(&split)) {
            Some(same) => same.mask |= split.mask,
            None => joined.push(split),
        }
    }
    warp.splits = joined;
}

/// Whether other lanes of the running split wait for its running path.
pub fn others_wait(cx: &Context<'_>) -> bool {
    let mine = cx.mask;
    let waiting = cx.stack.iter().fold(0, |m, w| m | w.mask) | cx.frames.iter().fold(0, |m, f| m | f.mask);
    waiting & !mine & cx.alive() != 0
}

/// Whether other lanes of the running split wait for its running path to reconverge before the end of the kernel. Such
/// lanes cannot exit before the running ones arrive there.
pub fn others_wait_to_go_on(cx: &Context<'_>) -> bool {
    let others = cx.alive() & !cx.mask;
    let kernels = cx.frames.first().map_or(cx.stack.len(), |outermost| outermost.depth);
    let common = |w: &Waiting| w.mask & cx.mask != 0 && w.mask & others != 0;
    let mut waiting = cx.stack.iter().enumerate().filter(|(_, w)| common(w));
    cx.frames.iter().any(|f| f.mask & others != 0) || waiting.any(|(at, w)| at >= kernels || !leads_to_exit(w.pc))
}

/// Gives the running lanes their own split. The paths below them continue without them.
pub fn split_off(cx: &mut Context<'_>, last: usize, resume: *const Ins, state: SplitState) {
    cx.uncount(resume);
    let mask = cx.mask;
    let mut own = Split {
        pc: resume,
        mask,
        rpc: ptr::null(),
        stack: Vec::new(),
        frames: cx.frames.clone(),
        function: cx.function,
        registers: cx.registers,
        locals: cx.locals,
        state,
    };
    for frame in &mut own.frames {
        (frame.mask, frame.depth, frame.rpc) = (frame.mask & mask, 0, ptr::null());
    }
    for waiting in &mut cx.stack {
        waiting.mask &= !mask;
    }
    for frame in &mut cx.frames {
        frame.mask &= !mask;
    }
    let on = pop(cx);
    if on.is_null() {
        cx.event = Event::None;
        cx.warp.splits.truncate(last);
    } else {
        cx.note_arrival(on);
        cx.leave(last, on, SplitState::Ready);
    }
    cx.warp.splits.push(own);
}
