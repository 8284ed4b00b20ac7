//! The dispatch loop of launches that count per line.

use crate::exec::context::Context;
use crate::program::ins::Ins;

/// Runs from `pc` until a handler stops the path, and counts per instruction. Most instructions cost two comparisons.
pub fn run_counted(cx: &mut Context<'_>, mut pc: *const Ins) {
    let Some(mut counts) = cx.per_instruction.take() else { return };
    counts.arrive(pc, cx.lanes);
    counts.begin(&cx.counters);
    while !pc.is_null() {
        // SAFETY: `pc` points into the code of a loaded function.
        let i = unsafe { &*pc };
        // SAFETY: the loader matched handlers and operands.
        let next = unsafe { (i.run.handler())(cx, i) };
        if i.is_watched() || counts.is_behind(&cx.counters) {
            counts.note(&cx.counters, i, if next.is_null() { cx.resume } else { next }, cx.lanes);
        }
        pc = next;
    }
    cx.per_instruction = Some(counts);
}
