//! The header named by an `#include`, directly or through a macro.

/// Maximum length of a header name in bytes. Anything longer is not a path.
const LONGEST_NAME: usize = 4096;

/// A header named by an `#include` or a `__has_include`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Include {
    Quoted(String),
    Angled(String),
    /// The next file with this name in the search path (`#include_next`).
    Next(String),
    Macro(String),
}

/// Parses `"name"` or `<name>` at the start of the text.
pub(super) fn header_name(text: &str) -> Option<Include> {
    let text = text.trim_start();
    let (rest, end, make): (&str, u8, fn(String) -> Include) = match text.strip_prefix('"') {
        Some(rest) => (rest, b'"', Include::Quoted),
        None => (text.strip_prefix('<')?, b'>', Include::Angled),
    };
    let length = rest.bytes().take(LONGEST_NAME).position(|byte| byte == end)?;
    Some(make(rest[..length].to_owned()))
}

/// Name and value of a macro that is defined as a header name. A parameter is part of the name: `HEADER(name)`.
pub(super) fn definition(operand: &str) -> Option<(String, Include)> {
    let (name, value) = operand.trim_start().split_once(char::is_whitespace)?;
    Some((name.to_owned(), header_name(value)?))
}

/// Splits `NAME(argument)`, which is a call or definition of a macro with one parameter.
pub(super) fn split_call(text: &str) -> Option<(&str, &str)> {
    let (name, argument) = text.strip_suffix(')')?.split_once('(')?;
    (!argument.contains(['(', ','])).then_some((name.trim_end(), argument.trim()))
}

/// The header name with the macro's argument in place of its parameter.
pub(super) fn substitute(include: &Include, parameter: &str, argument: &str) -> Include {
    let replace = |name: &str| {
        let mut out = String::new();
        let mut rest = name;
        while !rest.is_empty() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            out.push_str(if &rest[..word] == parameter { argument } else { &rest[..word] });
            rest = &rest[word..];
            let other = rest.find(is_word).unwrap_or(rest.len());
            out.push_str(&rest[..other]);
            rest = &rest[other..];
        }
        out
    };
    match include {
        Include::Angled(name) => Include::Angled(replace(name)),
        // Parameters in a string are not replaced.
        other => other.clone(),
    }
}
