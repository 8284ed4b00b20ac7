//! The arithmetic of the manifest.
//!
//! An expression is text in rhai's expression syntax. rhai reads it; what is not an expression (statements, loops,
//! closures, assignments, method calls) is refused by name, and what remains is worked out here, strictly: integers
//! are checked, kinds never convert silently except integer to float, no float is ever infinite or NaN, and every
//! error names the part that failed and the values that made it fail. The manual's page on expressions is the
//! reference.
//!
//! Also here: templates with `{expression}` placeholders, kernel arguments (`u32(n)`) and reference expressions over
//! buffers (`sum(partial)`). This module knows no manifest, no axis and no device: names get their values from a
//! [`Scope`], whoever fills it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::model::Value;

pub mod argument;
mod error;
mod evaluate;
mod function;
mod lower;
mod node;
pub mod reference;
mod scope;
pub mod template;

pub use error::ExprError;
pub use function::Function;
pub use scope::Scope;

use evaluate::evaluate;
use node::Node;

/// Longest expression, bytes: keeps every walk over a parsed expression within a small stack.
pub const MAX_LENGTH: usize = 1024;

/// Deepest nesting of parentheses and calls, and most terms of one sum.
pub const MAX_DEPTH: usize = 64;

/// Reads and works out expressions. Cheap to make, shared by reference between threads.
#[derive(Debug)]
pub struct Engine {
    parser: rhai::Engine,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    pub fn new() -> Self {
        let mut parser = rhai::Engine::new_raw();
        parser.set_max_expr_depths(MAX_DEPTH);
        parser.set_optimization_level(rhai::OptimizationLevel::None);
        Self { parser }
    }

    /// Reads an expression. Errors point into `text`.
    pub fn parse(&self, text: &str) -> Result<Program, ExprError> {
        let syntax = self.syntax(text)?;
        lower::program(text, lower::expression(&syntax, text)?)
    }

    /// rhai's syntax tree of one expression.
    fn syntax(&self, text: &str) -> Result<rhai::AST, ExprError> {
        if text.trim().is_empty() {
            return Err(ExprError::new("the expression is empty"));
        }
        if text.len() > MAX_LENGTH {
            let message = format!("the expression has {} bytes, at most {MAX_LENGTH} are read", text.len());
            return Err(ExprError::new(message).hint("name its parts in [let]"));
        }
        self.parser.compile_expression(text).map_err(|e| lower::syntax_error(&e, text))
    }

    /// Works out a value.
    pub fn evaluate(&self, program: &Program, scope: &Scope) -> Result<Value, ExprError> {
        evaluate(program, scope)
    }

    /// Works out a truth value.
    pub fn evaluate_bool(&self, program: &Program, scope: &Scope) -> Result<bool, ExprError> {
        match evaluate(program, scope)? {
            Value::Bool(value) => Ok(value),
            other => Err(program.wrong_kind(scope, &other, "a bool")),
        }
    }

    /// Works out an integer.
    pub fn evaluate_i64(&self, program: &Program, scope: &Scope) -> Result<i64, ExprError> {
        match evaluate(program, scope)? {
            Value::Int(value) => Ok(value),
            other => Err(program.wrong_kind(scope, &other, "an integer")),
        }
    }

    /// Works out a count: an integer that is not negative.
    pub fn evaluate_u64(&self, program: &Program, scope: &Scope) -> Result<u64, ExprError> {
        let value = self.evaluate_i64(program, scope)?;
        u64::try_from(value).map_err(|_| program.wrong_kind(scope, &Value::Int(value), "an integer of at least 0"))
    }

    /// Works out a number as a float; integers convert.
    pub fn evaluate_f64(&self, program: &Program, scope: &Scope) -> Result<f64, ExprError> {
        match evaluate(program, scope)? {
            Value::Int(value) => Ok(value as f64),
            Value::Float(value) => Ok(value),
            other => Err(program.wrong_kind(scope, &other, "a number")),
        }
    }
}

/// An expression that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    text: Arc<str>,
    root: Node,
    names: BTreeSet<String>,
}

impl Program {
    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The free names: all that the scope must give a value, unless `&&`, `||` or `select` skips them.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    fn wrong_kind(&self, scope: &Scope, found: &Value, wanted: &str) -> ExprError {
        let message = format!("{wanted} is needed, and `{}` is {}", self.text, describe(found));
        ExprError::new(message).with_values(self.names.iter().map(String::as_str), scope).at(0..self.text.len())
    }
}

/// `the integer 4`, `the string "row"`.
fn describe(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("the string {text:?}"),
        other => format!("the {} {other}", other.kind()),
    }
}

/// Moves a range that points into a part of a text so that it points into the whole.
fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

#[cfg(test)]
mod tests;
