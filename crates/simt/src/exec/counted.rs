//! Handlers that count per instruction, around those that execute.
//!
//! A launch that counts per line runs a copy of the kernel in which branches have these handlers and all instructions their
//! own numbers, by which accesses find their counters. All other instructions keep their handlers: counting costs nothing
//! where it is not asked for, and little where it is.

use crate::exec::context::{Context, Event, Handler};
use crate::exec::control;
use crate::program::ins::{Entry, Ins};
use crate::program::{Kernel, Origin};

/// Returns a copy of a kernel that counts per instruction.
pub fn counting(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let mut inner = Vec::new();
    for code in &mut kernel.functions {
        for (ins, origin) in code.ins.iter_mut().zip(&code.origins) {
            ins.number = inner.len() as u32;
            inner.push(ins.run);
            let around = match *origin {
                Origin::Guard => Some(control::guard::<true> as Handler),
                Origin::Join => Some(control::join::<true> as Handler),
                Origin::Instruction { ends, decides, .. } => (ends || decides).then_some(transfer as Handler),
            };
            if let Some(handler) = around {
                ins.run = Entry::from_handler(handler);
            }
        }
    }
    kernel.inner = inner;
    kernel
}

/// Executes an instruction after which a path has arrived elsewhere, if it goes on.
unsafe fn transfer(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let inner = cx.inner[i.number as usize];
    // SAFETY: forwarded from the caller; the loader matched the handler and the instruction.
    let next = unsafe { (inner.handler())(cx, i) };
    if !next.is_null() {
        cx.note_arrival(next);
    } else if matches!(cx.event, Event::Slice) {
        cx.note_arrival(cx.resume);
    }
    next
}
