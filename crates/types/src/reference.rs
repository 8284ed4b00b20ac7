//! Reference functions, which `check` and `cpu` variants compute on the host.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// Arguments of a reference function, as in the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Name in manifests.
    pub name: &'static str,
    /// Names of the buffers, which come first.
    pub buffers: &'static [&'static str],
    /// Names of the integers that follow them.
    pub integers: &'static [&'static str],
    /// How the arguments are interpreted; empty if that is obvious.
    pub note: &'static str,
}

impl fmt::Display for Signature {
    /// Writes the signature, e.g. `transpose(a, rows, columns): row-major`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, [self.buffers, self.integers].concat().join(", "))?;
        if self.note.is_empty() { Ok(()) } else { write!(f, ": {}", self.note) }
    }
}

/// Declares the functions, each with its documentation: variant, name in manifests, buffers and, after a semicolon,
/// integers.
///
/// [`Reduction`] and [`Map`] are matched without wildcards wherever a function is computed, so that a new function does
/// not compile until all of these places handle it.
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
        /// A function that references may call. Integers wrap as the element type does; floats are computed in f64.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum RefFunction { $($(#[$reduction_doc])+ $reduction,)+ $($(#[$map_doc])+ $map,)+ }

        /// A function that computes one number from arrays of one length.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reduction { $($(#[$reduction_doc])+ $reduction,)+ }

        /// A function from arrays to an array.
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
        /// The sum of all elements.
        Sum = "sum"(x),
        /// The least element.
        Min = "min"(x),
        /// The greatest element.
        Max = "max"(x),
        /// The product of all elements.
        Product = "product"(x),
        /// The sum of the squares of all elements.
        SumSquares = "sum_squares"(x),
        /// The bitwise and of all elements.
        And = "and"(x): "bitwise, integers only",
        /// The bitwise or of all elements.
        Or = "or"(x): "bitwise, integers only",
        /// The sum of the products of elements at the same index.
        Dot = "dot"(x, y),
    }
    maps {
        /// The sum of elements at the same index.
        Add = "add"(x, y): "element by element",
        /// Every element as it is.
        Copy = "copy"(x),
        /// The product of a matrix of m×k and one of k×n: m×n elements.
        Matmul = "matmul"(a, b; m, n, k): "row-major m×k times k×n",
        /// A matrix with its rows and columns exchanged.
        Transpose = "transpose"(a; rows, columns): "row-major",
        /// The elements in ascending order.
        Sort = "sort"(x): "ascending",
        /// The sums of all elements up to each one, itself included.
        Scan = "scan"(x): "inclusive sums",
        /// How often each integer from 0 to `bins` - 1 occurs.
        Histogram = "histogram"(x; bins): "integers from 0 to bins - 1",
        /// The exponentials of each row, divided by their sum.
        Softmax = "softmax"(x; columns): "of each row",
        /// The exponential of each element.
        Exp = "exp"(x): "of each element",
        /// The Gaussian error linear unit of each element, by the error function.
        Gelu = "gelu"(x): "of each element, by the error function",
        /// The Gaussian error linear unit of each element, by the approximation with tanh.
        GeluTanh = "gelu_tanh"(x): "of each element, by the approximation with tanh",
        /// Each row without its mean, over its standard deviation, times `weight` and plus `bias`.
        LayerNorm = "layernorm"(x, weight, bias; columns): "of each row; 1e-5 is added to the variance",
        /// The convolution of an image with a filter, which is not mirrored; the image is 0 outside.
        Convolution = "convolution"(x, filter; rows, columns, filter_rows, filter_columns): "row-major, 0 outside",
        /// The elements from index `from` to before index `to`.
        Slice = "slice"(x; from, to): "from index `from` to before `to`",
    }
}

impl RefFunction {
    /// Name in manifests.
    pub const fn name(self) -> &'static str {
        self.signature().name
    }

    /// Number of buffers, which are the first arguments.
    pub const fn buffers(self) -> usize {
        self.signature().buffers.len()
    }

    /// Number of integers after the buffers.
    pub const fn integers(self) -> usize {
        self.signature().integers.len()
    }

    pub const fn is_reduction(self) -> bool {
        matches!(self.kind(), RefKind::Reduction(_))
    }
}

/// A reference expression with its numbers evaluated: what `check` compares and `cpu` variants time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefExpr {
    Buffer(String),
    /// A number that every element is compared with, or that a reduction must equal.
    Constant(Value),
    /// A function applied to buffers (which may be results of functions) and integers.
    Call {
        function: RefFunction,
        /// Buffers, which are the first arguments.
        buffers: Vec<RefExpr>,
        /// Arguments after the buffers, e.g. sizes.
        integers: Vec<i64>,
    },
    /// Arithmetic on elements at the same index. A number is the same for all of them.
    Elementwise {
        operation: Elementwise,
        /// One operand or two, depending on the operation.
        operands: Vec<RefExpr>,
    },
}

/// An operation on elements of arrays. Integers wrap as the element type does; floats are computed in f64. Comparisons
/// and logic give 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elementwise {
    Add,
    Subtract,
    Multiply,
    /// Division; integer division truncates.
    Divide,
    Negate,
    Min,
    Max,
    Abs,
    /// Square root of a float.
    Sqrt,
    /// Remainder; for integers it has the sign of the first operand.
    Remainder,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    /// Whether both operands are not 0.
    And,
    /// Whether an operand is not 0.
    Or,
    /// Whether the operand is 0.
    Not,
}

impl Elementwise {
    /// Whether each result is 0 or 1.
    pub const fn gives_truth(self) -> bool {
        self.compares() || matches!(self, Self::And | Self::Or | Self::Not)
    }

    /// Whether the operands are compared with each other.
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
