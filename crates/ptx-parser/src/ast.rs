//! The syntax tree. Names are slices of the module's text.

/// A state space of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    Reg,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// A fundamental type of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U16x2,
    U32,
    U64,
    S8,
    S16,
    S16x2,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

impl ScalarType {
    /// The type written without its leading dot, for example `f16x2`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u16x2" => Self::U16x2,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s16x2" => Self::S16x2,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    /// Size in memory in bytes; a predicate has none and counts as one.
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

/// A whole module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module<'a> {
    /// PTX ISA version, for example `(9, 0)`.
    pub version: (u32, u32),
    /// The first word of `.target`, for example `sm_90`.
    pub target: &'a str,
    pub files: Vec<SourceFile<'a>>,
    pub variables: Vec<Variable<'a>>,
    /// Definitions and declarations, in the order of the text.
    pub functions: Vec<Function<'a>>,
}

/// A `.file` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile<'a> {
    pub index: u32,
    pub path: &'a str,
}

/// The linkage of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    #[default]
    Private,
    Visible,
    Extern,
    Weak,
    Common,
}

/// A variable in memory, a parameter, or a range of registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable<'a> {
    pub name: &'a str,
    pub line: u32,
    pub linkage: Linkage,
    pub space: Space,
    /// Alignment in bytes: as declared, or else the type's.
    pub align: u32,
    pub ty: ScalarType,
    /// Number of elements: of the vector times all dimensions; zero for an array without a length.
    pub count: u64,
    /// `%r<17>` declares `%r0` to `%r16`.
    pub range: Option<u32>,
    pub init: Vec<Initializer<'a>>,
}

impl Variable<'_> {
    /// Size of the whole variable in bytes; saturates.
    pub fn size(&self) -> u64 {
        self.count.saturating_mul(u64::from(self.ty.size()))
    }
}

/// One element of an initialiser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initializer<'a> {
    /// The element's bits.
    Int(u64),
    /// A float whose bits depend on the variable's type.
    Float(f64),
    /// The address of a symbol plus an offset; `generic` for `generic(symbol)`.
    Address { symbol: &'a str, offset: i64, generic: bool },
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    pub name: &'a str,
    pub line: u32,
    pub linkage: Linkage,
    pub entry: bool,
    pub returns: Vec<Variable<'a>>,
    pub params: Vec<Variable<'a>>,
    /// `.maxntid` and similar directives: name without the dot, numbers.
    pub directives: Vec<(&'a str, Vec<u32>)>,
    /// `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
}

/// A position in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the `.file`.
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// One statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement<'a> {
    Label(&'a str),
    Variable(Variable<'a>),
    Instruction(Instruction<'a>),
    /// `.loc`: the source position of the statements that follow and, for inlined code, the position of the call.
    Location {
        place: Place,
        inlined_at: Option<Place>,
    },
    /// A scope with its own names.
    Block(Vec<Statement<'a>>),
    /// `name: .callprototype …` or `name: .calltargets …`.
    Prototype {
        name: &'a str,
        returns: Vec<Variable<'a>>,
        params: Vec<Variable<'a>>,
    },
    /// `name: .branchtargets a, b;`
    BranchTargets {
        name: &'a str,
        labels: Vec<&'a str>,
    },
}

/// `@p` or `@!p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    pub register: &'a str,
    pub negated: bool,
}

/// `[@guard] opcode operands;`
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction<'a> {
    /// Line of the PTX text.
    pub line: u32,
    pub guard: Option<Guard<'a>>,
    /// With all modifiers, for example `ld.global.nc.v4.u32`.
    pub opcode: &'a str,
    pub operands: Vec<Operand<'a>>,
    /// The parts of a `call`; boxed, because few instructions are calls.
    pub call: Option<Box<Call<'a>>>,
}

/// The operands of `call`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// A function's name, or the register that holds its address.
    pub target: &'a str,
    pub returns: Vec<Operand<'a>>,
    pub args: Vec<Operand<'a>>,
    /// The prototype of an indirect call.
    pub prototype: Option<&'a str>,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable, a function or a label.
    Name(&'a str),
    /// `!p`
    Not(&'a str),
    /// An integer literal; negative ones in two's complement.
    Int(u64),
    /// `0fXXXXXXXX`
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal literal
    F64(u64),
    /// `[name + offset]`; no name for an absolute address.
    Address { base: Option<&'a str>, offset: i64 },
    /// `[name, {a, b}]`: an element of a tensor or a texture.
    Element(Vec<Operand<'a>>),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `p | q`
    Pair(&'a str, &'a str),
    /// `name + offset` outside brackets
    Offset(&'a str, i64),
    /// `_`
    Sink,
}
