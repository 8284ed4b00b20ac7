//! Types of values: strings, numbers, expressions, literals.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeValue};

use crate::read::{Read, Reader};
use runner_experiment::{Expression, Located, Reference, Template, fault};
use runner_lang::Parsed;
use runner_lang::claim::ClaimProgram;
use runner_types::{Span, Value};

/// An expression in a string, or a plain number or bool.
#[derive(Debug, Clone)]
pub struct Expr(pub Expression);

/// A reference function of buffers, or an expression.
#[derive(Debug, Clone)]
pub struct Ref(pub Reference);

/// A parsed comparison of results, with the location of its text.
#[derive(Debug, Clone)]
pub struct ClaimText {
    pub program: ClaimProgram,
    pub text: String,
    pub span: Span,
}

/// A string with `{expression}` placeholders.
#[derive(Debug, Clone)]
pub struct Text(pub Template);

/// A string with placeholders, or a plain number or bool.
#[derive(Debug, Clone)]
pub struct TextOrNumber(pub Template);

/// A literal value of an axis. A string that names an element type is that type.
#[derive(Debug, Clone)]
pub struct Literal(pub Value);

/// Span of a string's content if it is written without escapes, otherwise of the whole value.
pub(super) fn content(value: &Spanned<DeValue<'_>>, text: &str, reader: &Reader<'_>) -> Span {
    let span = value.span();
    for quote in ["\"\"\"\n", "'''\n", "\"\"\"", "'''", "\"", "'"] {
        let inner = span.start + quote.len()..span.start + quote.len() + text.len();
        let closed = span.end.checked_sub(inner.end).is_some_and(|rest| rest == quote.trim_end().len());
        if closed && reader.text.get(inner.clone()) == Some(text) && reader.text[span.start..].starts_with(quote) {
            return inner;
        }
    }
    span
}

fn integer(value: &Spanned<DeValue<'_>>, number: &DeInteger<'_>, reader: &mut Reader<'_>) -> Option<i64> {
    let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
    parsed.or_else(|| {
        reader.wrong_value(
            value.span(),
            "does not fit in a signed 64-bit integer; larger values in a buffer can come from a file",
        )
    })
}

fn float(value: &Spanned<DeValue<'_>>, number: &DeFloat<'_>, reader: &mut Reader<'_>) -> Option<f64> {
    let parsed = number.as_str().parse().ok().filter(|number: &f64| number.is_finite());
    parsed.or_else(|| reader.wrong_value(value.span(), "must be a finite number"))
}

/// Formats a number or bool so that it parses to the same value as an expression.
fn plain(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::Integer(number) => integer(value, number, reader).map(|number| number.to_string()),
        DeValue::Float(number) => float(value, number, reader).map(|number| Value::Float(number).to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn is_plain(value: &DeValue<'_>) -> bool {
    matches!(value, DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_))
}

/// Parses the text of a string, number or bool.
fn arithmetic<T: Parsed>(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Located<T>> {
    let (text, span) = match value.get_ref() {
        DeValue::String(text) => (text.to_string(), content(value, text, reader)),
        other if is_plain(other) => (plain(value, reader)?, value.span()),
        _ => return reader.wrong_type(value, Expr::EXPECTED),
    };
    if text.trim().is_empty() {
        return reader.wrong_value(value.span(), "is an empty expression");
    }
    parse(&text, span, reader)
}

pub(super) fn parse<T: Parsed>(text: &str, span: Span, reader: &mut Reader<'_>) -> Option<Located<T>> {
    Located::parse(text, span).map_err(|fault| reader.found.push(fault)).ok()
}

impl Read for Expr {
    const EXPECTED: &'static str = "a number or an expression in a string";

    fn place(&self) -> Option<Span> {
        Some(self.0.span.clone())
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        arithmetic(value, reader).map(Self)
    }
}

impl Read for Ref {
    const EXPECTED: &'static str = Expr::EXPECTED;

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        arithmetic(value, reader).map(Self)
    }
}

impl Read for ClaimText {
    const EXPECTED: &'static str = String::EXPECTED;

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        let span = content(value, &text, reader);
        match ClaimProgram::parse(&text) {
            Ok(program) => Some(Self { program, text, span }),
            Err(error) => {
                reader.found.push(fault(error, &text, &span));
                None
            }
        }
    }
}

impl Read for Text {
    const EXPECTED: &'static str = "a string";

    fn place(&self) -> Option<Span> {
        Some(self.0.span.clone())
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::String(text) = value.get_ref() else {
            return reader.wrong_type(value, Self::EXPECTED);
        };
        if text.trim().is_empty() {
            return reader.wrong_value(value.span(), "is empty");
        }
        parse(text, content(value, text, reader), reader).map(Self)
    }
}

impl Read for TextOrNumber {
    const EXPECTED: &'static str = "a string, a number or a bool";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            // Empty is allowed, as in `#define NAME`.
            DeValue::String(text) => parse(text, content(value, text, reader), reader).map(Self),
            other if is_plain(other) => parse(&plain(value, reader)?, value.span(), reader).map(Self),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

impl Read for Literal {
    const EXPECTED: &'static str = "an integer, a float, a string or a bool";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self(match value.get_ref() {
            DeValue::Integer(number) => Value::Int(integer(value, number, reader)?),
            DeValue::Float(number) => Value::Float(float(value, number, reader)?),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::String(text) => Value::from_text(text),
            _ => return reader.wrong_type(value, Self::EXPECTED),
        }))
    }
}

impl Read for String {
    const EXPECTED: &'static str = "a string";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => reader.wrong_value(value.span(), "is empty"),
            DeValue::String(text) => Some(text.to_string()),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

impl Read for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

impl Read for i64 {
    const EXPECTED: &'static str = "an integer";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Integer(number) => integer(value, number, reader),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

impl Read for u64 {
    const EXPECTED: &'static str = "an integer";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let number = i64::read(value, reader)?;
        Self::try_from(number).ok().or_else(|| reader.wrong_value(value.span(), "must not be negative"))
    }
}

impl Read for u32 {
    const EXPECTED: &'static str = "an integer";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let number = i64::read(value, reader)?;
        Self::try_from(number).ok().or_else(|| reader.wrong_value(value.span(), "must be between 0 and 4294967295"))
    }
}

impl Read for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Integer(number) => integer(value, number, reader).map(|number| number as Self),
            DeValue::Float(number) => float(value, number, reader),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

macro_rules! schema {
    ($type:ident, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

schema!(Expr, "Expression", {
    "description": "An expression: arithmetic on integers, floats, bools and strings, `**` for powers.",
    "type": ["string", "number", "boolean"],
    "minLength": 1
});
schema!(Text, "Template", {
    "description": "A string with `{expression}` placeholders.",
    "type": "string",
    "minLength": 1
});
schema!(TextOrNumber, "TemplateOrNumber", {
    "description": "A string with `{expression}` placeholders, or a plain number or bool.",
    "type": ["string", "number", "boolean"]
});
schema!(Literal, "Literal", {
    "description": "A literal value; a string that names an element type is that type.",
    "type": ["string", "number", "boolean"]
});

/// The schema does not list the functions.
impl JsonSchema for Ref {
    fn schema_name() -> Cow<'static, str> {
        Expr::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Expr::json_schema(generator)
    }
}
