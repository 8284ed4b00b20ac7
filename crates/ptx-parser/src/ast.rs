//! The syntax tree. Names are slices of the module's text.

use std::borrow::Cow;

/// A state space of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Registers.
    Reg,
    /// Memory of all threads.
    Global,
    /// Constant memory.
    Const,
    /// Memory of a block or of a cluster's blocks.
    Shared,
    /// Local memory of a thread.
    Local,
    /// Parameters of kernels, functions and calls.
    Param,
}

/// A fundamental type of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum ScalarType {
    /// `.pred`: a predicate.
    Pred,
    /// `.b8`: 8 untyped bits.
    B8,
    /// `.b16`: 16 untyped bits.
    B16,
    /// `.b32`: 32 untyped bits.
    B32,
    /// `.b64`: 64 untyped bits.
    B64,
    /// `.b128`: 128 untyped bits.
    B128,
    /// `.u8`: unsigned, 8 bits.
    U8,
    /// `.u16`: unsigned, 16 bits.
    U16,
    /// `.u16x2`: two `.u16`.
    U16x2,
    /// `.u32`: unsigned, 32 bits.
    U32,
    /// `.u64`: unsigned, 64 bits.
    U64,
    /// `.s8`: signed, 8 bits.
    S8,
    /// `.s16`: signed, 16 bits.
    S16,
    /// `.s16x2`: two `.s16`.
    S16x2,
    /// `.s32`: signed, 32 bits.
    S32,
    /// `.s64`: signed, 64 bits.
    S64,
    /// `.f16`: half precision.
    F16,
    /// `.f16x2`: two `.f16`.
    F16x2,
    /// `.bf16`: bfloat16.
    Bf16,
    /// `.bf16x2`: two `.bf16`.
    Bf16x2,
    /// `.f32`: single precision.
    F32,
    /// `.f64`: double precision.
    F64,
}

impl ScalarType {
    /// Parses a name without its leading dot, e.g. `f16x2`.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Size in memory, in bytes. A predicate has no size and counts as one byte.
    pub const fn size(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::U16x2 | Self::S32 | Self::S16x2 | Self::F16x2 | Self::Bf16x2 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// Whether the type is one of `s8` to `s64`.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether the type is a floating-point type, including packed types.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64)
    }
}

/// A PTX module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module<'a> {
    /// Version of the PTX ISA, e.g. `(9, 0)`.
    pub version: (u32, u32),
    /// First word of `.target`, e.g. `sm_90`.
    pub target: &'a str,
    /// Source files, from the `.file` directives.
    pub files: Vec<SourceFile<'a>>,
    /// Variables outside functions.
    pub variables: Vec<Variable<'a>>,
    /// Definitions and declarations of functions, in order.
    pub functions: Vec<Function<'a>>,
}

/// A `.file` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// Index that `.loc` uses.
    pub index: u32,
    /// Path as written.
    pub path: &'a str,
}

/// Linkage of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// None given; the symbol is local to its module.
    #[default]
    Private,
    /// `.visible`.
    Visible,
    /// `.extern`.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// A variable in memory, a parameter, or a range of registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable<'a> {
    /// Name as written; for a range of registers, without the number.
    pub name: &'a str,
    /// Line in the PTX text.
    pub line: u32,
    /// Linkage of a module-scope variable.
    pub linkage: Linkage,
    /// State space of the variable.
    pub space: Space,
    /// Alignment in bytes, as declared or implied by the type.
    pub align: u32,
    /// Type of an element.
    pub ty: ScalarType,
    /// Number of elements, which is the vector width times all dimensions; zero for an array without a length.
    pub count: u64,
    /// Number of registers in a range: `%r<17>` declares `%r0` to `%r16`.
    pub range: Option<u32>,
    /// Initial value of each element; empty if there is no initialiser.
    pub init: Vec<Initializer<'a>>,
}

impl Variable<'_> {
    /// Size of the whole variable in bytes, saturating.
    pub fn size(&self) -> u64 {
        self.count.saturating_mul(u64::from(self.ty.size()))
    }
}

