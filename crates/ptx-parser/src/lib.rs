#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod ast;
mod body;
mod constant;
mod lexer;
mod operand;
mod parser;

pub use ast::{
    Call, Function, Guard, Initializer, Instruction, Linkage, Module, Operand, ScalarType, SourceFile, SourcePosition,
    Space, Statement, Variable,
};
pub use parser::parse;

/// A syntax error in a module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line in the PTX text, 1-based.
    pub line: u32,
    /// What was expected and what was found.
    pub message: String,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests;
