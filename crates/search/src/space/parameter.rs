use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A parameter and its possible values.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Unique name in the space.
    pub name: String,
    /// Distinct values; ascending if the parameter is ordered.
    pub values: Vec<Value>,
    /// Whether the values are ordered.
    pub scale: Scale,
}

impl Parameter {
    /// Creates a parameter. If all values are numbers, they are sorted and the parameter is ordered; otherwise it is
    /// categorical.
    #[must_use]
    pub fn new(name: impl Into<String>, mut values: Vec<Value>) -> Self {
        let numbers = values.iter().all(|value| value.number().is_some());
        if numbers {
            values.sort_by(|a, b| a.number().partial_cmp(&b.number()).unwrap_or(std::cmp::Ordering::Equal));
        }
        let mut seen: Vec<Value> = Vec::new();
        for value in values {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        let scale = if numbers { Scale::Ordered } else { Scale::Categorical };
        Self { name: name.into(), values: seen, scale }
    }

    /// Index of a value.
    #[must_use]
    pub fn position(&self, value: &Value) -> Option<u16> {
        self.values.iter().position(|known| known == value).map(|place| place as u16)
    }
}

/// A value of a parameter.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`, which count as 1 and 0.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// A word, e.g. the name of a data layout.
    Text(String),
}

impl Value {
    /// The value as a number; `None` for a word.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(_) => None,
        }
    }

    /// Parses a table cell: an integer, a float, `true` or `false`; anything else is a word.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "true" | "True" => Self::Bool(true),
            "false" | "False" => Self::Bool(false),
            _ => text
                .parse()
                .map(Self::Int)
                .or_else(|_| text.parse().map(Self::Real))
                .unwrap_or_else(|_| Self::Text(text.to_owned())),
        }
    }
}

/// Numbers are equal only if their types and bits are, so that values can be keys.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Bool(value) => value.hash(state),
            Self::Int(value) => value.hash(state),
            Self::Real(value) => value.to_bits().hash(state),
            Self::Text(value) => value.hash(state),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// Whether nearby values of a parameter behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Values are ordered, and nearby ones are expected to behave alike.
    Ordered,
    /// Values are unordered.
    Categorical,
}
