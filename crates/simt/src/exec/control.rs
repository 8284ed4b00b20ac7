//! Executes branches, reconvergence, guards, calls, returns and exits.
//!
//! Lanes of a warp that diverge at a branch reconverge at its immediate post-dominator, where the loader has inserted a
//! [`join`]. Waiting paths are on a stack. A path ends at the join that is its reconvergence point, `rpc`.

use std::ptr;

use crate::error::TrapKind;
use crate::exec::context::{Context, Event, Handler};
use crate::exec::warp::{Frame, Waiting};
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP};
use crate::program::aux::{Branch, Decision, Join};
use crate::program::ins::{Entry, Ins, Slot};
use crate::program::row::{LANES, Row};

/// Continues after an instruction that writes predicates. If a branch follows, executes it immediately, which halves
/// the overhead of the dispatch loop.
///
/// # Safety
///
/// The loader sets [`Decision::BEFORE_BRANCH`] only if [`bra_if`] follows.
#[inline(always)]
pub unsafe fn go_on(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let next = Context::next(i);
    if !i.has(Decision::BEFORE_BRANCH) {
        return next;
    }
    // SAFETY: the loader set the bit, so `bra_if` follows.
    unsafe { bra_if(cx, &*next) }
}

/// Returns the instruction `distance` instructions away.
#[inline(always)]
fn jump(i: &Ins, distance: i64) -> *const Ins {
    // SAFETY: the loader keeps jumps inside the function.
    unsafe { ptr::from_ref(i).offset(distance as isize) }
}

/// Arrives at the target of a jump. A backward jump uses fuel; when none is left, the warp's slice ends.
#[inline(always)]
fn arrive(cx: &mut Context<'_>, to: *const Ins, backward: bool) -> *const Ins {
    cx.count(to);
    if !backward {
        return to;
    }
    if cx.fuel == 0 {
        return cx.stop_at(Event::Slice, to);
    }
    cx.fuel -= 1;
    to
}

/// Executes `bra` without a guard.
pub unsafe fn bra(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.counters.branches += 1;
    arrive(cx, jump(i, i.imm), i.has(Branch::BACKWARD))
}

/// `ret`: jumps to the end of the function, where all lanes reconverge before they leave it.
pub unsafe fn to_end(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    arrive(cx, jump(i, i.imm), false)
}

/// `@p bra`. Slot 0: predicate; slot 1: distance to the reconvergence point.
pub unsafe fn bra_if(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.counters.branches += u64::from(!i.has(Branch::SILENT));
    // SAFETY: slot 0 is a predicate.
    let mut taken = unsafe { cx.pred(i.o[0]) };
    if i.has(Branch::NEGATED) {
        taken = !taken;
    }
    taken &= cx.mask;
    if taken == 0 {
        return arrive(cx, Context::next(i), false);
    }
    let to = jump(i, i.imm);
    if taken == cx.mask {
        return arrive(cx, to, i.has(Branch::BACKWARD));
    }
    if !i.has(Branch::SILENT) {
        count_divergence(cx, i);
    }
    diverge(cx, i, taken, to)
}

/// Counts a branch at which lanes diverge.
#[inline(always)]
fn count_divergence(cx: &mut Context<'_>, i: &Ins) {
    cx.counters.divergent_branches += 1;
    if let Some(counts) = &mut cx.per_instruction {
        counts.diverge(i);
    }
}

/// Sends the lanes in `taken` to `to`, and the other active lanes to the next instruction.
#[inline(never)]
fn diverge(cx: &mut Context<'_>, i: &Ins, taken: u32, to: *const Ins) -> *const Ins {
    let on = cx.mask & !taken;
    let next = Context::next(i);
    let meet = if i.has(Branch::RECONVERGES) { jump(i, i64::from(i.o[1].0 as i32)) } else { ptr::null() };
    if meet.is_null() {
        cx.stack.push(Waiting { pc: to, mask: taken, rpc: cx.rpc });
        cx.set_mask(on);
        return arrive(cx, next, false);
    }
    if cx.rpc != meet {
        cx.stack.push(Waiting { pc: meet, mask: cx.mask, rpc: cx.rpc });
        cx.rpc = meet;
    }
    if to == meet {
        cx.set_mask(on);
        return arrive(cx, next, false);
    }
    if next == meet {
        cx.set_mask(taken);
        return arrive(cx, to, i.has(Branch::BACKWARD));
    }
    cx.stack.push(Waiting { pc: to, mask: taken, rpc: meet });
    cx.set_mask(on);
    arrive(cx, next, false)
}

