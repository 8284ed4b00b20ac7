//! Values of axes and of expressions.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ElementType;

/// A value of an axis, or the result of an expression.
///
/// A string that names an element type *is* that element type; the manifest, the journal and the records all follow
/// this rule. Values can therefore be written as plain JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Int(i64),
    /// A finite number with a decimal point or an exponent.
    Float(f64),
    Bool(bool),
    /// A string that does not name an element type.
    Str(String),
    Type(ElementType),
}

/// Values of axes are never NaN, so equality is total.
impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Int(value) => value.hash(state),
            // 0.0 and -0.0 are equal, so they must have the same hash.
            Self::Float(value) => (value + 0.0).to_bits().hash(state),
            Self::Bool(value) => value.hash(state),
            Self::Str(value) => value.hash(state),
            Self::Type(value) => value.hash(state),
        }
    }
}

impl Value {
    /// Converts a string, to an element type if it names one.
    pub fn from_text(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Str(text.to_owned()), Self::Type)
    }

    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "integer",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
            Self::Str(_) => "string",
            Self::Type(_) => "element type",
        }
    }

    /// Formats the value for C++: element types by their C++ name, others as displayed.
    pub fn cpp(&self) -> String {
        match self {
            Self::Type(element) => element.cpp_name().to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => f.pad(&value.to_string()),
            // `{:?}` keeps the decimal point of whole floats, so that 2.0 is read back as a float.
            Self::Float(value) => f.pad(&format!("{value:?}")),
            Self::Bool(value) => f.pad(if *value { "true" } else { "false" }),
            Self::Str(value) => f.pad(value),
            Self::Type(value) => f.pad(value.name()),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Str(value) => serializer.serialize_str(value),
            Self::Type(value) => serializer.serialize_str(value.name()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would copy each value before it knows the value's kind.
        struct Plain;

        impl Visitor<'_> for Plain {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string, true or false")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Int(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
                Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::from_text(text))
            }
        }

        deserializer.deserialize_any(Plain)
    }
}
