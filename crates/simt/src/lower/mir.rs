//! What the passes work on: instructions with virtual registers and labels.

use crate::exec::program::Line;
use crate::exec::row::{Handler, Slot};

/// A virtual register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// How a register is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// One bit a lane.
    Pred,
    /// Up to 32 bits a lane.
    Narrow,
    /// 64 bits a lane.
    Wide,
    /// 128 bits a lane.
    Quad,
}

impl Class {
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Pred => 4,
            Self::Narrow => 128,
            Self::Wide => 256,
            Self::Quad => 512,
        }
    }
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opnd {
    None,
    Reg(Reg),
    /// Already located, or a raw number that the handler reads.
    Fixed(Slot),
}

/// A label of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// Where control goes behind an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    Next,
    Jump(Label),
    /// To the label or to the next instruction.
    Branch(Label),
    Table(Vec<Label>),
    /// To another function, and to the next instruction once that has returned.
    Call,
    /// Nowhere: return, exit, trap.
    End,
}

/// What an instruction does with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// What its handler knows.
    Any,
    /// Operand 0 becomes what operand 1 is, and nothing else happens.
    Copy,
    /// It writes predicates, and its handler asks whether a branch is next.
    Decision,
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    pub run: Handler,
    pub o: [Opnd; 6],
    /// Bit `k`: operand `k` is written.
    pub defs: u8,
    pub imm: i64,
    pub aux: u32,
    pub flow: Flow,
    /// Register and negation.
    pub guard: Option<(Reg, bool)>,
    pub line: Line,
    /// The instruction of the PTX that it is made from, as an index into [`KernelParts::opcodes`].
    ///
    /// [`KernelParts::opcodes`]: super::builder::KernelParts::opcodes
    pub opcode: u32,
    /// A polling load, a volatile one or an atomic with a result: ordered where it stands in a loop.
    pub polls: bool,
    /// A volatile or releasing store, or an atomic: ordered where the function polls.
    pub publishes: bool,
    /// An atomic that is ordered only because its result is read.
    pub ordered_by_result: bool,
    pub work: Work,
    /// Instructions of the PTX that it stands for: none for what the loader adds.
    pub counts: u32,
}

/// A function before its registers are placed.
#[derive(Debug, Default)]
pub struct Body {
    pub insts: Vec<Inst>,
    /// Index of the instruction that each label stands before.
    pub labels: Vec<usize>,
    pub classes: Vec<Class>,
}

impl Body {
    /// Registers that an instruction reads, its guard included.
    pub fn uses(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
        let operands = inst.o.iter().enumerate().filter_map(|(k, o)| match o {
            Opnd::Reg(r) if inst.defs >> k & 1 == 0 => Some(*r),
            _ => None,
        });
        operands.chain(inst.guard.map(|g| g.0))
    }

    /// Registers that an instruction writes.
    pub fn defs(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
        inst.o.iter().enumerate().filter_map(|(k, o)| match o {
            Opnd::Reg(r) if inst.defs >> k & 1 == 1 => Some(*r),
            _ => None,
        })
    }
}
