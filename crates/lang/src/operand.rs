//! Values during evaluation, and errors of functions.
//!
//! Operands borrow their strings. Errors have no position or values yet, since the functions of expressions know
//! neither.

use std::borrow::Cow;

use runner_types::{ElementType, Value};

/// A value during evaluation; strings are borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand<'a> {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Type(ElementType),
}

/// Why a function has no result for its operands. Position and values are added when evaluation ends.
#[derive(Debug)]
pub struct Refusal {
    pub what: Cow<'static, str>,
    pub hint: Option<Cow<'static, str>>,
}

impl Refusal {
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub type Worked<'a> = Result<Operand<'a>, Refusal>;

/// Returns the integer, or an overflow error for `None`.
pub fn int(value: Option<i64>) -> Worked<'static> {
    value.map(Operand::Int).ok_or_else(|| Refusal::new("integer overflow"))
}

pub fn float(value: f64) -> Worked<'static> {
    if value.is_finite() { Ok(Operand::Float(value)) } else { Err(Refusal::new("the float result is not finite")) }
}

impl<'a> Operand<'a> {
    pub fn new(value: &'a Value) -> Self {
        match value {
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => Self::Float(*value),
            Value::Bool(value) => Self::Bool(*value),
            Value::Str(value) => Self::Text(value),
            Value::Type(value) => Self::Type(*value),
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            Self::Int(value) => Value::Int(value),
            Self::Float(value) => Value::Float(value),
            Self::Bool(value) => Value::Bool(value),
            Self::Text(value) => Value::from_text(value),
            Self::Type(value) => Value::Type(value),
        }
    }

    pub const fn kind(self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a bool",
            Self::Text(_) => "a string",
            Self::Type(_) => "an element type",
        }
    }

    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Text of a string or an element type, for comparisons.
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Type(element) => Some(element.name()),
            _ => None,
        }
    }
}
