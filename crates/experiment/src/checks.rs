//! Checks of a manifest: what is compared, with what, and how much may differ.

use std::path::PathBuf;

use super::{Expression, FileSpec, FunctionSpec, Reference, Template, TensorSpec};
use runner_types::Span;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckSpec {
    /// Computed side of the comparison.
    pub actual: Reference,
    pub expect: Expectation,
    pub tolerance: ToleranceSpec,
    /// Mask of the comparison: only elements where it is not 0 are compared.
    pub mask: Option<Reference>,
    /// Whether the report shows the greatest error.
    pub error: bool,
}

/// Lines that kernels print, in any order. The texts may have placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum PrintedSpec {
    /// Lines in the manifest.
    Lines(Vec<Template>),
    /// A folder and the name of a text file in it.
    File(PathBuf, Template),
}

/// Source of the expected values.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// Reference functions over buffers as they were before the launch.
    Reference(Reference),
    /// Another variant's value of `actual`.
    Variant {
        /// Variant name after expansion of its axes.
        name: String,
        span: Span,
    },
    Npy(FileSpec),
    /// A file of little-endian elements.
    Raw(FileSpec),
    Tensor(TensorSpec),
    List(Vec<Expression>),
    Python(FunctionSpec),
    Cpp(FunctionSpec),
}

/// Permitted differences.
///
/// If all bounds of elements and norms are absent, the default of the element type applies; otherwise an absent one is
/// 0. Integers are always exact, but a fraction of them may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ToleranceSpec {
    pub abs: Option<f64>,
    /// Difference as a fraction of the reference.
    pub rel: Option<f64>,
    /// Difference in units in the last place of the element type.
    pub ulp: Option<u64>,
    /// Fraction of elements that may be wrong.
    pub fraction: Option<f64>,
    pub norm: Option<f64>,
    pub max_norm: Option<f64>,
}
