//! The checks of a manifest: what is compared, with what, and how much may differ.

use std::path::PathBuf;

use super::{Expression, FileSpec, FunctionSpec, Reference, Template, TensorSpec};
use crate::model::Span;

/// A comparison of a result with the value that is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSpec {
    /// What the launches computed.
    pub actual: Reference,
    /// What it is compared with.
    pub expect: Expectation,
    /// The difference that is allowed.
    pub tolerance: ToleranceSpec,
    /// The mask of the comparison: an element is compared where the mask is not 0.
    pub mask: Option<Reference>,
    /// Whether the report shows the greatest error.
    pub error: bool,
}

/// The lines that kernels print, in any order. The texts may have placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum PrintedSpec {
    /// The manifest has the lines themselves.
    Lines(Vec<Template>),
    /// The lines are in a text file of this folder.
    File(PathBuf, Template),
}

/// Where the expected value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// Reference functions over buffers as they were before the launch.
    Reference(Reference),
    /// What another variant computes for `actual` is expected.
    Variant {
        /// The variant's name, after expansion of its axes.
        name: String,
        /// The place of the name.
        span: Span,
    },
    /// The elements are in an `.npy` file.
    Npy(FileSpec),
    /// A file of little-endian elements.
    Raw(FileSpec),
    /// A tensor of a safetensors file.
    Tensor(TensorSpec),
    /// The elements are these.
    List(Vec<Expression>),
    /// A Python function returns the elements.
    Python(FunctionSpec),
    /// A C++ function returns the elements.
    Cpp(FunctionSpec),
}

/// If all bounds of elements and norms are absent, the default of the element type applies; otherwise an absent one is
/// 0. Integers are always exact, but a fraction of them may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ToleranceSpec {
    /// The largest absolute difference.
    pub abs: Option<f64>,
    /// The largest difference as a fraction of the reference.
    pub rel: Option<f64>,
    /// The largest difference in units in the last place of the element type.
    pub ulp: Option<u64>,
    /// The largest fraction of elements that may be wrong.
    pub fraction: Option<f64>,
    /// The largest relative error in the Frobenius norm.
    pub norm: Option<f64>,
    /// The largest relative error in the maximum norm.
    pub max_norm: Option<f64>,
}
