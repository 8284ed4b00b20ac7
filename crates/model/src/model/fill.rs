//! The initial content of buffers, with its numbers evaluated.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Value;

/// The initial content of a buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillPlan {
    /// Every element has this value.
    Constant(Value),
    /// `start + step × index`.
    Iota {
        /// The first element.
        start: Value,
        /// The difference of two neighbours.
        step: Value,
    },
    /// Uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        /// The lower bound.
        low: Value,
        /// The upper bound.
        high: Value,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Normally distributed.
    Normal {
        /// The mean of the distribution.
        #[serde(with = "super::real")]
        mean: f64,
        /// The standard deviation.
        #[serde(with = "super::real")]
        deviation: f64,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// The elements of an `.npy` file.
    Npy(PathBuf),
    /// The bytes of a file, little-endian elements.
    Raw(PathBuf),
    /// Bytes within a file, little-endian elements.
    Part(FilePart),
    /// These elements.
    List(Vec<Value>),
    /// The content of another buffer.
    Like {
        /// The name of that buffer.
        buffer: String,
        /// Its fill.
        fill: Box<Self>,
    },
    /// Random, with a structure.
    Structured {
        /// What the elements are.
        structure: Structure,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// The elements of another fill, in an order that a seed determines. No manifest states it: see
    /// [`Vary::Permute`](super::Vary).
    Permuted {
        /// The fill.
        fill: Box<Self>,
        /// Seed of the order.
        seed: u64,
    },
}

/// Bytes within a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    /// The file.
    pub path: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// What a structured fill consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// Ascending, spread evenly over `[low, high)`.
    Sorted {
        /// The lower bound.
        low: Value,
        /// The upper bound.
        high: Value,
    },
    /// Each of 0, 1, …, length - 1 once.
    Permutation,
    /// Rows of this many elements, one of which is 1 and the others 0.
    OneHot(u64),
    /// A matrix with this many columns: 1 on the diagonal, 0 elsewhere.
    Identity(u64),
    /// A random matrix with this many columns whose rows are dominated by the diagonal.
    Dominant(u64),
    /// Ranks 0 to `values - 1`: rank r has a probability proportional to `1 / (r + 1)^exponent`.
    Zipf {
        /// How many ranks there are.
        values: u64,
        /// How fast probabilities fall; positive.
        #[serde(with = "super::real")]
        exponent: f64,
    },
    /// Where the rows of a sparse matrix begin: one element more than rows, the last is the number of nonzeros.
    CsrRows(Sparse),
    /// The columns of the nonzeros of a sparse matrix, ascending within each row.
    CsrColumns(Sparse),
}

/// A sparse matrix in compressed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sparse {
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix.
    pub columns: u64,
    /// Elements that are stored.
    pub nonzeros: u64,
}

impl FillPlan {
    /// Returns the seed, if the content is random.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Uniform { seed, .. } | Self::Normal { seed, .. } | Self::Structured { seed, .. } => Some(*seed),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } => fill.seed(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    /// Returns the seed, to change it.
    pub fn seed_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Uniform { seed, .. } | Self::Normal { seed, .. } | Self::Structured { seed, .. } => Some(seed),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } => fill.seed_mut(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    /// The same elements in an order that a seed determines. Buffers with one content keep one content.
    #[must_use]
    pub fn permuted(self, seed: u64) -> Self {
        match self {
            Self::Like { buffer, fill } => Self::Like { buffer, fill: Box::new(fill.permuted(seed)) },
            fill => Self::Permuted { fill: Box::new(fill), seed },
        }
    }

    /// Returns the file that holds the content.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } => fill.file(),
            _ => None,
        }
    }

    /// Returns the path of that file.
    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&mut part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } => fill.file_mut(),
            _ => None,
        }
    }
}
