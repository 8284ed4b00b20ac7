//! The language of manifests: expressions evaluated in a [`Scope`], reference functions over buffers (`sum(partial)`),
//! kernel arguments (`u32(n)`), templates with `{expression}` placeholders, and claims.
//!
//! ```
//! use runner_lang::{Program, Scope};
//! use runner_types::Value;
//!
//! let blocks = Program::parse("ceil_div(n, 256)")?;
//! let mut scope = Scope::new();
//! scope.set("n", Value::Int(1000));
//! assert_eq!(blocks.evaluate_i64(&scope)?, 4);
//! # Ok::<(), runner_lang::ExprError>(())
//! ```
//!
//! Statements, assignments, method calls and other constructs of programming languages are rejected with an error that
//! names them. Evaluation is strict: integer arithmetic is checked, only integers convert silently, to floats, and no
//! float is ever infinite or NaN. Every error names the part that failed and the values that caused it. The reference
//! is `docs/reference/expressions.md`. This crate knows nothing about manifests, axes or devices.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use runner_types::Value;

pub mod argument;
mod call;
pub mod claim;
pub mod diagnostics;
mod error;
mod evaluate;
pub mod format;
mod function;
mod node;
mod operand;
mod parser;
pub mod reference;
mod scope;
pub mod template;
mod token;

pub use error::ExprError;
pub use function::Function;
pub use node::{Kind, Node, Operator};
pub use scope::Scope;
pub use token::is_name;

use evaluate::evaluate;

pub const MAX_LENGTH: usize = 1024;

/// Maximum nesting of parentheses, calls and operators. Operators of one sum count too: `a + b + c` is a sum within a
/// sum. Limits the stack depth of every recursion over a parsed expression.
pub const MAX_DEPTH: usize = 64;

pub trait Parsed: Sized {
    /// Parses an expression. Errors point into `text`.
    fn parse(text: &str) -> Result<Self, ExprError>;

    fn text(&self) -> &str;

    /// Free names of all its expressions.
    fn names(&self) -> &BTreeSet<String>;

    /// Byte range in the text where a name is first used.
    fn place_of(&self, name: &str) -> Option<Range<usize>>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Text that contains the expression: the expression itself, a template or a reference.
    text: Arc<str>,
    /// Byte range of the expression in the text.
    at: Range<usize>,
    root: Node,
    names: BTreeSet<String>,
}

impl Program {
    /// Parses an expression. Errors point into `text`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        Self::parse_part(&text.into(), 0..text.len())
    }

    /// Parses the expression in the byte range `at` of `text`. Errors point into `text`.
    fn parse_part(text: &Arc<str>, at: Range<usize>) -> Result<Self, ExprError> {
        let root = call::resolve(parser::parse(text, at.clone())?)?;
        Ok(Self::new(text, at, root))
    }

    fn new(text: &Arc<str>, at: Range<usize>, root: Node) -> Self {
        let mut names = BTreeSet::new();
        root.collect_names(&mut names);
        let names = names.into_iter().map(str::to_owned).collect();
        Self { text: text.clone(), at, root, names }
    }

    pub fn integer(value: i64) -> Self {
        let text: Arc<str> = value.to_string().into();
        let at = 0..text.len();
        Self::new(&text, at.clone(), Node { kind: Kind::Literal(Value::Int(value)), span: at })
    }

    pub fn text(&self) -> &str {
        &self.text[self.at.clone()]
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Text of a part of the expression, as written.
    pub fn part(&self, node: &Node) -> &str {
        self.text.get(node.span.clone()).unwrap_or_default()
    }

    /// Value of a part of the expression; `None` if it cannot be evaluated.
    pub fn constant(node: &Node, scope: &Scope) -> Option<Value> {
        evaluate::part(node, scope)
    }

    /// Byte range in the whole text where a name is first used.
    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.root.place_of(name)
    }

    /// Free names, which the scope must define unless `&&`, `||` or `select` skips them.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    pub fn evaluate(&self, scope: &Scope) -> Result<Value, ExprError> {
        evaluate(self, scope)
    }

    pub fn evaluate_bool(&self, scope: &Scope) -> Result<bool, ExprError> {
        match evaluate(self, scope)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.wrong_kind(scope, &other, "a bool")),
        }
    }

    pub fn evaluate_i64(&self, scope: &Scope) -> Result<i64, ExprError> {
        match evaluate(self, scope)? {
            Value::Int(value) => Ok(value),
            other => Err(self.wrong_kind(scope, &other, "an integer")),
        }
    }

    /// Evaluates to a non-negative integer.
    pub fn evaluate_u64(&self, scope: &Scope) -> Result<u64, ExprError> {
        let value = self.evaluate_i64(scope)?;
        u64::try_from(value).map_err(|_| self.wrong_kind(scope, &Value::Int(value), "a non-negative integer"))
    }

    /// Evaluates to a float; converts integers.
    pub fn evaluate_f64(&self, scope: &Scope) -> Result<f64, ExprError> {
        match evaluate(self, scope)? {
            Value::Int(value) => Ok(value as f64),
            Value::Float(value) => Ok(value),
            other => Err(self.wrong_kind(scope, &other, "a number")),
        }
    }

    fn wrong_kind(&self, scope: &Scope, found: &Value, wanted: &str) -> ExprError {
        let message = format!("expected {wanted}, but `{}` is {}", self.text(), describe(found));
        ExprError::new(message).with_values(self.names.iter().map(String::as_str), scope).at(self.at.clone())
    }
}

impl Parsed for Program {
    fn parse(text: &str) -> Result<Self, ExprError> {
        Self::parse(text)
    }

    fn text(&self) -> &str {
        self.text()
    }

    fn names(&self) -> &BTreeSet<String> {
        self.names()
    }

    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.place_of(name)
    }
}

/// Describes a value: `the integer 4`, `the string "row"`.
fn describe(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("the string {text:?}"),
        other => format!("the {} {other}", other.kind()),
    }
}

#[cfg(test)]
mod tests;
