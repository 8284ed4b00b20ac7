//! Errors in expressions: what is wrong, where, and what to write instead.

use std::ops::Range;

use super::Scope;

/// Why an expression was rejected or could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// Message in lowercase. Evaluation errors end with the values that caused them.
    pub message: String,
    pub hint: Option<String>,
    /// Offending bytes of the expression, template or argument.
    pub at: Option<Range<usize>>,
}

impl ExprError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, at: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn at(mut self, at: Range<usize>) -> Self {
        self.at = Some(at);
        self
    }

    /// Appends e.g. `where n = 4, block = 0`, for each of `names` that has a value.
    pub(super) fn with_values<'a>(mut self, names: impl Iterator<Item = &'a str>, scope: &Scope) -> Self {
        let values: Vec<String> =
            names.filter_map(|name| scope.get(name).map(|value| format!("{name} = {value}"))).collect();
        if !values.is_empty() {
            self.message = format!("{} where {}", self.message, values.join(", "));
        }
        self
    }
}
