//! The last pass, which emits flat bytecode with reconvergence points, guards and branch distances.

use crate::exec::control;
use crate::lower::flow::Graph;
use crate::lower::place::{Placed, place};
use crate::mir;
use crate::mir::{Body, Class, Flow, Inst, Opnd, Work};
use crate::program::aux::{Branch, Decision, Join};
use crate::program::ins::{Area, Entry, Ins, Slot};
use crate::program::{Line, Origin, Width};

/// The flat bytecode of a function.
#[derive(Debug)]
pub struct Emitted {
    pub ins: Vec<Ins>,
    pub lines: Vec<Line>,
    pub origins: Vec<Origin>,
    pub left_out: Vec<(usize, Line, u32)>,
    pub frame: u32,
    /// Whether the function may read a register that was never written.
    pub reads_unwritten: bool,
}

/// Positions of the body's instructions in the flat code.
struct Layout {
    /// Index of each instruction's first flat instruction, including join and guard.
    at: Vec<usize>,
    /// Whether a join precedes each instruction.
    joins: Vec<bool>,
}

/// Emits a function. `tables` collects the kernel's jump tables.
pub fn emit(body: &Body, tables: &mut Vec<Vec<i64>>) -> Emitted {
    let graph = Graph::new(body);
    let post_dominators = graph.post_dominators();
    let exits = graph.exits(body);
    let mut joins = vec![false; body.insts.len() + 1];
    for (k, node) in graph.nodes.iter().enumerate() {
        if matches!(body.insts[node.end - 1].flow, Flow::Branch(_) | Flow::Table(_))
            && let Some(reconvergence) = post_dominators[k]
        {
            joins[graph.nodes[reconvergence].start] = true;
        }
    }
    let Placed { offsets, frame, reads_unwritten } = place(body, &graph);
    let mut at = Vec::with_capacity(body.insts.len() + 1);
    let mut length = 0;
    for (k, inst) in body.insts.iter().enumerate() {
        at.push(length);
        length += 1 + usize::from(joins[k]) + usize::from(inst.guard.is_some());
    }
    at.push(length);
    let mut used = vec![false; body.classes.len()];
    body.insts.iter().flat_map(Body::uses).for_each(|r| used[r.0 as usize] = true);
    let layout = Layout { at, joins };
    let mut ins = Vec::with_capacity(length);
    let mut lines = Vec::new();
    let mut origins = Vec::with_capacity(length);
    for (k, inst) in body.insts.iter().enumerate() {
        if lines.last() != Some(&inst.line) {
            lines.push(inst.line);
        }
        let line = lines.len() as u32 - 1;
        let blank = Ins {
            run: Entry::from_handler(control::join::<false>),
            o: [Slot::NONE; 6],
            imm: 0,
            aux: 0,
            line,
            ahead: 0,
            number: 0,
        };
        if layout.joins[k] {
            let aux = if exits[graph.node_of[k]] { Join::EXITS.bits() } else { 0 };
            ins.push(Ins { aux, ..blank });
            origins.push(Origin::Join);
        }
        let slot = |o: Opnd| match o {
            Opnd::None => Slot::NONE,
            Opnd::Reg(r) => Slot::new(Area::Frame, offsets[r.0 as usize]),
            Opnd::Fixed(slot) => slot,
        };
        if let Some((register, negated)) = inst.guard {
            let mut o = [Slot::NONE; 6];
            o[0] = slot(Opnd::Reg(register));
            ins.push(Ins {
                run: Entry::from_handler(control::guard::<false>),
                o,
                aux: if negated { Branch::NEGATED.bits() } else { 0 },
                ..blank
            });
            origins.push(Origin::Guard);
        }
        let mut flat =
            Ins { run: Entry::from_handler(inst.run), o: inst.o.map(slot), imm: inst.imm, aux: inst.aux, ..blank };
        let here = ins.len() as i64;
        link(
            &mut flat,
            inst,
            here,
            body,
            &layout,
            &mut || {
                let reconvergence = post_dominators[graph.node_of[k]]?;
                Some(layout.at[graph.nodes[reconvergence].start] as i64 - here)
            },
            tables,
        );
        let branch = |k: usize| body.insts.get(k).is_some_and(|next| matches!(next.flow, Flow::Branch(_)));
        let decides = inst.work == Work::Decision && inst.guard.is_none() && branch(k + 1) && !layout.joins[k + 1];
        if decides {
            flat.aux |= Decision::BEFORE_BRANCH.bits();
        }
        ins.push(flat);
        let branches = matches!(inst.flow, Flow::Jump(_) | Flow::Branch(_));
        let (opcode, defs, counts) = (inst.opcode, inst.defs, inst.counts);
        let (ends, widths) = (inst.flow != Flow::Next, inst.o.map(|o| width(body, o)));
        let is_read = |o: Opnd| matches!(o, Opnd::Reg(r) if used[r.0 as usize]);
        let read = (0..6).fold(0, |m, k| m | u8::from(defs >> k & 1 == 1 && is_read(inst.o[k])) << k);
        origins.push(Origin::Instruction { opcode, defs, read, widths, branches, counts, ends, decides });
    }
    count_stretches(body, &layout, &mut ins);
    // An instruction becomes one or more flat instructions, the last of which is the instruction itself.
    let left_out = body.left_out.iter().map(|&(k, line, counts)| (layout.at[k + 1] - 1, line, counts)).collect();
    Emitted { ins, lines, origins, left_out, frame, reads_unwritten }
}

