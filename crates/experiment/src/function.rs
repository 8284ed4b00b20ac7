//! User-defined Python and C++ functions that compute expected values.

use std::path::PathBuf;

use super::Expression;

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
