//! Defines the syntax tree. Names are slices of the module's text.

use std::borrow::Cow;

/// A state space of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// The variable is in registers.
    Reg,
    /// The variable is in global memory.
    Global,
    /// The variable is in constant memory.
    Const,
    /// The variable is in the shared memory of a block.
    Shared,
    /// The variable is in the local memory of a thread.
    Local,
    /// Parameters of kernels, functions and calls.
    Param,
}

/// A fundamental type of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum ScalarType {
    /// `.pred` is a predicate.
    Pred,
    /// `.b8` has 8 bits without a type.
    B8,
    /// `.b16` has 16 bits without a type.
    B16,
    /// `.b32` has 32 bits without a type.
    B32,
    /// `.b64` has 64 bits without a type.
    B64,
    /// `.b128` has 128 bits without a type.
    B128,
    /// `.u8` is unsigned and has 8 bits.
    U8,
    /// `.u16` is unsigned and has 16 bits.
    U16,
    /// `.u16x2` has two of `.u16`.
    U16x2,
    /// `.u32` is unsigned and has 32 bits.
    U32,
    /// `.u64` is unsigned and has 64 bits.
    U64,
    /// `.s8` is signed and has 8 bits.
    S8,
    /// `.s16` is signed and has 16 bits.
    S16,
    /// `.s16x2` has two of `.s16`.
    S16x2,
    /// `.s32` is signed and has 32 bits.
    S32,
    /// `.s64` is signed and has 64 bits.
    S64,
    /// `.f16` has half precision.
    F16,
    /// `.f16x2` has two of `.f16`.
    F16x2,
    /// `.bf16` is bfloat16.
    Bf16,
    /// `.bf16x2` has two of `.bf16`.
    Bf16x2,
    /// `.f32` has single precision.
    F32,
    /// `.f64` has double precision.
    F64,
}

impl ScalarType {
    /// Returns the type written without its leading dot, for example `f16x2`.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the size in memory in bytes; a predicate has none and counts as one.
    pub const fn size(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::U16x2 | Self::S32 | Self::S16x2 | Self::F16x2 | Self::Bf16x2 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// Whether the type is `s8` … `s64`.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether the type is floating point, packed ones included.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64)
    }
}

/// What a PTX module contains.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module<'a> {
    /// The version of the PTX ISA, for example `(9, 0)`.
    pub version: (u32, u32),
    /// The first word of `.target`, for example `sm_90`.
    pub target: &'a str,
    /// The files that `.file` directives name.
    pub files: Vec<SourceFile<'a>>,
    /// The variables outside of functions.
    pub variables: Vec<Variable<'a>>,
    /// Definitions and declarations, in the order of the text.
    pub functions: Vec<Function<'a>>,
}

/// What a `.file` directive says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// The index that `.loc` uses.
    pub index: u32,
    /// The path as written.
    pub path: &'a str,
}

/// The linkage of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// No linkage is given: the symbol is known in its module only.
    #[default]
    Private,
    /// The symbol is `.visible`.
    Visible,
    /// The symbol is `.extern`.
    Extern,
    /// The symbol is `.weak`.
    Weak,
    /// The symbol is `.common`.
    Common,
}

/// A variable in memory, a parameter, or a range of registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable<'a> {
    /// The name as written; of a range of registers without the number.
    pub name: &'a str,
    /// The line of the PTX text.
    pub line: u32,
    /// The linkage of a variable of the module.
    pub linkage: Linkage,
    /// The state space that the variable is in.
    pub space: Space,
    /// The alignment in bytes: as declared, or else the type's.
    pub align: u32,
    /// The type of an element.
    pub ty: ScalarType,
    /// The number of elements, which is that of the vector times all dimensions; zero for an array without a length.
    pub count: u64,
    /// `%r<17>` declares `%r0` to `%r16`.
    pub range: Option<u32>,
    /// The initial value of each element, or none.
    pub init: Vec<Initializer<'a>>,
}

impl Variable<'_> {
    /// Returns the size of the whole variable in bytes; it saturates.
    pub fn size(&self) -> u64 {
        self.count.saturating_mul(u64::from(self.ty.size()))
    }
}

/// An element that an initialiser gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initializer<'a> {
    /// The bits of the element.
    Int(u64),
    /// A float whose bits depend on the variable's type.
    Float(f64),
    /// The address of a symbol plus an offset; `generic` for `generic(symbol)`.
    Address {
        /// The name of a variable or a function.
        symbol: &'a str,
        /// Bytes added to its address.
        offset: i64,
        /// Whether it is a generic address.
        generic: bool,
    },
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    /// The name as written.
    pub name: &'a str,
    /// The line of the PTX text.
    pub line: u32,
    /// The linkage that is declared.
    pub linkage: Linkage,
    /// Whether it is a kernel.
    pub entry: bool,
    /// The return parameters of a device function.
    pub returns: Vec<Variable<'a>>,
    /// The parameters in their order.
    pub params: Vec<Variable<'a>>,
    /// The directives such as `.maxntid`: their name without the dot, and their numbers.
    pub directives: Vec<(&'a str, Vec<u32>)>,
    /// The statements of the body; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
}

