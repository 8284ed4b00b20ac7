//! Text of PTX modules to a syntax tree.
//!
//! Reads what NVRTC emits (PTX ISA 9.0) and what people write in inline assembly. It checks the grammar of statements
//! and nothing of their meaning: it does not know opcodes, resolves no names and lays out no memory; that is
//! `simt`'s. Debug sections are skipped. Every error names its line.

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
