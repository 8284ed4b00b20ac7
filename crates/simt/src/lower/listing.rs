//! Formats bytecode as text.
//!
//! A line shows the index of the instruction, the PTX opcode that it comes from, the operands that it writes, an arrow,
//! the operands that it reads, and its immediate fields. Operands are named by area and offset in rows of 128 bytes:
//! `r3` is a register, `c0` a constant, `w0` a value per warp, `b2` a value per block. A branch shows its target. One
//! PTX instruction may become several; the loader adds `guard`, `join` and `end`.

use std::fmt::Write as _;

use crate::program::ins::{Area, Ins, Slot};
use crate::program::{Kernel, Origin};

/// Formats all functions of a kernel, of which the first is the kernel itself.
pub fn listing(kernel: &Kernel) -> String {
    let mut text = String::new();
    for code in &kernel.functions {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {} bytes of registers, {} of local memory", code.name, code.frame, code.locals);
        for (at, (ins, origin)) in code.ins.iter().zip(&code.origins).enumerate() {
            let _ = writeln!(text, "{at:4}  {}", line(kernel, at, ins, *origin));
        }
    }
    text
}

fn line(kernel: &Kernel, at: usize, ins: &Ins, origin: Origin) -> String {
    let (name, defs, branches) = match origin {
        Origin::Instruction { opcode, defs, branches, .. } => {
            (kernel.opcodes[opcode as usize].as_str(), defs, branches)
        }
        Origin::Guard => ("guard", 0, false),
        Origin::Join => ("join", 0, false),
    };
    // The second operand of a branch is the distance to its reconvergence point.
    let operands = if branches { &ins.o[..1] } else { &ins.o[..] };
    let list = |written: bool| {
        let chosen = operands.iter().enumerate().filter(|(k, o)| **o != Slot::NONE && (defs >> k & 1 == 1) == written);
        chosen.map(|(_, &o)| operand(o)).collect::<Vec<_>>().join(" ")
    };
    let mut text = format!("{name:<24}");
    let (written, read) = (list(true), list(false));
    if !written.is_empty() {
        let _ = write!(text, " {written} <-");
    }
    if !read.is_empty() {
        let _ = write!(text, " {read}");
    }
    if branches {
        let _ = write!(text, " to {}", at as i64 + ins.imm);
    } else if ins.imm != 0 {
        let _ = write!(text, " imm {}", ins.imm);
    }
    if ins.aux != 0 {
        let _ = write!(text, " aux {:#x}", ins.aux);
    }
    text.trim_end().to_owned()
}

fn operand(slot: Slot) -> String {
    let areas = [(Area::Frame, 'r'), (Area::Constants, 'c'), (Area::Warp, 'w'), (Area::Block, 'b')];
    let area = areas.into_iter().find(|(area, _)| *area as u32 == slot.0 & 3).map_or('?', |(_, name)| name);
    let offset = slot.0 & !3;
    match offset % 128 {
        0 => format!("{area}{}", offset / 128),
        // Predicates take four bytes each.
        rest => format!("{area}{}.{}", offset / 128, rest / 4),
    }
}
