//! Undefined values: what a kernel has read from memory that was never written.
//!
//! Reading such memory is not a fault, but using the value is: as an address, as a branch condition, or in a store to
//! global memory. A warp that has read an undefined value executes its instructions here, one by one, with one
//! undefined bit tracked for each bit of its registers. All other warps run at full speed. Bytes count as never written
//! again once an undefined value is stored to them in shared or local memory, or as part of a structure in global
//! memory.

mod product;
mod rule;
mod shadow;
mod state;

use crate::error::{Site, TrapKind};
use crate::exec::access::{addresses, truncate_constants};
use crate::exec::carry::{PRED_AND, PRED_OR};
use crate::exec::context::{Context, Event};
use crate::exec::findings;
use crate::exec::undefined::product::product;
use crate::exec::undefined::rule::{Rule, rule};
use crate::exec::undefined::shadow::{Info, active};
use crate::exec::undefined::state::Shadow;
use crate::exec::window::{owner, window};
use crate::program::aux::{Access, Branch, Carry, Decision, Negations, StateSpace};
use crate::program::ins::{Area, Ins, Slot};
use crate::program::row::Row;
use crate::program::{Origin, Width};
use crate::sanitize::{Class, Fault};

pub use state::Shadow as Undefined;

/// How to fix the use of an undefined value.
const CURE: &str = "(write it first, or switch the class `uninitialised` off)";

/// If a load failed only because it reads memory that was never written, makes the warp continue with undefined bits
/// tracked. Returns the handler's return value.
#[cold]
#[inline(never)]
pub fn defer(cx: &mut Context<'_>, i: &Ins, stopped: *const Ins) -> *const Ins {
    let fails = matches!(&cx.event, Event::Trap(trap) if trap.kind == TrapKind::Uninitialised);
    let is_tracked = !cx.shadow.ignored().reports(Fault::Unwritten);
    if !fails || is_tracked || !loads(cx, i) {
        return stopped;
    }
    cx.stop_at(Event::Undefined, i)
}

fn loads(cx: &Context<'_>, i: &Ins) -> bool {
    Info::at(cx, i).is_some_and(|info| rule(cx, i, &info) == Rule::Load)
}

/// Starts tracking the warp's undefined bits, and executes the load that [`defer`] stopped. Returns where the warp
/// continues.
#[cold]
#[inline(never)]
pub fn begin(cx: &mut Context<'_>) -> *const Ins {
    cx.event = Event::None;
    cx.warp.undefined = Some(Box::default());
    run(cx, cx.resume)
}

/// Executes instructions, starting at `pc`, until the path stops or none of the warp's registers is undefined any more.
/// Returns where the path continues.
#[cold]
#[inline(never)]
pub fn run(cx: &mut Context<'_>, mut pc: *const Ins) -> *const Ins {
    let Some(mut shadow) = cx.warp.undefined.take() else { return pc };
    let calls = cx.launch.kernel.functions.len() > 1;
    while !pc.is_null() {
        shadow.fit(cx);
        // SAFETY: as in the dispatch loop, `pc` is an instruction of a loaded function.
        let i = unsafe { &*pc };
        let Some(info) = Info::at(cx, i) else {
            pc = execute(cx, i);
            continue;
        };
        pc = match info.origin {
            Origin::Join => execute(cx, i),
            Origin::Guard => guarded(&mut shadow, cx, i),
            Origin::Instruction { .. } => step(&mut shadow, cx, i, &info),
        };
        // Function arguments are in local memory, whose loads are checked only here.
        if !calls && shadow.is_clear() {
            return pc;
        }
    }
    cx.warp.undefined = Some(shadow);
    pc
}

fn execute(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: the loader matched handlers and operands.
    unsafe { (i.run.handler())(cx, i) }
}

