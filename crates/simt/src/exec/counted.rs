//! Handlers that count per instruction, around those that execute.
//!
//! A launch that counts per line runs a copy of the kernel in which branches and accesses have these handlers. All other
//! instructions keep theirs, and the code of other launches does not change: counting costs nothing where it is not asked
//! for, and little where it is.

use crate::counters::{Counters, SharedTraffic, Traffic};
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
                Origin::Instruction { opcode, ends, decides, .. } => {
                    let access = access(&kernel.opcodes[opcode as usize]);
                    access.or((ends || decides).then_some(transfer as Handler))
                }
            };
            if let Some(handler) = around {
                ins.run = Entry::from_handler(handler);
            }
        }
    }
    kernel.inner = inner;
    kernel
}

/// Returns the handler that counts what instructions with this opcode access, if they can.
fn access(opcode: &str) -> Option<Handler> {
    let mut parts = opcode.split('.').map(|part| part.split("::").next().unwrap_or_default());
    let name = parts.next().unwrap_or_default();
    let is_plain = !parts.clone().any(|part| matches!(part, "async" | "bulk"));
    let space = parts.find(|part| matches!(*part, "global" | "shared" | "local" | "const" | "param"));
    match (name, space) {
        ("ld", Some("param")) => None,
        ("ld" | "ldu", Some("global" | "const")) => Some(around::<GlobalLoad>),
        ("ld", Some("shared")) => Some(around::<SharedLoad>),
        ("st", Some("global")) if is_plain => Some(around::<GlobalStore>),
        ("st", Some("shared")) if is_plain => Some(around::<SharedStore>),
        ("ld" | "ldu" | "st" | "atom" | "red" | "cp" | "call" | "mbarrier" | "multimem", _) => Some(anything),
        _ => None,
    }
}

/// Runs the handler that executes an instruction.
///
/// # Safety
/// As for every handler.
#[inline(always)]
unsafe fn run_inner(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let inner = cx.inner[i.number as usize];
    // SAFETY: forwarded from the caller; the loader matched the handler and the instruction.
    unsafe { (inner.handler())(cx, i) }
}

/// Executes an instruction after which a path has arrived elsewhere, if it goes on.
unsafe fn transfer(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: forwarded from the caller.
    let next = unsafe { run_inner(cx, i) };
    if !next.is_null() {
        cx.note_arrival(next);
    } else if matches!(cx.event, Event::Slice) {
        cx.note_arrival(cx.resume);
    }
    next
}

/// The counters that an access of one kind changes.
trait Part {
    type Counts: Copy;

    fn part(counters: &mut Counters) -> &mut Self::Counts;

    fn add_since(into: &mut Self::Counts, now: &Self::Counts, before: &Self::Counts);
}

/// Names the counters of one kind of access.
macro_rules! part {
    ($name:ident, $counts:ty, $field:ident) => {
        struct $name;

        impl Part for $name {
            type Counts = $counts;

            #[inline(always)]
            fn part(counters: &mut Counters) -> &mut $counts {
                &mut counters.$field
            }

            #[inline(always)]
            fn add_since(into: &mut $counts, now: &$counts, before: &$counts) {
                into.add_since(now, before);
            }
        }
    };
}

part!(GlobalLoad, Traffic, global_load);
part!(GlobalStore, Traffic, global_store);
part!(SharedLoad, SharedTraffic, shared_load);
part!(SharedStore, SharedTraffic, shared_store);

/// Executes an access of one kind.
unsafe fn around<P: Part>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let before = *P::part(&mut cx.counters);
    // SAFETY: forwarded from the caller.
    let next = unsafe { run_inner(cx, i) };
    if let Some(counts) = &mut cx.per_instruction
        && let Some(accesses) = counts.accesses(i)
    {
        P::add_since(P::part(accesses), P::part(&mut cx.counters), &before);
    }
    next
}

/// Executes an instruction that may change any counter.
unsafe fn anything(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(counts) = &mut cx.per_instruction {
        counts.begin(&cx.counters);
    }
    let executed = cx.counters.warp_instructions;
    // SAFETY: forwarded from the caller.
    let next = unsafe { run_inner(cx, i) };
    // A call arrives in the function, and an access goes on.
    if cx.counters.warp_instructions != executed && !next.is_null() {
        cx.note_arrival(next);
    }
    if let Some(counts) = &mut cx.per_instruction {
        counts.note(&cx.counters, i);
    }
    next
}
