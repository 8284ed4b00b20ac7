//! Describes the initial content of buffers, with its numbers evaluated.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Value;

/// The initial content of a buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillPlan {
    /// Every element has this value.
    Constant(Value),
    /// The elements are `start + step × index`.
    Iota {
        /// The element with the index 0.
        start: Value,
        /// The difference of two neighbours.
        step: Value,
    },
    /// The elements are uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        /// The bound below which no element is.
        low: Value,
        /// The bound above which no element is.
        high: Value,
        /// The seed of the random numbers.
        seed: u64,
    },
    /// The elements are normally distributed.
    Normal {
        /// The mean of the distribution.
        #[serde(with = "super::real")]
        mean: f64,
        /// The standard deviation of the elements.
        #[serde(with = "super::real")]
        deviation: f64,
        /// The seed of the random numbers.
        seed: u64,
    },
    /// The elements of an `.npy` file.
    Npy(PathBuf),
    /// The bytes of a file, little-endian elements.
    Raw(PathBuf),
    /// The elements are bytes within a file, little-endian.
    Part(FilePart),
    /// The elements are these.
    List(Vec<Value>),
    /// The content of another buffer.
    Like {
        /// The name of that buffer.
        buffer: String,
        /// What the other buffer is filled with.
        fill: Box<Self>,
    },
    /// The elements are random, with a structure.
    Structured {
        /// What the elements are.
        structure: Structure,
        /// The seed of the random numbers.
        seed: u64,
    },
    /// The elements of another fill, in an order that a seed determines. No manifest states it: see
    /// [`Vary::Permute`](super::Vary).
    Permuted {
        /// What gives the elements that are permuted.
        fill: Box<Self>,
        /// The seed of the order.
        seed: u64,
        /// The elements that change their places.
        stretch: Range<u64>,
    },
    /// The elements of a random fill, but for a stretch of them, which has another seed. No manifest states it: see
    /// [`FillPlan::spliced`].
    Spliced {
        /// What gives the elements.
        fill: Box<Self>,
        /// The seed of the elements in the stretch.
        seed: u64,
        /// The elements that have it.
        stretch: Range<u64>,
    },
}

/// A range of bytes within a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    /// The path of the file.
    pub path: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// What a structured fill consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// Ascending, spread evenly over `[low, high)`.
    Sorted {
        /// The bound below which no element is.
        low: Value,
        /// The bound above which no element is.
        high: Value,
    },
    /// The elements are 0, 1, …, length - 1, each once.
    Permutation,
    /// Rows of this many elements, one of which is 1 and the others 0.
    OneHot(u64),
    /// The elements form a matrix with this many columns: 1 on the diagonal, 0 elsewhere.
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
    /// The number of rows that the matrix has.
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
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.seed(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    /// Returns the seed, to change it.
    pub fn seed_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Uniform { seed, .. } | Self::Normal { seed, .. } | Self::Structured { seed, .. } => Some(seed),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.seed_mut(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    /// Returns a fill of the same elements, of which those in a stretch are in an order that a seed determines. Buffers
    /// with one content keep one content.
    #[must_use]
    pub fn permuted(self, seed: u64, stretch: Range<u64>) -> Self {
        match self {
            Self::Like { buffer, fill } => Self::Like { buffer, fill: Box::new(fill.permuted(seed, stretch)) },
            fill => Self::Permuted { fill: Box::new(fill), seed, stretch },
        }
    }

    /// Returns the same fill, but for a stretch of elements that are drawn with a seed that differs by `secret`; the
    /// fill itself where elements depend on each other.
    #[must_use]
    pub fn spliced(self, secret: u64, stretch: Range<u64>) -> Self {
        match (self.is_random_by_element(), self) {
            (true, Self::Like { buffer, fill }) => Self::Like { buffer, fill: Box::new(fill.spliced(secret, stretch)) },
            (true, fill) => {
                Self::Spliced { seed: fill.seed().unwrap_or_default() ^ secret, fill: Box::new(fill), stretch }
            }
            (false, fill) => fill,
        }
    }

    /// Whether the content is random, and still one of its kind if some elements have another seed.
    pub fn is_random_by_element(&self) -> bool {
        match self {
            Self::Uniform { .. } | Self::Normal { .. } => true,
            Self::Structured { structure, .. } => {
                matches!(structure, Structure::Sorted { .. } | Structure::Dominant(_) | Structure::Zipf { .. })
            }
            Self::Like { fill, .. } => fill.is_random_by_element(),
            _ => false,
        }
    }

    /// Returns the file that holds the content.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.file(),
            _ => None,
        }
    }

    /// Returns the path of that file.
    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&mut part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.file_mut(),
            _ => None,
        }
    }
}