/// Initial value of an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initializer<'a> {
    /// Bits of an integer.
    Int(u64),
    /// A float. Its bits depend on the variable's type.
    Float(f64),
    /// Address of a symbol, plus an offset.
    Address {
        /// Name of a variable or function.
        symbol: &'a str,
        /// Bytes added to the address.
        offset: i64,
        /// Whether the address is written as `generic(symbol)`.
        generic: bool,
    },
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    /// Name as written.
    pub name: &'a str,
    /// Line in the PTX text.
    pub line: u32,
    /// Declared linkage.
    pub linkage: Linkage,
    /// Whether the function is a kernel.
    pub entry: bool,
    /// Return parameters of a device function.
    pub returns: Vec<Variable<'a>>,
    /// Parameters in order.
    pub params: Vec<Variable<'a>>,
    /// Directives such as `.maxntid`: name without the dot, and numbers.
    pub directives: Vec<(&'a str, Vec<u32>)>,
    /// Statements of the body; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
}

/// A position in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourcePosition {
    /// Index of the `.file` directive.
    pub file: u32,
    /// Line, 1-based.
    pub line: u32,
    /// Column, 1-based.
    pub column: u32,
}

/// A statement of a function's body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement<'a> {
    /// A label, `name:`.
    Label(&'a str),
    /// Declaration of a variable.
    Variable(Variable<'a>),
    /// An instruction.
    Instruction(Instruction<'a>),
    /// `.loc`: source position of the following statements.
    Location {
        /// Position in the source.
        place: SourcePosition,
        /// Position of the call, for inlined code.
        inlined_at: Option<SourcePosition>,
    },
    /// A scope with its own names.
    Block(Vec<Statement<'a>>),
    /// `name: .callprototype …` or `name: .calltargets …`.
    Prototype {
        /// Name that calls use.
        name: &'a str,
        /// Return parameters.
        returns: Vec<Variable<'a>>,
        /// Parameters in order.
        params: Vec<Variable<'a>>,
    },
    /// `name: .branchtargets a, b;`.
    BranchTargets {
        /// Name that branches use.
        name: &'a str,
        /// Targets, in the order of their indices.
        labels: Vec<&'a str>,
    },
}

/// The guard `@p` or `@!p` of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Name of the predicate register.
    pub register: &'a str,
    /// Whether the instruction is executed when the predicate is false.
    pub negated: bool,
}

/// An instruction, `[@guard] opcode operands;`.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction<'a> {
    /// Line in the PTX text.
    pub line: u32,
    /// Guard, if any.
    pub guard: Option<Guard<'a>>,
    /// Opcode with all modifiers, e.g. `ld.global.nc.v4.u32`.
    pub opcode: Cow<'a, str>,
    /// Operands as written, destinations first; empty for a `call`.
    pub operands: Vec<Operand<'a>>,
    /// Parts of a `call`. Boxed because calls are rare.
    pub call: Option<Box<Call<'a>>>,
}

impl Instruction<'_> {
    /// Expands each vector register to `{v.x, v.y}`. `width` returns the number of elements of a register. `None` if
    /// the instruction has no vector register.
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

/// The operands of a `call`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// Name of the function, or of the register that holds its address.
    pub target: &'a str,
    /// Destinations of the results.
    pub returns: Vec<Operand<'a>>,
    /// Arguments in order.
    pub args: Vec<Operand<'a>>,
    /// Prototype of an indirect call.
    pub prototype: Option<&'a str>,
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable, a function or a label.
    Name(&'a str),
    /// An element of a vector register, by index. The parser returns `v.y` as a name; [`Instruction::with_elements`]
    /// turns it into an element of `v`.
    Element(&'a str, u8),
    /// `!p`.
    Not(&'a str),
    /// `-r`.
    Negative(&'a str),
    /// An integer literal. Negative ones are in two's complement.
    Int(u64),
    /// A literal `0fXXXXXXXX`.
    F32(u32),
    /// A literal `0dXXXXXXXXXXXXXXXX`, or a decimal float.
    F64(u64),
    /// `[name + offset]`. An absolute address has no name.
    Address {
        /// A register or a variable.
        base: Option<&'a str>,
        /// Bytes added to the base.
        offset: i64,
    },
    /// `[name, {a, b}]`: an element of a tensor or a texture.
    Place(Vec<Operand<'a>>),
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `p | q`.
    Pair(&'a str, &'a str),
    /// `name + offset`, outside brackets.
    Offset(&'a str, i64),
    /// `_`.
    Sink,
}
