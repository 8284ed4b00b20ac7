//! Initial content of buffers, with its numbers evaluated.
//!
//! A fill describes content instead of holding it: the worker generates the elements, on the device if possible.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillPlan {
    Constant(Value),
    /// Elements `start + step × index`.
    Iota {
        start: Value,
        step: Value,
    },
    /// Uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        low: Value,
        high: Value,
        seed: u64,
    },
    Normal {
        #[serde(with = "super::real")]
        mean: f64,
        #[serde(with = "super::real")]
        deviation: f64,
        seed: u64,
    },
    /// Elements of an `.npy` file.
    Npy(PathBuf),
    /// Elements of a binary file, little-endian.
    Raw(PathBuf),
    /// Elements of a section of a binary file, little-endian.
    Part(FilePart),
    List(Vec<Value>),
    /// Same content as another buffer.
    Like {
        buffer: String,
        fill: Box<Self>,
    },
    /// Random elements with a structure, e.g. sorted or a permutation.
    Structured {
        structure: Structure,
        seed: u64,
    },
    /// Elements of another fill, permuted with a seed. Not available in manifests: see [`Vary::Permute`](super::Vary).
    Permuted {
        fill: Box<Self>,
        seed: u64,
        stretch: Range<u64>,
    },
    /// A random fill with a different seed in a range of elements. Not available in manifests: see
    /// [`FillPlan::spliced`].
    Spliced {
        fill: Box<Self>,
        /// Seed within `stretch`.
        seed: u64,
        /// Elements that use the other seed.
        stretch: Range<u64>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    pub path: PathBuf,
    pub offset: u64,
    pub bytes: u64,
}

/// Structure of a random fill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// Ascending, spread evenly over `[low, high)`.
    Sorted { low: Value, high: Value },
    /// The numbers 0, 1, …, length - 1 in random order.
    Permutation,
    /// Rows of this length, each with a single 1 and otherwise 0.
    OneHot(u64),
    /// Identity matrix with this many columns.
    Identity(u64),
    /// Random diagonally dominant matrix with this many columns.
    Dominant(u64),
    /// Ranks 0 to `values - 1`: the probability of rank r is proportional to `1 / (r + 1)^exponent`.
    Zipf {
        values: u64,
        /// Positive.
        #[serde(with = "super::real")]
        exponent: f64,
    },
    /// Row offsets of a CSR matrix: rows + 1 numbers, the last of which is the number of nonzeros.
    CsrRows(Sparse),
    /// Column indices of a CSR matrix, ascending within each row.
    CsrColumns(Sparse),
}

/// A sparse matrix in CSR (compressed sparse row) format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sparse {
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
}

impl FillPlan {
    /// Seed of random content.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Uniform { seed, .. } | Self::Normal { seed, .. } | Self::Structured { seed, .. } => Some(*seed),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.seed(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    pub fn seed_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Uniform { seed, .. } | Self::Normal { seed, .. } | Self::Structured { seed, .. } => Some(seed),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.seed_mut(),
            Self::Constant(_) | Self::Iota { .. } | Self::Npy(_) | Self::Raw(_) | Self::Part(_) | Self::List(_) => None,
        }
    }

    /// The same fill with the elements in `stretch` permuted by a seed. Buffers with equal content stay equal.
    #[must_use]
    pub fn permuted(self, seed: u64, stretch: Range<u64>) -> Self {
        match self {
            Self::Like { buffer, fill } => Self::Like { buffer, fill: Box::new(fill.permuted(seed, stretch)) },
            fill => Self::Permuted { fill: Box::new(fill), seed, stretch },
        }
    }

    /// The same fill, but with the seed changed by `secret` for the elements in `stretch`. Returns the fill unchanged
    /// if its elements depend on each other.
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

    /// Whether the content is random and stays valid if some elements are drawn with a different seed.
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

    /// File that holds the content.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.file(),
            _ => None,
        }
    }

    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&mut part.path),
            Self::Like { fill, .. } | Self::Permuted { fill, .. } | Self::Spliced { fill, .. } => fill.file_mut(),
            _ => None,
        }
    }
}
