//! Puts the accesses through which blocks communicate in commit order.
//!
//! Until its first access in commit order, a block runs in parallel with others. It must not see their effects, and they
//! must not see its own. Atomics and relaxed, acquiring and releasing accesses therefore follow commit order. There are
//! two exceptions:
//!
//! - Atomics that commute, if the kernel has no other such access and reads no result: a sum is the same in any order.
//! - Volatile accesses, if the kernel has no other such access and no loop that may wait for a volatile load. They then
//!   communicate only between the lanes of a warp, as in the last steps of old reductions.

use std::collections::HashSet;

use crate::lower::Lowered;
use crate::lower::flow::Graph;
use crate::mir::{Body, Inst, Opnd, Order, Work};
use crate::program::aux::Access;

/// Marks the accesses of a kernel and of the functions that it calls.
pub fn run(functions: &mut [Lowered]) {
    for function in &mut *functions {
        drop_unread_results(&mut function.body);
        order_plain_loads(&mut function.body);
        mark_polls(&mut function.body);
    }
    let visible = is_order_visible(functions.iter().flat_map(|f| &f.body.insts));
    for inst in functions.iter_mut().flat_map(|f| &mut f.body.insts) {
        if inst.order == Order::Always || (visible && matches!(inst.order, Order::Commuting(..) | Order::Volatile)) {
            inst.aux |= Access::ORDERED.bits();
        }
    }
}

/// Whether the kernel can observe the order in which blocks access memory.
fn is_order_visible<'b>(insts: impl Iterator<Item = &'b Inst>) -> bool {
    let mut operations = HashSet::new();
    let mut volatile = false;
    for inst in insts {
        match inst.order {
            Order::Always => return true,
            Order::Commuting(..) if returns(inst) => return true,
            Order::Volatile if inst.aux & Access::POLL.bits() != 0 => return true,
            Order::Commuting(operation, ty) => drop(operations.insert((operation, ty))),
            Order::Volatile => volatile = true,
            Order::Never | Order::Plain => {}
        }
    }
    operations.len() + usize::from(volatile) > 1
}

/// Whether an atomic has a destination for its result.
const fn returns(inst: &Inst) -> bool {
    inst.defs & 1 == 1
}

fn registers_read(body: &Body) -> Vec<bool> {
    let mut read = vec![false; body.classes.len()];
    for r in body.insts.iter().flat_map(Body::uses) {
        read[r.0 as usize] = true;
    }
    read
}

/// Removes the destinations of commuting atomics whose results are not read.
fn drop_unread_results(body: &mut Body) {
    let read = registers_read(body);
    for inst in &mut body.insts {
        let is_read = matches!(inst.o[0], Opnd::Reg(r) if read[r.0 as usize]);
        if matches!(inst.order, Order::Commuting(..)) && returns(inst) && !is_read {
            (inst.o[0], inst.defs, inst.polls) = (Opnd::None, 0, false);
        }
    }
}

/// Orders plain loads from the address of another ordered access. Typical examples are the load before a
/// compare-and-swap loop, and a load that decides whether an atomic is needed. Such a load races with other blocks'
/// atomics, but is common.
fn order_plain_loads(body: &mut Body) {
    let copied = copies(body);
    let address = |inst: &Inst| (original(inst.o[inst.address], &copied), inst.imm);
    let others = |inst: &&Inst| matches!(inst.order, Order::Commuting(..) | Order::Always);
    let others: Vec<_> = body.insts.iter().filter(others).map(address).collect();
    let ordered: Vec<bool> =
        body.insts.iter().map(|inst| inst.order == Order::Plain && others.contains(&address(inst))).collect();
    for (inst, ordered) in body.insts.iter_mut().zip(ordered) {
        if ordered {
            inst.order = Order::Always;
        }
    }
}

/// Follows copies back to the operand that was copied first.
fn original(mut operand: Opnd, copied: &[Option<Opnd>]) -> Opnd {
    // Bounded, because registers may be copies of each other.
    for _ in 0..copied.len() {
        match operand {
            Opnd::Reg(r) => match copied[r.0 as usize] {
                Some(from) => operand = from,
                None => break,
            },
            _ => break,
        }
    }
    operand
}

/// Returns, for each register that only ever holds a copy, the operand that is copied.
fn copies(body: &Body) -> Vec<Option<Opnd>> {
    let mut writes = vec![0_u32; body.classes.len()];
    for r in body.insts.iter().flat_map(Body::defs) {
        writes[r.0 as usize] += 1;
    }
    let mut copies = vec![None; body.classes.len()];
    for inst in &body.insts {
        if let (Work::Copy, None, Opnd::Reg(to)) = (inst.work, inst.guard, inst.o[0])
            && writes[to.0 as usize] == 1
        {
            copies[to.0 as usize] = Some(inst.o[1]);
        }
    }
    copies
}

/// Marks polls: loads, and atomics with a result, in loops.
fn mark_polls(body: &mut Body) {
    if !body.insts.iter().any(|inst| inst.polls) {
        return;
    }
    let graph = Graph::new(body);
    let loops = graph.in_loops();
    for (inst, &node) in body.insts.iter_mut().zip(&graph.node_of) {
        if inst.polls && loops[node] {
            inst.aux |= Access::POLL.bits();
        }
    }
}