/// A reconvergence point. Not counted as an instruction. `COUNTED`: the launch counts per instruction.
pub unsafe fn join<const COUNTED: bool>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let to = reconverge(cx, i);
    if COUNTED && !to.is_null() {
        cx.note_arrival(to);
    }
    to
}

#[inline(always)]
fn reconverge(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if ptr::eq(cx.rpc, i) {
        let to = pop(cx);
        if !ptr::eq(to, i) || ptr::eq(cx.rpc, i) {
            return to;
        }
    }
    arrive(cx, Context::next(i), false)
}

/// Whether lanes that wait at this instruction of a kernel have nothing left to do but exit.
pub fn leads_to_exit(at: *const Ins) -> bool {
    // SAFETY: a path waits at an instruction of a loaded function.
    let i = unsafe { &*at };
    let is_join = [join::<false> as Handler, join::<true>].iter().any(|join| ptr::fn_addr_eq(i.run.handler(), *join));
    is_join && i.has(Join::EXITS)
}

/// Takes back the count of an instruction that the loader added.
#[inline(always)]
pub fn uncount(cx: &mut Context<'_>, i: &Ins) {
    cx.counters.warp_instructions -= 1;
    cx.counters.thread_instructions -= u64::from(cx.lanes);
    if let Some(counts) = &mut cx.per_instruction {
        counts.uncount(i, cx.lanes);
    }
}

/// Continues with the path on top of the stack, or stops the split if there is none.
pub fn pop(cx: &mut Context<'_>) -> *const Ins {
    let floor = cx.frames.last().map_or(0, |f| f.depth);
    while cx.stack.len() > floor {
        let Some(waiting) = cx.stack.pop() else { break };
        let mask = waiting.mask & !cx.warp.exited;
        if mask != 0 {
            cx.rpc = waiting.rpc;
            cx.set_mask(mask);
            return arrive(cx, waiting.pc, false);
        }
    }
    leave_frame(cx)
}

/// Returns to the caller with all lanes of the call that have not exited, or stops the split if there is no caller.
fn leave_frame(cx: &mut Context<'_>) -> *const Ins {
    let Some(frame) = cx.frames.pop() else { return cx.stop(Event::Exited) };
    let mask = frame.mask & !cx.warp.exited;
    cx.rpc = frame.rpc;
    cx.function = frame.function;
    cx.registers = frame.registers;
    cx.locals = frame.locals;
    cx.rebase();
    if mask == 0 {
        return pop(cx);
    }
    cx.set_mask(mask);
    arrive(cx, frame.return_to, false)
}

/// End of a kernel. The `ret` that led here was counted already.
pub unsafe fn end(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { exit(cx, i) }
}

pub unsafe fn exit(cx: &mut Context<'_>, _: &Ins) -> *const Ins {
    cx.warp.exited |= cx.mask;
    pop(cx)
}

/// End of a device function. The `ret` that led here was counted already. Copies the result to the caller's locals.
pub unsafe fn ret(cx: &mut Context<'_>, _: &Ins) -> *const Ins {
    let Some(&frame) = cx.frames.last() else {
        cx.warp.exited |= cx.mask;
        return pop(cx);
    };
    if let Some((offset, bytes)) = cx.launch.kernel.functions[cx.function].result
        && frame.result != u32::MAX
    {
        let (from, to) = (cx.locals + offset, frame.locals + frame.result);
        copy_local(cx, from, to, bytes);
    }
    pop(cx)
}

