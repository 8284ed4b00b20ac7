//! Reference functions, which `check` and `cpu` variants compute on the host.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// Signature of a reference function, as shown in the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Name in manifests.
    pub name: &'static str,
    /// Names of the buffer arguments, which come first.
    pub buffers: &'static [&'static str],
    /// Names of the integer arguments that follow.
    pub integers: &'static [&'static str],
    /// How the arguments are interpreted; empty if that is obvious.
    pub note: &'static str,
}

impl fmt::Display for Signature {
    /// Formats the signature, e.g. `transpose(a, rows, columns): row-major`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, [self.buffers, self.integers].concat().join(", "))?;
        if self.note.is_empty() { Ok(()) } else { write!(f, ": {}", self.note) }
    }
}

/// Declares the functions, each with its documentation, variant, name in manifests, buffers and, after a semicolon,
/// integers.
///
/// [`Reduction`] and [`Map`] are matched without wildcards wherever a function is computed, so the compiler reports
/// every place that does not handle a new function.
macro_rules! reference_functions {
    (
        reductions { $(
            $(#[$reduction_doc:meta])+
            $reduction:ident = $reduction_name:literal($($x:ident),+) $(: $reduction_note:literal)?,
        )+ }
        maps { $(
            $(#[$map_doc:meta])+
            $map:ident = $map_name:literal($($y:ident),+ $(; $($integer:ident),+)?) $(: $map_note:literal)?,
        )+ }
    ) => {
        /// A function that references may call. Integers wrap at the width of the element type; floats are computed in
        /// f64.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum RefFunction { $($(#[$reduction_doc])+ $reduction,)+ $($(#[$map_doc])+ $map,)+ }

        /// A function that reduces arrays of equal length to a number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reduction { $($(#[$reduction_doc])+ $reduction,)+ }

        /// A function that maps arrays to an array.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Map { $($(#[$map_doc])+ $map,)+ }

        impl RefFunction {
            /// Every function, in the order of the manual.
            pub const ALL: [Self; [$(Self::$reduction,)+ $(Self::$map,)+].len()] =
                [$(Self::$reduction,)+ $(Self::$map,)+];

            pub const fn kind(self) -> RefKind {
                match self {
                    $(Self::$reduction => RefKind::Reduction(Reduction::$reduction),)+
                    $(Self::$map => RefKind::Map(Map::$map),)+
                }
            }

            pub const fn signature(self) -> Signature {
                match self {
                    $(Self::$reduction => Signature {
                        name: $reduction_name,
                        buffers: &[$(stringify!($x)),+],
                        integers: &[],
                        note: concat!($($reduction_note)?),
                    },)+
                    $(Self::$map => Signature {
                        name: $map_name,
                        buffers: &[$(stringify!($y)),+],
                        integers: &[$($(stringify!($integer)),+)?],
                        note: concat!($($map_note)?),
                    },)+
                }
            }
        }
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Reduction(Reduction),
    Map(Map),
}

reference_functions! {
    reductions {
        /// Sum of all elements.
        Sum = "sum"(x),
        /// Minimum element.
        Min = "min"(x),
        /// Maximum element.
        Max = "max"(x),
        /// Product of all elements.
        Product = "product"(x),
        /// Sum of squares of all elements.
        SumSquares = "sum_squares"(x),
        /// Bitwise AND of all elements.
        And = "and"(x): "bitwise, integers only",
        /// Bitwise OR of all elements.
        Or = "or"(x): "bitwise, integers only",
        /// Dot product.
        Dot = "dot"(x, y),
    }
    maps {
        /// Elementwise sum.
        Add = "add"(x, y): "element by element",
        /// All elements unchanged.
        Copy = "copy"(x),
        /// Product of an m×k and a k×n matrix: m×n elements.
        Matmul = "matmul"(a, b; m, n, k): "row-major m×k times k×n",
        /// Transpose of a matrix.
        Transpose = "transpose"(a; rows, columns): "row-major",
        /// Elements in ascending order.
        Sort = "sort"(x): "ascending",
        /// Inclusive prefix sums.
        Scan = "scan"(x): "inclusive sums",
        /// Number of occurrences of each integer from 0 to `bins` - 1.
        Histogram = "histogram"(x; bins): "integers from 0 to bins - 1",
        /// Softmax of each row.
        Softmax = "softmax"(x; columns): "of each row",
        /// Elementwise exponential.
        Exp = "exp"(x): "of each element",
        /// Elementwise GELU (Gaussian error linear unit), with the error function.
        Gelu = "gelu"(x): "of each element, with the error function",
        /// Elementwise GELU, with the tanh approximation.
        GeluTanh = "gelu_tanh"(x): "of each element, with the tanh approximation",
        /// Each row normalised to mean 0 and standard deviation 1, times `weight`, plus `bias`.
        LayerNorm = "layernorm"(x, weight, bias; columns): "of each row; 1e-5 is added to the variance",
        /// Convolution of an image with a filter that is not mirrored (cross-correlation). The image is 0 outside its
        /// borders.
        Convolution = "convolution"(x, filter; rows, columns, filter_rows, filter_columns): "row-major, 0 outside",
        /// Elements with indices in `from..to`.
        Slice = "slice"(x; from, to): "from index `from` to before `to`",
    }
}

impl RefFunction {
    /// Name in manifests.
    pub const fn name(self) -> &'static str {
        self.signature().name
    }

    /// Number of buffer arguments, which come first.
    pub const fn buffers(self) -> usize {
        self.signature().buffers.len()
    }

    /// Number of integer arguments, which follow the buffers.
    pub const fn integers(self) -> usize {
        self.signature().integers.len()
    }

    pub const fn is_reduction(self) -> bool {
        matches!(self.kind(), RefKind::Reduction(_))
    }
}

/// A reference expression with its numbers evaluated, as `check` compares and `cpu` variants time it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefExpr {
    Buffer(String),
    /// A number to compare every element with, or the expected result of a reduction.
    Constant(Value),
    /// A function applied to buffers (or results of functions) and integers.
    Call {
        function: RefFunction,
        /// Buffer arguments, which come first.
        buffers: Vec<RefExpr>,
        /// Integer arguments, e.g. sizes.
        integers: Vec<i64>,
    },
    /// Elementwise arithmetic. A number is broadcast to all elements.
    Elementwise {
        operation: Elementwise,
        /// One or two operands, depending on the operation.
        operands: Vec<RefExpr>,
    },
}

/// An elementwise operation. Integers wrap at the width of the element type; floats are computed in f64. Comparisons
/// and logic return 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elementwise {
    Add,
    Subtract,
    Multiply,
    /// Division; truncates for integers.
    Divide,
    Negate,
    Min,
    Max,
    Abs,
    Sqrt,
    /// Remainder; for integers it has the sign of the first operand.
    Remainder,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    /// Logical AND: whether both operands are nonzero.
    And,
    /// Logical OR: whether at least one operand is nonzero.
    Or,
    /// Logical NOT: whether the operand is 0.
    Not,
}

impl Elementwise {
    /// Whether the results are Boolean: 0 or 1.
    pub const fn gives_truth(self) -> bool {
        self.compares() || matches!(self, Self::And | Self::Or | Self::Not)
    }

    /// Whether it compares its operands.
    pub const fn compares(self) -> bool {
        matches!(
            self,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual | Self::Equal | Self::NotEqual
        )
    }
}

#[cfg(test)]
mod tests {
    use super::RefFunction;

    #[test]
    fn a_signature_reads_as_the_manual_writes_it() {
        let written = |function: RefFunction| function.signature().to_string();
        assert_eq!(written(RefFunction::Sum), "sum(x)");
        assert_eq!(written(RefFunction::Dot), "dot(x, y)");
        assert_eq!(written(RefFunction::Add), "add(x, y): element by element");
        assert_eq!(written(RefFunction::Copy), "copy(x)");
        assert_eq!(written(RefFunction::Matmul), "matmul(a, b, m, n, k): row-major m×k times k×n");
        assert_eq!(written(RefFunction::Transpose), "transpose(a, rows, columns): row-major");
    }
}
