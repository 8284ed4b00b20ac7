//! Names and numbers in the sentences of a comparison.

use crate::number::grouped;
use runner_lang::format::{at_place, count, magnitude};

/// Counter of all executed machine instructions.
pub const INSTRUCTIONS: &str = "inst_executed";

/// The text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Wraps text in backticks, unless it contains one.
pub fn code(text: &str) -> String {
    if text.contains('`') || text.is_empty() { text.to_owned() } else { format!("`{text}`") }
}

/// Name of a counter for readers.
pub fn counter_name(name: &str) -> &str {
    if name == INSTRUCTIONS { "instructions" } else { name }
}

/// Formats a number with at most this many significant digits.
pub fn significant(value: f64, digits: i32) -> String {
    if value != 0.0 && !(1e-6..1e15).contains(&value.abs()) {
        return format!("{value:.*e}", digits.unsigned_abs() as usize - 1);
    }
    let text = at_place(value, (magnitude(value) + 1 - digits).min(0));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    grouped(text)
}

/// Formats a count with grouped digits.
pub fn number_of(value: f64) -> String {
    grouped(&count(value))
}