/// Returns the width of an operand's register.
fn width(body: &Body, operand: Opnd) -> Width {
    match operand {
        Opnd::Reg(r) => match body.classes[r.0 as usize] {
            Class::Pred => Width::Pred,
            Class::Narrow => Width::Narrow,
            Class::Wide => Width::Wide,
            Class::Quad => Width::Quad,
        },
        _ => Width::None,
    }
}

/// Sets, on each instruction, the number of counted instructions from it to the end of its straight-line run, which is
/// the next control transfer or join. A guard stands for the instruction after it.
fn count_stretches(body: &Body, layout: &Layout, ins: &mut [Ins]) {
    let mut ahead = 0;
    for (k, inst) in body.insts.iter().enumerate().rev() {
        if inst.flow != Flow::Next {
            ahead = 0;
        }
        ahead += inst.counts;
        let first = layout.at[k] + usize::from(layout.joins[k]);
        for flat in &mut ins[first..layout.at[k + 1]] {
            flat.ahead = ahead;
        }
        if layout.joins[k] {
            ahead = 0;
        }
    }
}

/// Sets the branch distances of a control instruction.
fn link(
    flat: &mut Ins,
    inst: &Inst,
    here: i64,
    body: &Body,
    layout: &Layout,
    reconvergence: &mut dyn FnMut() -> Option<i64>,
    tables: &mut Vec<Vec<i64>>,
) {
    let distance = |label: &mir::Label| layout.at[body.labels[label.0 as usize]] as i64 - here;
    match &inst.flow {
        Flow::Next | Flow::Call | Flow::End => return,
        Flow::Jump(label) => {
            flat.imm = distance(label);
            flat.aux |= if flat.imm <= 0 { Branch::BACKWARD.bits() } else { 0 };
            return;
        }
        Flow::Branch(label) => {
            flat.imm = distance(label);
            flat.aux |= if flat.imm <= 0 { Branch::BACKWARD.bits() } else { 0 };
        }
        Flow::Table(labels) => {
            flat.imm = tables.len() as i64;
            tables.push(labels.iter().map(distance).collect());
        }
    }
    if let Some(reconvergence) = reconvergence() {
        flat.o[1] = Slot(reconvergence as i32 as u32);
        flat.aux |= Branch::RECONVERGES.bits();
    }
}
