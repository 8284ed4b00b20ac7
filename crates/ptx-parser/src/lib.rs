#![doc = include_str!("../README.md")]

mod ast;
mod body;
mod lexer;
mod operand;
mod parser;

pub use ast::{
    Call, Function, Guard, Initializer, Instruction, Linkage, Module, Operand, Place, ScalarType, SourceFile, Space,
    Statement, Variable,
};
pub use parser::parse;

/// A text that is not PTX.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// One-based line of the PTX text.
    pub line: u32,
    /// What was expected and what stands there.
    pub message: String,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests;
