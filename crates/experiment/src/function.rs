//! Python and C++ functions of the user that compute expected values.

use std::path::PathBuf;

use super::Expression;

#[derive(Debug, Clone, PartialEq)]
pub struct FunctionSpec {
    pub path: PathBuf,
    pub function: String,
    /// Parameters, which are named like buffers, axes and bindings.
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