/// Executes a load that may read bytes that were never written.
fn execute_load(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let ignored = cx.shadow.ignored();
    cx.shadow.set_ignored(ignored.and(Class::Uninitialised));
    let next = execute(cx, i);
    cx.shadow.set_ignored(ignored);
    next
}

/// What remains to be done after an instruction has executed.
enum After {
    Nothing,
    Rule(Rule),
    /// Move undefined bits with this instruction. In these lanes, the destination is undefined.
    Move(Ins, u32),
    /// Handle a load from these addresses.
    Load(Box<Row<u64>>),
    /// Handle a store of undefined bytes: lane, address, and a mask with one bit per byte.
    Store(Vec<(usize, u64, u32)>),
    /// Handle a call from this depth; also holds the start of the caller's locals.
    Call(usize, u32),
    /// Handle the return of a result: the lanes, and the result's source, destination and size.
    Return(u32, [u32; 3]),
}

fn step(shadow: &mut Shadow, cx: &mut Context<'_>, i: &Ins, info: &Info) -> *const Ins {
    let after = match before(shadow, cx, i, info) {
        Ok(after) => after,
        Err(stopped) => return stopped,
    };
    let next = if matches!(after, After::Load(_)) { execute_load(cx, i) } else { execute(cx, i) };
    if !next.is_null() {
        finish(shadow, cx, (i, info), after);
    }
    next
}

/// Executes a guard together with its instruction.
fn guarded(shadow: &mut Shadow, cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let undefined = shadow.lanes(cx, (i.o[0], Width::Pred));
    if undefined != 0 {
        return fault(shadow, cx, (i, i.o[0]), undefined, "a condition");
    }
    // SAFETY: slot 0 is a predicate, and a guard is never the last instruction.
    let (bits, inner) = unsafe { (cx.pred(i.o[0]), &*Context::next(i)) };
    let (whole, some) = (cx.mask, cx.mask & if i.has(Branch::NEGATED) { !bits } else { bits });
    let Some(info) = Info::at(cx, inner).filter(|_| some != 0) else { return execute(cx, i) };
    cx.set_mask(some);
    let after = before(shadow, cx, inner, &info);
    cx.set_mask(whole);
    let after = match after {
        Ok(after) => after,
        Err(stopped) => return stopped,
    };
    let next = if matches!(after, After::Load(_)) { execute_load(cx, i) } else { execute(cx, i) };
    if !next.is_null() {
        cx.set_mask(some);
        finish(shadow, cx, (inner, &info), after);
        cx.set_mask(whole);
    }
    next
}

/// Describes a location without its address, so that the message for the same fault is the same in every case.
fn named(site: &Site) -> String {
    format!("{} + {}", site.allocation, site.offset)
}

/// Ends the launch because an instruction uses an undefined register.
fn fault(shadow: &Shadow, cx: &mut Context<'_>, (i, slot): (&Ins, Slot), lanes: u32, what: &str) -> *const Ins {
    let Some(source) = shadow.source(cx, slot).cloned() else {
        return cx.trap(i, TrapKind::Uninitialised, lanes, format!("{what} depends on an undefined value {CURE}"));
    };
    let (site, place) = (source.site, cx.launch.kernel.place(source.place));
    let message = format!("{what} depends on {}, which was never written and is read at {place} {CURE}", named(&site));
    let stopped = cx.trap(i, TrapKind::Uninitialised, lanes, message);
    cx.locate_trap(site);
    stopped
}

