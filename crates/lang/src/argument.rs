//! Kernel arguments as written in the manifest: the name of a buffer, or `u32(n)`.

use std::ops::Range;

use super::{ExprError, is_name};

/// An argument, split but not evaluated. Ranges are byte offsets in the argument's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    Buffer(String),
    Offset {
        buffer: String,
        /// Expression for the offset, in elements.
        offset: String,
        offset_at: Range<usize>,
    },
    Scalar {
        /// Template for the element type's name, e.g. `u32` or `{type}`.
        element: String,
        element_at: Range<usize>,
        value: String,
        value_at: Range<usize>,
    },
}

/// Parses an argument. Errors point into `text`.
pub fn parse(text: &str) -> Result<Argument, ExprError> {
    let trimmed = trim(text, 0..text.len());
    if trimmed.is_empty() {
        return Err(ExprError::new("the argument is empty").hint("name a buffer, or write a number as `u32(n)`"));
    }
    let whole = &text[trimmed.clone()];
    if whole == "null" {
        let (element_at, value_at) = (trimmed.clone(), trimmed);
        return Ok(Argument::Scalar { element: "u64".to_owned(), element_at, value: "0".to_owned(), value_at });
    }
    if is_name(whole) {
        return Ok(Argument::Buffer(whole.to_owned()));
    }
    if let Some(plus) = whole.find('+').filter(|plus| is_name(whole[..*plus].trim_end())) {
        let offset_at = trim(text, trimmed.start + plus + 1..trimmed.end);
        if offset_at.is_empty() {
            return Err(ExprError::new(format!("`{whole}` has no offset")).hint("write `input + 4`").at(trimmed));
        }
        let (buffer, offset) = (whole[..plus].trim_end().to_owned(), text[offset_at.clone()].to_owned());
        return Ok(Argument::Offset { buffer, offset, offset_at });
    }
    let wanted = "an argument must be the name of a buffer or a typed number such as `u32(n)`";
    let Some(open) = whole.find('(') else {
        return Err(ExprError::new(format!("`{whole}` is not an argument")).hint(wanted).at(trimmed));
    };
    if !whole.ends_with(')') {
        return Err(ExprError::new(format!("`{whole}` does not end with `)`")).hint(wanted).at(trimmed));
    }
    let element_at = trim(text, trimmed.start..trimmed.start + open);
    let value_at = trim(text, trimmed.start + open + 1..trimmed.end - 1);
    if element_at.is_empty() || value_at.is_empty() {
        let missing = if element_at.is_empty() { "type" } else { "value" };
        return Err(ExprError::new(format!("`{whole}` has no {missing}")).hint(wanted).at(trimmed));
    }
    // A bool is passed as one byte.
    let element = if &text[element_at.clone()] == "bool" { "u8" } else { &text[element_at.clone()] }.to_owned();
    let value = text[value_at.clone()].to_owned();
    Ok(Argument::Scalar { element, element_at, value, value_at })
}

/// `range` without leading and trailing whitespace.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}
