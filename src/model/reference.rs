//! The reference functions: what `check` and `cpu` variants compute on the host.

use serde::{Deserialize, Serialize};

use super::Value;

/// A reference function. Integers wrap as the element type does; floats are computed in f64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefFunction {
    /// `sum(x)`.
    Sum,
    /// `min(x)`.
    Min,
    /// `max(x)`.
    Max,
    /// `product(x)`.
    Product,
    /// `sum_squares(x)`.
    SumSquares,
    /// `and(x)`: bitwise, integers only.
    And,
    /// `or(x)`: bitwise, integers only.
    Or,
    /// `dot(x, y)`.
    Dot,
    /// `add(x, y)`: element by element.
    Add,
    /// `copy(x)`.
    Copy,
    /// `matmul(a, b, m, n, k)`: row-major m×k times k×n gives m×n.
    Matmul,
    /// `transpose(a, rows, columns)`: row-major.
    Transpose,
}

impl RefFunction {
    /// Every function, in the order of the manual.
    pub const ALL: [Self; 12] = [
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Product,
        Self::SumSquares,
        Self::And,
        Self::Or,
        Self::Dot,
        Self::Add,
        Self::Copy,
        Self::Matmul,
        Self::Transpose,
    ];

    /// The name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Product => "product",
            Self::SumSquares => "sum_squares",
            Self::And => "and",
            Self::Or => "or",
            Self::Dot => "dot",
            Self::Add => "add",
            Self::Copy => "copy",
            Self::Matmul => "matmul",
            Self::Transpose => "transpose",
        }
    }

    /// How many arguments are buffers; they come first.
    pub const fn buffers(self) -> usize {
        match self {
            Self::Dot | Self::Add | Self::Matmul => 2,
            _ => 1,
        }
    }

    /// How many integers follow the buffers.
    pub const fn integers(self) -> usize {
        match self {
            Self::Matmul => 3,
            Self::Transpose => 2,
            _ => 0,
        }
    }

    /// Whether the result is one number.
    pub const fn is_reduction(self) -> bool {
        !matches!(self, Self::Add | Self::Copy | Self::Matmul | Self::Transpose)
    }
}

/// A reference expression whose numbers are worked out: what `check` compares and `cpu` variants time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefExpr {
    /// A buffer, by name.
    Buffer(String),
    /// A number that every element is compared with, or one that a reduction must equal.
    Constant(Value),
    /// A function applied to buffers (which may be results of functions) and integers.
    Call { function: RefFunction, buffers: Vec<RefExpr>, integers: Vec<i64> },
}
