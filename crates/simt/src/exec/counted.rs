//! Handlers that count per instruction, wrapped around those that execute.
//!
//! A launch with counts per line runs a copy of the kernel whose branches have these handlers. Each instruction of the
//! copy has its own number, which selects the counters of its accesses. All other instructions keep their handlers, so
//! counting costs nothing when off and little when on.

use std::ptr;

use crate::exec::context::{Context, Event, Handler};
use crate::exec::control;
use crate::program::aux::Branch;
use crate::program::ins::{Entry, Ins};
use crate::program::{Code, Inner, Kernel, Origin};

/// Returns a copy of a kernel that counts per instruction.
pub fn counting(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let (mut inner, mut loops) = (Vec::new(), 0);
    for code in &mut kernel.functions {
        for at in 0..code.ins.len() {
            let (mut around, mut back) = (None, None);
            match code.origins[at] {
                Origin::Guard => around = Some(control::guard::<true> as Handler),
                Origin::Join => around = Some(control::join::<true> as Handler),
                Origin::Instruction { ends, decides, .. } if ends || decides => {
                    let branch = at + usize::from(decides);
                    if leads_back(&kernel.opcodes, code, branch) {
                        back = Some(loops);
                        loops += 1;
                    }
                    around = Some(if back.is_some() { go_round } else { transfer });
                }
                Origin::Instruction { .. } => {}
            }
            let ins = &mut code.ins[at];
            ins.number = inner.len() as u32;
            inner.push(Inner { run: ins.run, back });
            if let Some(handler) = around {
                ins.run = Entry::from_handler(handler);
            }
        }
    }
    kernel.inner = inner;
    kernel
}

/// Whether an instruction is the back edge of a loop whose iterations are counted. Loops with barriers are not counted,
/// which keeps counting fast in the most frequent loops.
fn leads_back(opcodes: &[String], code: &Code, branch: usize) -> bool {
    let branches = matches!(code.origins[branch], Origin::Instruction { branches: true, .. });
    let waits = |origin: &Origin| matches!(origin, Origin::Instruction { opcode, .. } if opcodes[*opcode as usize].starts_with("bar"));
    branches && code.ins[branch].has(Branch::BACKWARD) && {
        let begin = branch.saturating_add_signed(code.ins[branch].imm as isize);
        !code.origins[begin..branch].iter().any(waits)
    }
}

/// Executes an instruction that may transfer control, and counts the path's arrival at its destination.
unsafe fn transfer(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let inner = cx.inner[i.number as usize];
    // SAFETY: the same contract as this function's; the loader matched the handler and the instruction.
    let next = unsafe { (inner.run.handler())(cx, i) };
    if !next.is_null() {
        cx.note_arrival(next);
    } else if matches!(cx.event, Event::Slice) {
        cx.note_arrival(cx.resume);
    }
    next
}

/// Executes the back edge of a loop, which leads to the start of the loop or out of it, and counts the warp's
/// iterations.
unsafe fn go_round(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    let next = unsafe { transfer(cx, i) };
    let to = if next.is_null() && matches!(cx.event, Event::Slice) { cx.resume } else { next };
    let Some(number) = cx.inner[i.number as usize].back.filter(|_| !to.is_null()) else { return next };
    let rounds = &mut cx.warp.rounds;
    if rounds.len() <= number as usize {
        rounds.resize(number as usize + 1, 0);
    }
    rounds[number as usize] += 1;
    if to > ptr::from_ref(i) {
        let rounds = std::mem::take(&mut rounds[number as usize]);
        if let Some(counts) = &mut cx.per_instruction {
            counts.leave_loop(number, rounds);
        }
    }
    next
}
