//! Removes copies of fixed rows: constants, kernel parameters, thread and block indices.
//!
//! A register that only ever holds such a copy is replaced with the row itself. All warps share the rows outside the
//! register frame, so these stay in the host's L1 cache. A removed instruction is still counted, by the instruction
//! before it.

use crate::mir::{Body, Flow, Inst, Opnd, Work};
use crate::program::ins::Slot;

/// For each register, the fixed row of which it is a copy, if any.
type Copies = Vec<Option<Slot>>;

pub fn run(body: &mut Body) {
    let copies = copies(body);
    for inst in &mut body.insts {
        replace(inst, &copies);
    }
    leave_out(body, &copies);
}

/// Finds copies, including copies of copies: each round uses the rows that earlier rounds have found.
fn copies(body: &Body) -> Copies {
    let mut writes = vec![0_u32; body.classes.len()];
    for r in body.insts.iter().flat_map(Body::defs) {
        writes[r.0 as usize] += 1;
    }
    let mut copies: Copies = vec![None; body.classes.len()];
    let mut found = true;
    while found {
        found = false;
        for inst in &body.insts {
            let Some((to, from)) = copied(inst, &copies) else { continue };
            if writes[to] == 1 && copies[to].is_none() {
                copies[to] = Some(from);
                found = true;
            }
        }
    }
    copies
}

/// If an instruction copies a fixed row to a register, returns the register and the row.
fn copied(inst: &Inst, copies: &Copies) -> Option<(usize, Slot)> {
    let (Work::Copy, None, Opnd::Reg(to)) = (inst.work, inst.guard, inst.o[0]) else { return None };
    let from = match inst.o[1] {
        Opnd::Fixed(slot) => slot,
        Opnd::Reg(from) => copies[from.0 as usize]?,
        Opnd::None => return None,
    };
    Some((to.0 as usize, from))
}

/// Replaces reads of copies with reads of the rows.
fn replace(inst: &mut Inst, copies: &Copies) {
    for (k, operand) in inst.o.iter_mut().enumerate() {
        if let Opnd::Reg(r) = *operand
            && inst.defs >> k & 1 == 0
            && let Some(row) = copies[r.0 as usize]
        {
            *operand = Opnd::Fixed(row);
        }
    }
}

/// Removes each copy if an earlier instruction of the same straight-line run can count for it.
fn leave_out(body: &mut Body, copies: &Copies) {
    let mut target = vec![false; body.insts.len() + 1];
    for &at in &body.labels {
        target[at] = true;
    }
    let mut place = Vec::with_capacity(body.insts.len() + 1);
    let mut kept: Vec<Inst> = Vec::with_capacity(body.insts.len());
    for (at, inst) in std::mem::take(&mut body.insts).into_iter().enumerate() {
        place.push(kept.len());
        let useless = copied(&inst, copies).is_some_and(|(to, _)| copies[to].is_some());
        match kept.last_mut() {
            Some(before) if useless && !target[at] && before.flow == Flow::Next => {
                before.counts += inst.counts;
                body.left_out.push((kept.len() - 1, inst.line, inst.counts));
            }
            _ => kept.push(inst),
        }
    }
    place.push(kept.len());
    for at in &mut body.labels {
        *at = place[*at];
    }
    body.insts = kept;
}
