//! Defines the functions of expressions, in one table for the parser, the evaluator and the error messages.

/// A function that expressions may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The quotient of two integers, rounded up.
    CeilDiv,
    /// The least multiple of an integer that is not below another one.
    RoundUp,
    /// The least of several numbers.
    Min,
    /// The greatest of several numbers.
    Max,
    /// The absolute value of a number.
    Abs,
    /// The logarithm of base 2.
    Log2,
    /// The square root, a float.
    Sqrt,
    /// Whether an integer is a power of two.
    IsPow2,
    /// Gives the number of bytes that one element of a type has.
    Sizeof,
    /// The integer part of a number.
    Int,
    /// A number as a float.
    Float,
    /// Gives one of two values, by a condition.
    Select,
}

impl Function {
    /// Every function, in the order of the manual.
    pub const ALL: [Self; 12] = [
        Self::CeilDiv,
        Self::RoundUp,
        Self::Min,
        Self::Max,
        Self::Abs,
        Self::Log2,
        Self::Sqrt,
        Self::IsPow2,
        Self::Sizeof,
        Self::Int,
        Self::Float,
        Self::Select,
    ];

    /// Returns the name in manifests, for example `ceil_div`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CeilDiv => "ceil_div",
            Self::RoundUp => "round_up",
            Self::Min => "min",
            Self::Max => "max",
            Self::Abs => "abs",
            Self::Log2 => "log2",
            Self::Sqrt => "sqrt",
            Self::IsPow2 => "is_pow2",
            Self::Sizeof => "sizeof",
            Self::Int => "int",
            Self::Float => "float",
            Self::Select => "select",
        }
    }

    /// Returns the arguments and the result, for error messages.
    pub const fn signature(self) -> &'static str {
        match self {
            Self::CeilDiv => "ceil_div(a, b): a / b of integers, rounded up",
            Self::RoundUp => "round_up(a, b): the least multiple of b that is not below a",
            Self::Min => "min(a, b, ...): the least number",
            Self::Max => "max(a, b, ...): the greatest number",
            Self::Abs => "abs(x)",
            Self::Log2 => "log2(x): exact for an integer, which must be a power of two; a float for a float",
            Self::Sqrt => "sqrt(x): a float",
            Self::IsPow2 => "is_pow2(n): whether an integer is a power of two",
            Self::Sizeof => "sizeof(type): bytes of one element",
            Self::Int => "int(x): a float cut to its integer part",
            Self::Float => "float(x)",
            Self::Select => "select(condition, a, b): a where the condition holds, else b",
        }
    }

    /// Returns the least and the greatest number of arguments.
    pub const fn arity(self) -> (usize, usize) {
        match self {
            Self::CeilDiv | Self::RoundUp => (2, 2),
            Self::Min | Self::Max => (2, usize::MAX),
            Self::Select => (3, 3),
            _ => (1, 1),
        }
    }

    /// Returns the function that has this name in manifests.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }
}