/// Prepares an instruction: refuses uses of undefined operands, and finds the undefined bits of results that depend
/// only on their own lane.
fn before(shadow: &mut Shadow, cx: &mut Context<'_>, i: &Ins, info: &Info) -> Result<After, *const Ins> {
    let rule = rule(cx, i, info);
    let bad = info.operands(false).find(|&k| shadow.lanes(cx, (i.o[k], info.widths[k])) != 0);
    match rule {
        Rule::Use(what) => {
            if let Some(k) = bad {
                let lanes = shadow.lanes(cx, (i.o[k], info.widths[k]));
                return Err(fault(shadow, cx, (i, i.o[k]), lanes, what));
            }
            define(shadow, cx, i, info);
            return Ok(After::Call(cx.frames.len(), cx.locals));
        }
        Rule::Load => return before_load(shadow, cx, i, info),
        Rule::Store => return before_store(shadow, cx, i, info),
        _ if info.opcode(cx) == "end" => return Ok(returned(cx)),
        _ => {}
    }
    let flags = Carry::from_bits_retain(i.aux);
    let carries = info.has_carry(cx);
    let takes = carries && flags.contains(Carry::TAKES) && shadow.carry & cx.mask != 0;
    if bad.is_none() && !takes {
        define(shadow, cx, i, info);
        if carries && flags.contains(Carry::SETS) {
            shadow.carry &= !cx.mask;
        }
        return Ok(After::Nothing);
    }
    match rule {
        Rule::Warp | Rule::Ballot | Rule::Product => return Ok(After::Rule(rule)),
        Rule::Move(control) => {
            let (mirrored, undefined) = shadow.mirror(cx, (i, info), control);
            return Ok(After::Move(mirrored, undefined));
        }
        _ => {}
    }
    if let Some(k) = bad {
        pass(shadow, cx, (i, info), k, false);
    }
    for lane in active(cx.mask) {
        lane_wise(shadow, cx, (i, info), rule, lane);
    }
    if carries && flags.contains(Carry::SETS) {
        let undefined = info.operands(false).fold(0, |m, k| m | shadow.lanes(cx, (i.o[k], info.widths[k])));
        let taken = if flags.contains(Carry::TAKES) { shadow.carry & cx.mask } else { 0 };
        shadow.carry = shadow.carry & !cx.mask | undefined | taken;
    }
    // An instruction that decides a branch also executes the branch that follows it.
    let Origin::Instruction { decides: true, .. } = info.origin else { return Ok(After::Nothing) };
    // SAFETY: a branch follows.
    let branch = unsafe { &*Context::next(i) };
    let undefined = shadow.lanes(cx, (branch.o[0], Width::Pred));
    if i.has(Decision::BEFORE_BRANCH) && undefined != 0 {
        return Err(fault(shadow, cx, (branch, branch.o[0]), undefined, "a branch"));
    }
    Ok(After::Nothing)
}

/// Marks the results of the active lanes as defined.
fn define(shadow: &mut Shadow, cx: &Context<'_>, i: &Ins, info: &Info) {
    for k in info.operands(true) {
        active(cx.mask).for_each(|lane| shadow.set(cx, (i.o[k], info.widths[k]), lane, 0));
    }
}

/// Gives the results' undefined values the origin of operand `k`.
fn pass(shadow: &mut Shadow, cx: &Context<'_>, (i, info): (&Ins, &Info), k: usize, is_copy: bool) {
    info.operands(true).for_each(|to| shadow.pass(cx, i.o[k], i.o[to], is_copy));
}

