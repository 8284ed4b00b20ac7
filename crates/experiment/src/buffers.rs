//! Buffers of a manifest and their initial content.

use std::path::PathBuf;

use super::{Expression, Template};
use runner_types::{Access, Allocation, Vary};

#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    pub name: String,
    /// Template for the name of an element type.
    pub element: Template,
    /// Number of elements. Uses the name [`BufferSpec::length_name`] if the fill's file determines it.
    pub len: Expression,
    /// Initial content; `None` for `out` and `scratch`.
    pub fill: Option<FillSpec>,
    pub access: Access,
    /// C++ name of a static `__device__` array to use instead of allocated memory.
    pub symbol: Option<Template>,
    pub allocate: Allocation,
    /// How the second set of inputs differs from the first if the fill has no seed.
    pub vary: Option<Vary>,
    /// Whether to poison `scratch` memory before every launch.
    pub poison: bool,
}

impl BufferSpec {
    /// Name for the length of a buffer whose file determines it, for use in expressions.
    pub fn length_name(buffer: &str) -> String {
        format!("{buffer}_len")
    }

    /// Names for the extents of the array in the fill's file, for use in expressions.
    pub fn extent_names(buffer: &str) -> [String; 6] {
        [0, 1, 2, 3, 4, 5].map(|dimension| format!("{buffer}_dim{dimension}"))
    }

    /// Whether the fill's file contains an array with extents.
    pub const fn has_extents(&self) -> bool {
        matches!(self.fill, Some(FillSpec::Npy(_) | FillSpec::Tensor(_)))
    }

    /// Whether the fill's file determines the buffer's length.
    pub fn is_as_long_as_its_file(&self) -> bool {
        self.len.text() == Self::length_name(&self.name)
            && matches!(self.fill, Some(FillSpec::Npy(_) | FillSpec::Raw(_) | FillSpec::Tensor(_)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum FillSpec {
    Constant(Expression),
    /// Elements `start + step × index`.
    Iota {
        start: Expression,
        step: Expression,
    },
    /// Uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        low: Expression,
        high: Expression,
        seed: u64,
    },
    /// Normal distribution; floats only.
    Normal {
        mean: Expression,
        deviation: Expression,
        seed: u64,
    },
    Npy(FileSpec),
    /// A binary file of little-endian elements.
    Raw(FileSpec),
    Tensor(TensorSpec),
    List(Vec<Expression>),
    /// Same content as another buffer.
    Like {
        buffer: String,
        fill: Box<Self>,
    },
    /// Random elements with a structure, e.g. sorted, a permutation, or a diagonally dominant matrix.
    Structured {
        structure: StructureSpec,
        seed: u64,
    },
}

/// A file whose name may contain placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpec {
    /// The manifest's folder.
    pub folder: PathBuf,
    /// File name relative to `folder`.
    pub name: Template,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TensorSpec {
    pub file: FileSpec,
    pub tensor: Template,
}

/// Structure of a random fill, with its numbers not yet evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum StructureSpec {
    Sorted {
        low: Expression,
        high: Expression,
    },
    /// The numbers 0, 1, …, length - 1 in random order.
    Permutation,
    /// Rows of this length, each with a single 1 and otherwise 0.
    OneHot(Expression),
    /// Identity matrix with this many columns.
    Identity(Expression),
    /// Random diagonally dominant matrix with this many columns.
    Dominant(Expression),
    /// Ranks distributed by Zipf's law.
    Zipf {
        values: Expression,
        exponent: Expression,
    },
    /// Row offsets of a CSR matrix.
    CsrRows {
        nonzeros: Expression,
        columns: Expression,
    },
    /// Column indices of a CSR matrix.
    CsrColumns {
        /// Name of the buffer with the row offsets.
        rows: String,
        /// Length of that buffer: the number of rows plus one.
        begins: Expression,
        nonzeros: Expression,
        columns: Expression,
    },
}