fn copy_local(cx: &mut Context<'_>, from: u32, to: u32, bytes: u32) {
    let stride = cx.warp.local_stride;
    let mut lanes = cx.mask;
    while lanes != 0 {
        let base = lanes.trailing_zeros() as usize * stride;
        let from = base + from as usize;
        cx.warp.local.copy_within(from..from + bytes as usize, base + to as usize);
        lanes &= lanes - 1;
    }
}

/// `call`. `imm`: index of the call site; slot 0: address of the target, if it is unknown at load time.
pub unsafe fn call(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let kernel = cx.launch.kernel;
    let site = &kernel.calls[i.imm as usize];
    let mut mask = cx.mask;
    let function = if let Some(function) = site.function {
        function
    } else {
        // SAFETY: slot 0 is a 64-bit row.
        let targets: Row<u64> = unsafe { cx.row(i.o[0]) };
        let first = targets.0[cx.first_lane()];
        let same = (0..LANES).filter(|&k| targets.0[k] == first).fold(0_u32, |m, k| m | 1 << k);
        mask &= same;
        let number = first.wrapping_sub(FUNCTION_BASE) / FUNCTION_STEP;
        match kernel.by_number.get(number as usize).copied().flatten() {
            Some(function) if first.is_multiple_of(FUNCTION_STEP) => function,
            _ => return cx.trap(i, TrapKind::BadCall, mask, format!("a call to {first:#x}, which is not a function")),
        }
    };
    let rest = cx.mask & !mask;
    let mut split = ptr::eq(cx.rpc, END_OF_SPLIT.get());
    if rest != 0 {
        // The other lanes call a different function. They repeat this instruction, and all lanes reconverge after it.
        if !split {
            cx.stack.push(Waiting { pc: Context::next(i), mask: cx.mask, rpc: cx.rpc });
        }
        cx.stack.push(Waiting { pc: i, mask: rest, rpc: END_OF_SPLIT.get() });
        cx.rpc = END_OF_SPLIT.get();
        cx.set_mask(mask);
        split = true;
    }
    enter_function(cx, i, function, split)
}

fn enter_function(cx: &mut Context<'_>, i: &Ins, function: usize, split: bool) -> *const Ins {
    let kernel = cx.launch.kernel;
    let site = &kernel.calls[i.imm as usize];
    let (caller, callee) = (&kernel.functions[cx.function], &kernel.functions[function]);
    let registers = (cx.registers + caller.frame).next_multiple_of(128);
    let locals = (cx.locals + caller.locals).next_multiple_of(16);
    if site.args.iter().map(|a| a.1).ne(callee.params.iter().map(|p| p.1)) {
        let message = format!("a call of `{}` with arguments of the wrong sizes", callee.name);
        return cx.trap(i, TrapKind::BadCall, cx.mask, message);
    }
    let local_needed = (locals + callee.locals) as usize;
    if local_needed > cx.launch.local_limit || cx.frames.len() > 100_000 {
        let limit = cx.launch.local_limit;
        let message =
            format!("stack overflow: calls are nested {} deep, local memory is {limit} bytes", cx.frames.len());
        return cx.trap(i, TrapKind::StackOverflow, cx.mask, message);
    }
    cx.warp.grow(registers + callee.frame, local_needed);
    for (&(from, bytes), &(to, _)) in site.args.iter().zip(&callee.params) {
        copy_local(cx, cx.locals + from, locals + to, bytes);
    }
    if cx.launch.sanitize {
        cx.shadow.enter_frame(cx.warp.index, cx.mask, locals..locals + callee.locals, &callee.params);
    }
    let return_to = if split { END_OF_SPLIT.get() } else { Context::next(i) };
    cx.frames.push(Frame {
        function: cx.function,
        return_to,
        mask: cx.mask,
        rpc: cx.rpc,
        depth: cx.stack.len(),
        registers: cx.registers,
        locals: cx.locals,
        result: site.result.map_or(u32::MAX, |r| r.0),
    });
    cx.rpc = ptr::null();
    cx.function = function;
    cx.registers = registers;
    cx.locals = locals;
    cx.rebase();
    arrive(cx, callee.ins.as_ptr(), false)
}