/// Sets the undefined bits of a lane's results, which depend only on this lane.
fn lane_wise(shadow: &mut Shadow, cx: &Context<'_>, (i, info): (&Ins, &Info), rule: Rule, lane: usize) {
    let get = |k: usize| shadow.get(cx, (i.o[k], info.widths[k]), lane);
    let all = info.operands(false).fold(0, |all, k| all | get(k));
    let taken = info.has_carry(cx) && i.has(Carry::TAKES) && shadow.carry >> lane & 1 == 1;
    let any = if all != 0 || taken { u128::MAX } else { 0 };
    let bits = match rule {
        Rule::Union => all,
        Rule::Halves => {
            let half = |mask: u128| if all & mask == 0 { 0 } else { mask };
            half(0xffff) | half(0xffff_0000)
        }
        Rule::And | Rule::Or => {
            let decides = |k: usize| {
                let value = value(cx, i.o[k], info.widths[0], lane);
                if rule == Rule::And { !value } else { value }
            };
            let (x, y) = (get(1), get(2));
            // A defined operand bit that decides the result makes it defined.
            all & !(decides(1) & !x) & !(decides(2) & !y)
        }
        Rule::Predicates => {
            let flip = |k: usize, flag: Negations| i.has(flag) != (value(cx, i.o[k], Width::Pred, lane) != 0);
            let (a, b) = (flip(1, Negations::FIRST), flip(2, Negations::SECOND));
            let (x, y) = (get(1) != 0, get(2) != 0);
            let decided = match i.aux & 3 {
                PRED_AND => (!x && !a) || (!y && !b),
                PRED_OR => (!x && a) || (!y && b),
                _ => false,
            };
            if decided { 0 } else { any }
        }
        _ => any,
    };
    for k in info.operands(true) {
        let bits = if info.widths[k] == Width::Pred { u128::from(bits != 0) } else { bits };
        shadow.set(cx, (i.o[k], info.widths[k]), lane, bits);
    }
}

/// Returns the value of an operand in a lane, given the operand's width.
fn value(cx: &Context<'_>, slot: Slot, width: Width, lane: usize) -> u128 {
    if slot == Slot::NONE {
        return 0;
    }
    // SAFETY: the loader assigned rows of this width.
    unsafe {
        match width {
            Width::None => 0,
            Width::Pred => u128::from(cx.pred(slot) >> lane & 1),
            Width::Narrow => u128::from(*cx.at::<u32>(slot).add(lane)),
            Width::Wide => u128::from(*cx.at::<u64>(slot).add(lane)),
            Width::Quad => *cx.at::<u128>(slot).add(lane),
        }
    }
}

fn finish(shadow: &mut Shadow, cx: &mut Context<'_>, (i, info): (&Ins, &Info), after: After) {
    match after {
        After::Nothing => {}
        After::Load(addresses) => finish_load(shadow, cx, (i, info), &addresses),
        After::Store(stored) => {
            for (lane, address, bytes) in stored {
                make_undefined(shadow, cx, i, (lane, address), bytes);
            }
        }
        After::Move(mirrored, undefined) => {
            let bad = info.operands(false).find(|&k| shadow.lanes(cx, (i.o[k], info.widths[k])) != 0);
            if let Some(k) = bad {
                let name = info.opcode(cx).split('.').next().unwrap_or_default();
                let is_copy = !matches!(name, "shl" | "shr" | "shf" | "bfe" | "bfi" | "prmt");
                pass(shadow, cx, (i, info), k, is_copy && undefined == 0);
            }
            cx.bases.set(Area::Frame, shadow.base(cx));
            execute(cx, &mirrored);
            cx.rebase();
            for k in info.operands(true) {
                let operand = (i.o[k], info.widths[k]);
                let lanes = if operand.1 == Width::Pred { cx.mask } else { undefined };
                let bits = if undefined == 0 { 0 } else { u128::MAX };
                active(lanes).for_each(|lane| shadow.set(cx, operand, lane, bits));
            }
        }
        After::Rule(Rule::Product) => product(shadow, cx, i, info),
        After::Rule(rule) => {
            let Some(k) = info.operands(false).find(|&k| shadow.lanes(cx, (i.o[k], info.widths[k])) != 0) else {
                return;
            };
            pass(shadow, cx, (i, info), k, false);
            let lanes = shadow.lanes(cx, (i.o[k], info.widths[k]));
            let bits = if rule == Rule::Ballot { u128::from(lanes) } else { u128::MAX };
            for to in info.operands(true) {
                active(cx.mask).for_each(|lane| shadow.set(cx, (i.o[to], info.widths[to]), lane, bits));
            }
        }
        After::Call(depth, caller) => {
            let kernel = cx.launch.kernel;
            if cx.frames.len() > depth
                && let Some(site) = kernel.calls.get(i.imm as usize)
            {
                for (&(from, bytes), &(to, _)) in site.args.iter().zip(&kernel.functions[cx.function].params) {
                    shadow.copy_locals(cx.mask, caller + from, cx.locals + to, bytes);
                }
            }
        }
        After::Return(lanes, [from, to, bytes]) => shadow.copy_locals(lanes, from, to, bytes),
    }
}

