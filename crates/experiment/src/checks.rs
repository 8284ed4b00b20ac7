//! Checks of a manifest: the compared values, their expected values and the tolerances.

use std::path::PathBuf;

use super::{Expression, FileSpec, Reference, Template, TensorSpec};
use runner_types::Span;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckSpec {
    /// Computed side of the comparison.
    pub actual: Reference,
    pub expect: Expectation,
    pub tolerance: ToleranceSpec,
    /// Mask of the comparison: only elements where it is nonzero are compared.
    pub mask: Option<Reference>,
    /// Whether the report shows the maximum error.
    pub error: bool,
}

/// Lines that kernels print, in any order. May contain placeholders.
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
    /// Reference functions over the buffers' contents before the launch.
    Reference(Reference),
    /// The same value, computed by another variant.
    Variant {
        /// Name of the variant after expanding its axes.
        name: String,
        span: Span,
    },
    Npy(FileSpec),
    /// A binary file of little-endian elements.
    Raw(FileSpec),
    Tensor(TensorSpec),
    List(Vec<Expression>),
    Python(FunctionSpec),
    Cpp(FunctionSpec),
}

/// Permitted differences.
///
/// If no bounds for elements or norms are given, the default of the element type applies; otherwise omitted bounds are
/// 0. Integers must always be exact, but a fraction of them may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ToleranceSpec {
    pub abs: Option<f64>,
    /// Difference relative to the reference.
    pub rel: Option<f64>,
    /// Difference in units in the last place (ulp) of the element type.
    pub ulp: Option<u64>,
    /// Fraction of elements that may be wrong.
    pub fraction: Option<f64>,
    pub norm: Option<f64>,
    pub max_norm: Option<f64>,
}

/// A user-defined Python or C++ function that computes expected values.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionSpec {
    pub path: PathBuf,
    pub function: String,
    /// Parameters, named like the buffers, axes and bindings that they receive.
    pub parameters: Vec<FunctionParameter>,
    /// The call as written in the manifest.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FunctionParameter {
    Buffer(String),
    /// An axis, a binding or a device attribute.
    Value(Expression),
}
