//! The buffers of a manifest and what they are filled with.

use std::path::PathBuf;

use super::{Expression, Template};
use crate::model::{Access, Allocation, Vary};

/// A buffer of device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    /// The name that arguments and checks use.
    pub name: String,
    /// Evaluates to an element type's name.
    pub element: Template,
    /// The number of elements. Names [`BufferSpec::length_name`] if the file of its fill determines them.
    pub len: Expression,
    /// What the buffer is filled with; `None` for `out` and `scratch`.
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
    /// The elements are `start + step × index`.
    Iota {
        /// The element with the index 0.
        start: Expression,
        /// The difference of two neighbours.
        step: Expression,
    },
    /// The elements are uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        /// The bound below which no element is.
        low: Expression,
        /// The bound above which no element is.
        high: Expression,
        /// The seed of the random numbers.
        seed: u64,
    },
    /// Normally distributed; floats only.
    Normal {
        /// The mean of the distribution.
        mean: Expression,
        /// The standard deviation of the elements.
        deviation: Expression,
        /// The seed of the random numbers.
        seed: u64,
    },
    /// The elements are in an `.npy` file.
    Npy(FileSpec),
    /// A file of little-endian elements.
    Raw(FileSpec),
    /// A tensor of a safetensors file.
    Tensor(TensorSpec),
    /// The elements are these.
    List(Vec<Expression>),
    /// The content of another buffer.
    Like {
        /// The name of that buffer.
        buffer: String,
        /// What the other buffer is filled with.
        fill: Box<Self>,
    },
    /// The elements are random, with a structure.
    Structured {
        /// The structure of the elements.
        structure: StructureSpec,
        /// The seed of the random numbers.
        seed: u64,
    },
}

/// A file beside the manifest whose name may have placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpec {
    /// The folder that the manifest is in.
    pub folder: PathBuf,
    /// The file's name, relative to that folder.
    pub name: Template,
}

/// A tensor of a safetensors file.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorSpec {
    /// The file that has the tensor.
    pub file: FileSpec,
    /// The name of the tensor.
    pub tensor: Template,
}

/// What a structured fill consists of, before its numbers are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum StructureSpec {
    /// The elements ascend from `low` to `high`.
    Sorted {
        /// The bound below which no element is.
        low: Expression,
        /// The bound above which no element is.
        high: Expression,
    },
    /// The elements are 0, 1, …, length - 1, each once.
    Permutation,
    /// Each row has this many elements and a single 1.
    OneHot(Expression),
    /// The elements form the unit matrix with this many columns.
    Identity(Expression),
    /// The elements form a random, diagonally dominant matrix with this many columns.
    Dominant(Expression),
    /// Ranks that follow Zipf's law.
    Zipf {
        /// How many ranks there are.
        values: Expression,
        /// How fast probabilities fall.
        exponent: Expression,
    },
    /// The elements say where the rows of a sparse matrix begin.
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
        /// The length of the buffer that says where rows begin: one more than there are rows.
        begins: Expression,
        /// Elements that are stored.
        nonzeros: Expression,
        /// Columns of the matrix.
        columns: Expression,
    },
}
