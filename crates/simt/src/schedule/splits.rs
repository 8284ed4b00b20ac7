//! How the paths of a warp part and come together: lanes that wait for other lanes get a path of their own, and paths
//! that stand at one place become one.

use std::ptr;

use crate::exec::context::{Context, Event};
use crate::exec::control::{leads_to_exit, pop};
use crate::exec::warp::{Fiber, FiberState, Waiting, Warp};
use crate::program::ins::Ins;

/// Lets paths go on whose lanes have all come together.
pub fn regroup(cx: &mut Context<'_>) {
    let alive = cx.alive();
    let fibers = &mut cx.warp.fibers;
    for k in 0..fibers.len() {
        let FiberState::Lanes { wanted } = fibers[k].state else { continue };
        let wanted = wanted & alive;
        let pc = fibers[k].pc;
        let here = |f: &Fiber| ptr::eq(f.pc, pc) && matches!(f.state, FiberState::Lanes { .. });
        let together = fibers.iter().filter(|f| here(f)).fold(0, |m, f| m | f.mask);
        if wanted & !together != 0 {
            continue;
        }
        let mut merged = fibers[k].clone();
        merged.mask = together;
        merged.state = FiberState::Ready;
        for f in fibers.iter().filter(|f| here(f)) {
            for (mine, theirs) in merged.frames.iter_mut().zip(&f.frames) {
                mine.mask |= theirs.mask;
            }
        }
        fibers.retain(|f| !here(f));
        fibers.push(merged);
        return regroup(cx);
    }
}

/// Readies the paths of a warp that waited at a barrier, as one where they stand at the same place.
pub fn rejoin(warp: &mut Warp, id: u32) {
    let waits = FiberState::Barrier { id };
    if let [fiber] = &mut warp.fibers[..] {
        fiber.state = FiberState::Ready;
        return;
    }
    let mut joined: Vec<Fiber> = Vec::new();
    for mut fiber in std::mem::take(&mut warp.fibers) {
        if fiber.state != waits {
            joined.push(fiber);
            continue;
        }
        fiber.state = FiberState::Ready;
        let plain = |f: &Fiber| f.stack.is_empty() && f.frames.is_empty() && f.state == FiberState::Ready;
        match joined.iter_mut().find(|f| ptr::eq(f.pc, fiber.pc) && plain(f) && plain(&fiber)) {
            Some(same) => same.mask |= fiber.mask,
            None => joined.push(fiber),
        }
    }
    warp.fibers = joined;
}

/// Whether lanes of the running path's fiber wait for it.
pub fn others_wait(cx: &Context<'_>) -> bool {
    let mine = cx.mask;
    let waiting = cx.stack.iter().fold(0, |m, w| m | w.mask) | cx.frames.iter().fold(0, |m, f| m | f.mask);
    waiting & !mine & cx.alive() != 0
}

/// Whether lanes of the running path's fiber wait for it where both go on together to more than the end of the kernel.
/// Such lanes do not exit before the running ones arrive there.
pub fn others_wait_to_go_on(cx: &Context<'_>) -> bool {
    let others = cx.alive() & !cx.mask;
    let kernels = cx.frames.first().map_or(cx.stack.len(), |outermost| outermost.depth);
    let common = |w: &Waiting| w.mask & cx.mask != 0 && w.mask & others != 0;
    let mut waiting = cx.stack.iter().enumerate().filter(|(_, w)| common(w));
    cx.frames.iter().any(|f| f.mask & others != 0) || waiting.any(|(at, w)| at >= kernels || !leads_to_exit(w.pc))
}

/// Gives the running lanes a fiber of their own; the paths below them go on without them.
pub fn split(cx: &mut Context<'_>, last: usize, resume: *const Ins, state: FiberState) {
    cx.uncount(resume);
    let mask = cx.mask;
    let mut own = Fiber {
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
        cx.warp.fibers.truncate(last);
    } else {
        cx.leave(last, on, FiberState::Ready);
    }
    cx.warp.fibers.push(own);
}
