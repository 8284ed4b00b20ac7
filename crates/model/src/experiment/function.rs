//! Functions of one's own that compute expected values.

use std::path::PathBuf;

use super::Expression;

/// A function over inputs, in a file beside the manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionSpec {
    /// The script or source.
    pub path: PathBuf,
    /// A function that it defines.
    pub function: String,
    /// The function's parameters: names of buffers, axes and bindings.
    pub parameters: Vec<FunctionParameter>,
    /// The call as the manifest writes it.
    pub text: String,
}

/// A parameter of a Python or C++ function.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionParameter {
    /// The parameter has the name of a buffer.
    Buffer(String),
    /// The parameter has the name of an axis, a binding or a device attribute.
    Value(Expression),
}
