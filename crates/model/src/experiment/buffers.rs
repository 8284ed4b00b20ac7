//! The buffers of a manifest and what they are filled with.

use std::path::PathBuf;

use super::{Expression, Template};
use crate::model::{Access, Allocation, Vary};

/// One buffer of device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    /// The name that arguments and checks use.
    pub name: String,
    /// Evaluates to an element type's name.
    pub element: Template,
    /// Elements. Names [`BufferSpec::length_name`] if the file of its fill determines them.
    pub len: Expression,
    /// `None` for `out` and `scratch`.
    pub fill: Option<FillSpec>,
    /// What happens to it before every launch.
    pub access: Access,
    /// The C++ name of a static `__device__` array that is the buffer's memory, in place of an allocation.
    pub symbol: Option<Template>,
    /// When its memory is allocated and freed.
    pub allocate: Allocation,
    /// How the second set of inputs differs from the first, where a seed does not change it.
    pub vary: Option<Vary>,
    /// Whether `scratch` memory is poisoned before every launch.
    pub poison: bool,
}

impl BufferSpec {
    /// Returns the name by which expressions use the length of a buffer whose file determines it.
    pub fn length_name(buffer: &str) -> String {
        format!("{buffer}_len")
    }

    /// Returns the names by which expressions use the extents of the array in the file of a buffer's fill.
    pub fn extent_names(buffer: &str) -> [String; 6] {
        [0, 1, 2, 3, 4, 5].map(|dimension| format!("{buffer}_dim{dimension}"))
    }

    /// Whether its file says which extents its array has.
    pub const fn has_extents(&self) -> bool {
        matches!(self.fill, Some(FillSpec::Npy(_) | FillSpec::Tensor(_)))
    }

    /// Whether the file of its fill determines its length.
    pub fn is_as_long_as_its_file(&self) -> bool {
        self.len.text() == Self::length_name(&self.name)
            && matches!(self.fill, Some(FillSpec::Npy(_) | FillSpec::Raw(_) | FillSpec::Tensor(_)))
    }
}

/// The initial content of a buffer.
#[derive(Debug, Clone, PartialEq)]
pub enum FillSpec {
    /// Every element has this value.
    Constant(Expression),
    /// `start + step × index`.
    Iota {
        /// The first element.
        start: Expression,
        /// The difference of two neighbours.
        step: Expression,
    },
    /// Uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        /// The lower bound.
        low: Expression,
        /// The upper bound.
        high: Expression,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Normally distributed; floats only.
    Normal {
        /// The mean of the distribution.
        mean: Expression,
        /// The standard deviation.
        deviation: Expression,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// An `.npy` file.
    Npy(FileSpec),
    /// A file of little-endian elements.
    Raw(FileSpec),
    /// A tensor of a safetensors file.
    Tensor(TensorSpec),
    /// These elements.
    List(Vec<Expression>),
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
        structure: StructureSpec,
        /// Seed of the random numbers.
        seed: u64,
    },
}

/// A file beside the manifest whose name may have placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpec {
    /// The manifest's folder.
    pub folder: PathBuf,
    /// Its name, relative to that folder.
    pub name: Template,
}

/// A tensor of a safetensors file.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorSpec {
    /// The file.
    pub file: FileSpec,
    /// The name of the tensor.
    pub tensor: Template,
}

/// What a structured fill consists of, before its numbers are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum StructureSpec {
    /// Ascending from `low` to `high`.
    Sorted {
        /// The lower bound.
        low: Expression,
        /// The upper bound.
        high: Expression,
    },
    /// Each of 0, 1, …, length - 1 once.
    Permutation,
    /// Rows of this many elements with a single 1.
    OneHot(Expression),
    /// The unit matrix with this many columns.
    Identity(Expression),
    /// A random, diagonally dominant matrix with this many columns.
    Dominant(Expression),
    /// Ranks that follow Zipf's law.
    Zipf {
        /// How many ranks there are.
        values: Expression,
        /// How fast probabilities fall.
        exponent: Expression,
    },
    /// Where the rows of a sparse matrix begin.
    CsrRows {
        /// Elements that are stored.
        nonzeros: Expression,
        /// Columns of the matrix.
        columns: Expression,
    },
    /// The columns of the stored elements of a sparse matrix.
    CsrColumns {
        /// The name of the buffer with the beginnings of rows.
        rows: String,
        /// The length of that buffer: one more than rows.
        begins: Expression,
        /// Elements that are stored.
        nonzeros: Expression,
        /// Columns of the matrix.
        columns: Expression,
    },
}