/// A position in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourcePosition {
    /// The index that the `.file` directive gives.
    pub file: u32,
    /// The line, which counts from one.
    pub line: u32,
    /// The column, which counts from one.
    pub column: u32,
}

/// A statement of a function's body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement<'a> {
    /// The statement is a label: `name:`.
    Label(&'a str),
    /// The statement declares a variable.
    Variable(Variable<'a>),
    /// The statement is an instruction.
    Instruction(Instruction<'a>),
    /// `.loc`: the source position of the statements that follow and, for inlined code, the position of the call.
    Location {
        /// The position in the source.
        place: SourcePosition,
        /// The position of the call, for inlined code.
        inlined_at: Option<SourcePosition>,
    },
    /// The statement is a scope with its own names.
    Block(Vec<Statement<'a>>),
    /// The statement is `name: .callprototype …` or `name: .calltargets …`.
    Prototype {
        /// The name that calls use.
        name: &'a str,
        /// The parameters that return values.
        returns: Vec<Variable<'a>>,
        /// The parameters in their order.
        params: Vec<Variable<'a>>,
    },
    /// The statement is `name: .branchtargets a, b;`.
    BranchTargets {
        /// The name that branches use.
        name: &'a str,
        /// The targets in the order of their indices.
        labels: Vec<&'a str>,
    },
}

/// The guard `@p` or `@!p` of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// The name of the predicate register.
    pub register: &'a str,
    /// Whether the instruction is executed if the predicate is false.
    pub negated: bool,
}

/// An instruction as in `[@guard] opcode operands;`.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction<'a> {
    /// The line of the PTX text.
    pub line: u32,
    /// The predicate that guards it.
    pub guard: Option<Guard<'a>>,
    /// The opcode with all modifiers, for example `ld.global.nc.v4.u32`.
    pub opcode: Cow<'a, str>,
    /// The operands as written, destinations first; none for a `call`.
    pub operands: Vec<Operand<'a>>,
    /// The parts of a `call`; boxed, because few instructions are calls.
    pub call: Option<Box<Call<'a>>>,
}

impl Instruction<'_> {
    /// Returns the instruction with each vector register, of which `width` gives the number of elements, written out as
    /// `{v.x, v.y}`; `None` if it names none.
    pub fn with_elements(&self, mut width: impl FnMut(&str) -> Option<u8>) -> Option<Self> {
        let mut changed = None;
        for (at, operand) in self.operands.iter().enumerate() {
            let Operand::Name(name) = *operand else { continue };
            let Some(width) = width(name) else { continue };
            let operands = &mut changed.get_or_insert_with(|| self.clone()).operands;
            operands[at] = Operand::Vector((0..width).map(|k| Operand::Element(name, k)).collect());
        }
        changed
    }
}

/// The operands of `call`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// A function's name, or the register that holds its address.
    pub target: &'a str,
    /// Where the results go.
    pub returns: Vec<Operand<'a>>,
    /// The arguments of the call.
    pub args: Vec<Operand<'a>>,
    /// The prototype of an indirect call.
    pub prototype: Option<&'a str>,
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable, a function or a label.
    Name(&'a str),
    /// The operand is an element of a vector register, by its index. The parser gives `v.y` as a name;
    /// [`Instruction::with_elements`] makes this of `v`.
    Element(&'a str, u8),
    /// The operand is `!p`.
    Not(&'a str),
    /// The operand is `-r`.
    Negative(&'a str),
    /// The operand is an integer literal; negative ones are in two's complement.
    Int(u64),
    /// The operand is written as `0fXXXXXXXX`.
    F32(u32),
    /// The operand is written as `0dXXXXXXXXXXXXXXXX` or as a decimal literal.
    F64(u64),
    /// The operand is `[name + offset]`; an absolute address has no name.
    Address {
        /// A register or a variable.
        base: Option<&'a str>,
        /// Bytes added to it.
        offset: i64,
    },
    /// The operand is `[name, {a, b}]`, an element of a tensor or a texture.
    Place(Vec<Operand<'a>>),
    /// The operand is `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// The operand is `p | q`.
    Pair(&'a str, &'a str),
    /// The operand is `name + offset` outside brackets.
    Offset(&'a str, i64),
    /// The operand is `_`.
    Sink,
}
