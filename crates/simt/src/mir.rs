//! Functions between syntax and bytecode: instructions with virtual registers and labels, and the builder that creates
//! them.

pub mod builder;
pub mod constants;
pub mod globals;
mod names;
mod source;
pub mod special;

use crate::exec::context::Handler;
use crate::program::Line;
use crate::program::ins::Slot;
use ptx_parser::ScalarType;

/// A virtual register, before rows are allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// How a register is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// One bit per lane.
    Pred,
    /// Up to 32 bits per lane.
    Narrow,
    /// 64 bits per lane.
    Wide,
    /// 128 bits per lane.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opnd {
    None,
    Reg(Reg),
    /// A fixed location, or a number that the handler reads.
    Fixed(Slot),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// Where control goes after an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    Next,
    Jump(Label),
    /// To the label, or to the next instruction.
    Branch(Label),
    Table(Vec<Label>),
    /// To another function, then to the next instruction.
    Call,
    /// Nowhere: the instruction is a return, an exit or a trap.
    End,
}

/// What an instruction does with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Not known; only the handler defines it.
    Any,
    /// Copies operand 1 to operand 0 and has no other effect.
    Copy,
    /// Writes predicates, and checks whether a branch follows.
    Decision,
}

/// When an access to memory that blocks share must follow commit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Never: the access is plain, or not to such memory.
    Never,
    /// A plain load: only if an access in commit order has the same address.
    Plain,
    /// An atomic that commutes with others of its operation and type: only if some result is read, or if the kernel has
    /// other accesses in commit order.
    Commuting(&'static str, ScalarType),
    /// A volatile access: only if the kernel has an atomic or a relaxed, acquiring or releasing access, or if a
    /// volatile load is in a loop.
    Volatile,
    /// Always: relaxed, acquiring and releasing accesses, and all other atomics.
    Always,
}

/// An instruction before register allocation.
#[derive(Debug, Clone)]
pub struct Inst {
    pub run: Handler,
    pub o: [Opnd; 6],
    /// Bit `k` is set if operand `k` is written.
    pub defs: u8,
    pub imm: i64,
    pub aux: u32,
    pub flow: Flow,
    /// The register, and whether it is negated.
    pub guard: Option<(Reg, bool)>,
    pub line: Line,
    /// Opcode of the PTX instruction that this one comes from, as an index into [`KernelParts::opcodes`].
    ///
    /// [`KernelParts::opcodes`]: builder::KernelParts::opcodes
    pub opcode: u32,
    pub order: Order,
    /// Index of the address operand, if the access may have to follow commit order.
    pub address: usize,
    /// Whether the instruction is a poll when it is in a loop: a volatile or acquiring load, or an atomic with a
    /// result.
    pub polls: bool,
    pub work: Work,
    /// Number of PTX instructions that this one counts for; zero for one that the loader adds.
    pub counts: u32,
}

/// A function, before registers are allocated.
#[derive(Debug, Default)]
pub struct Body {
    pub insts: Vec<Inst>,
    /// Index of the instruction that follows each label.
    pub labels: Vec<usize>,
    /// Removed instructions: index of the instruction that counts for them, their line, and their number.
    pub left_out: Vec<(usize, Line, u32)>,
    pub classes: Vec<Class>,
}

impl Body {
    /// Returns the registers that an instruction reads, including its guard's.
    pub fn uses(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
        let operands = inst.o.iter().enumerate().filter_map(|(k, o)| match o {
            Opnd::Reg(r) if inst.defs >> k & 1 == 0 => Some(*r),
            _ => None,
        });
        operands.chain(inst.guard.map(|g| g.0))
    }

    /// Returns the registers that an instruction writes.
    pub fn defs(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
        inst.o.iter().enumerate().filter_map(|(k, o)| match o {
            Opnd::Reg(r) if inst.defs >> k & 1 == 1 => Some(*r),
            _ => None,
        })
    }
}