/// An instruction outside every function, which ends one group of a split indirect call.
struct StaticIns([Ins; 1]);

// SAFETY: an instruction is plain data and a function pointer.
unsafe impl Sync for StaticIns {}

impl StaticIns {
    const fn get(&self) -> *const Ins {
        self.0.as_ptr()
    }
}

static END_OF_SPLIT: StaticIns = StaticIns([Ins {
    run: Entry::from_handler(end_of_split),
    o: [Slot::NONE; 6],
    imm: 0,
    aux: 0,
    line: 0,
    ahead: 0,
    number: u32::MAX,
}]);

unsafe fn end_of_split(cx: &mut Context<'_>, _: &Ins) -> *const Ins {
    let to = pop(cx);
    if !to.is_null() {
        cx.note_arrival(to);
    }
    to
}

/// Runs the next instruction in the lanes whose predicate in slot 0 is true. Not counted as an instruction. `COUNTED`:
/// the launch counts per instruction.
pub unsafe fn guard<const COUNTED: bool>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slot 0 is a predicate.
    let mut bits = unsafe { cx.pred(i.o[0]) };
    if i.has(Branch::NEGATED) {
        bits = !bits;
    }
    let (whole, some) = (cx.mask, cx.mask & bits);
    // The straight-line run was counted as if all lanes executed the guarded instruction.
    let idle = u64::from(whole.count_ones() - some.count_ones());
    cx.counters.thread_instructions -= idle;
    if COUNTED && let Some(counts) = &mut cx.per_instruction {
        counts.hold_back(i, idle as i64);
    }
    let guarded = Context::next(i);
    if some == 0 {
        // SAFETY: a guard is never the last instruction.
        return Context::next(unsafe { &*guarded });
    }
    cx.set_mask(some);
    // SAFETY: the loader puts a guard only before an instruction that continues with its successor.
    let next = unsafe { ((*guarded).run.handler())(cx, &*guarded) };
    cx.set_mask(whole);
    if next.is_null() && matches!(cx.event, Event::Commit | Event::Lanes { .. } | Event::Undefined) {
        // The guard is retried together with its instruction.
        cx.resume = i;
        cx.counters.thread_instructions += idle;
        if COUNTED && let Some(counts) = &mut cx.per_instruction {
            counts.hold_back(i, -(idle as i64));
        }
    }
    next
}

/// `brx.idx`. Slot 0: index; `imm`: the table.
pub unsafe fn branch_table(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.counters.branches += 1;
    let table = &cx.launch.kernel.tables[i.imm as usize];
    // SAFETY: slot 0 is a 32-bit row.
    let index: Row<u32> = unsafe { cx.row(i.o[0]) };
    let first = index.0[cx.first_lane()];
    let Some(&distance) = table.get(first as usize) else {
        let message = format!("`brx.idx` with index {first} into a table of {}", table.len());
        return cx.trap(i, TrapKind::BadCall, cx.mask, message);
    };
    let same = (0..LANES).filter(|&k| index.0[k] == first).fold(0_u32, |m, k| m | 1 << k) & cx.mask;
    if same != cx.mask {
        count_divergence(cx, i);
        let meet = if i.has(Branch::RECONVERGES) { jump(i, i64::from(i.o[1].0 as i32)) } else { ptr::null() };
        if !meet.is_null() && cx.rpc != meet {
            cx.stack.push(Waiting { pc: meet, mask: cx.mask, rpc: cx.rpc });
            cx.rpc = meet;
        }
        cx.stack.push(Waiting { pc: i, mask: cx.mask & !same, rpc: cx.rpc });
        cx.set_mask(same);
    }
    arrive(cx, jump(i, distance), true)
}

/// Executes `trap` and `brkpt`.
pub unsafe fn trap(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.trap(i, TrapKind::Trap, cx.mask, "`trap`".to_owned())
}