/// Returns the result that is copied to the caller at the end of a function, if any.
fn returned(cx: &Context<'_>) -> After {
    let result = cx.launch.kernel.functions[cx.function].result;
    match (result, cx.frames.last()) {
        (Some((offset, bytes)), Some(frame)) if frame.result != u32::MAX => {
            After::Return(cx.mask, [cx.locals + offset, frame.locals + frame.result, bytes])
        }
        _ => After::Nothing,
    }
}

/// Refuses undefined addresses of a load, and saves the addresses, which the load may overwrite.
fn before_load(shadow: &Shadow, cx: &mut Context<'_>, i: &Ins, info: &Info) -> Result<After, *const Ins> {
    let undefined = shadow.lanes(cx, (i.o[4], info.widths[4]));
    if undefined != 0 {
        return Err(fault(shadow, cx, (i, i.o[4]), undefined, "the address of a load"));
    }
    let mut a = Box::new(addresses(cx, i, i.o[4]));
    if i.has(Access::CONST) {
        truncate_constants(cx, &mut a);
    }
    Ok(After::Load(a))
}

fn finish_load(shadow: &mut Shadow, cx: &mut Context<'_>, (i, info): (&Ins, &Info), a: &Row<u64>) {
    let (bytes, lanes) = info.access(cx);
    let is_signed = info.opcode(cx).rsplit('.').next().is_some_and(|ty| ty.starts_with('s'));
    for v in info.operands(true) {
        for lane in active(lanes) {
            let address = a.0[lane] + v as u64 * u64::from(bytes);
            let unwritten = if info.read >> v & 1 == 1 { unwritten(shadow, cx, i, (lane, address), bytes) } else { 0 };
            let mut bits = (0..bytes).filter(|k| unwritten >> k & 1 == 1).fold(0, |m, k| m | 0xff << (8 * k));
            if is_signed && unwritten >> (bytes - 1) & 1 == 1 {
                bits |= u128::MAX << (8 * bytes);
            }
            shadow.set(cx, (i.o[v], info.widths[v]), lane, bits);
            if bits != 0 {
                let at = address + u64::from(unwritten.trailing_zeros());
                let space = i.access().space();
                shadow.comes_from(cx, i.o[v], info.place, || findings::site_of(cx.launch, space, at));
            }
        }
    }
}

/// Returns the state space of an address and where that space starts.
fn space_of(i: &Ins, address: u64) -> (StateSpace, u64) {
    let space = i.access().space();
    if space == StateSpace::GENERIC { window(address) } else { (space, 0) }
}

/// Returns the offset of an address in the block's own shared memory; `None` if it is in another block's.
fn own_offset(cx: &Context<'_>, offset: u64) -> Option<u64> {
    let (rank, own) = owner(offset);
    rank.is_none_or(|rank| rank == cx.cluster_rank()).then_some(own)
}

/// Returns which of the bytes that a lane reads are undefined, one bit per byte.
fn unwritten(shadow: &Shadow, cx: &mut Context<'_>, i: &Ins, (lane, address): (usize, u64), bytes: u32) -> u32 {
    let (space, base) = space_of(i, address);
    let all = u32::MAX >> (32 - bytes);
    match space {
        StateSpace::GLOBAL => !(cx.launch.memory.written_bits(address, u64::from(bytes)) as u32) & all,
        StateSpace::SHARED => {
            own_offset(cx, address - base).map_or(0, |offset| cx.shadow.shared_unwritten(offset, bytes))
        }
        StateSpace::LOCAL if i.has(Access::FRAME) => {
            let is_undefined = |k: &u32| {
                let word = (address as u32 + k) / 4;
                shadow.locals.get(&word).is_some_and(|lanes| lanes >> lane & 1 == 1)
            };
            (0..bytes).filter(is_undefined).fold(0, |m, k| m | 1 << k)
        }
        StateSpace::LOCAL => cx.shadow.local_unwritten(cx.warp.index, lane, address - base, bytes),
        _ => 0,
    }
}

/// Refuses stores to undefined addresses, and stores of undefined values to global memory. Returns which bytes are
/// undefined.
fn before_store(shadow: &mut Shadow, cx: &mut Context<'_>, i: &Ins, info: &Info) -> Result<After, *const Ins> {
    let undefined = shadow.lanes(cx, (i.o[0], info.widths[0]));
    if undefined != 0 {
        return Err(fault(shadow, cx, (i, i.o[0]), undefined, "the address of a store"));
    }
    let is_frame = i.has(Access::FRAME);
    let sources = 1..=i.access().elements().min(4) as usize;
    let bad = sources.clone().find(|&k| shadow.lanes(cx, (i.o[k], info.widths[k])) != 0);
    if bad.is_none() && !is_frame {
        return Ok(After::Nothing);
    }
    let ((bytes, lanes), a) = (info.access(cx), addresses(cx, i, i.o[0]));
    let whole = bytes * i.access().elements();
    let mut stored = Vec::new();
    for lane in active(lanes) {
        let (mut undefined, mut is_computed) = (0, false);
        for k in sources.clone() {
            let bits = shadow.get(cx, (i.o[k], info.widths[k]), lane);
            let bytes_of = (0..bytes).filter(|k| bits >> (8 * k) & 0xff != 0).fold(0, |m, k| m | 1 << k);
            undefined += u32::count_ones(bytes_of);
            is_computed |= bytes_of != 0 && shadow.is_computed(cx, i.o[k]);
            if bytes_of != 0 || is_frame {
                stored.push((lane, a.0[lane] + (k as u64 - 1) * u64::from(bytes), bytes_of));
            }
        }
        let (space, base) = space_of(i, a.0[lane]);
        let is_remote = space == StateSpace::SHARED && own_offset(cx, a.0[lane] - base).is_none();
        // A copied structure may be partly undefined, because of its padding.
        let is_whole = is_remote || is_computed || undefined == whole;
        let leaves = undefined > 0 && is_whole && (is_remote || space == StateSpace::GLOBAL);
        if leaves && let Some(k) = bad {
            let what =
                format!("a value stored to {}", named(&findings::site_of(cx.launch, i.access().space(), a.0[lane])));
            return Err(fault(shadow, cx, (i, i.o[k]), 1 << lane, &what));
        }
    }
    Ok(After::Store(stored))
}

/// Records which of the bytes that a lane has stored at an address are undefined, one bit per byte.
fn make_undefined(shadow: &mut Shadow, cx: &mut Context<'_>, i: &Ins, (lane, address): (usize, u64), bytes: u32) {
    let (space, base) = space_of(i, address);
    match space {
        StateSpace::GLOBAL => cx.launch.memory.mark_undefined(address, bytes),
        StateSpace::SHARED => {
            if let Some(offset) = own_offset(cx, address - base) {
                cx.shadow.shared_undefined(offset, bytes);
            }
        }
        StateSpace::LOCAL if i.has(Access::FRAME) => {
            shadow.set_local(address as u32 / 4, 1 << lane, if bytes & 0xf != 0 { 1 << lane } else { 0 });
            if bytes >> 4 != 0 {
                shadow.set_local(address as u32 / 4 + 1, 1 << lane, 1 << lane);
            }
        }
        StateSpace::LOCAL => cx.shadow.local_undefined(cx.warp.index, lane, address - base, bytes),
        _ => {}
    }
}
