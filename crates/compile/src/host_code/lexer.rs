//! Splits a source into words and brackets, and leaves out comments, directives and literals.

use std::ops::Range;

use crate::includes::literal_length;

/// The longest delimiter of a raw string that C++ allows.
const LONGEST_DELIMITER: usize = 16;

/// Returns the text with blanks instead of comments and directives, and `_` instead of literals. Every byte keeps its
/// place.
pub fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut line_begins = true;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '#' if line_begins => directive_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' if out.ends_with(|c: char| c.is_ascii_alphanumeric()) => 1,
            '"' if out.ends_with('R') => raw_length(rest),
            '"' | '\'' => literal_length(rest),
            c => c.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        match c {
            '"' | '\'' if length > 1 => out.extend(filled(part, '_')),
            '#' | '/' if length > 1 => out.extend(filled(part, ' ')),
            _ => out.push_str(part),
        }
        line_begins = c == '\n' || (line_begins && (c.is_whitespace() || part.starts_with("/*")));
        rest = after;
    }
    out
}

/// Returns `filler` for each byte of the text, except newlines.
fn filled(text: &str, filler: char) -> impl Iterator<Item = char> {
    text.bytes().map(move |byte| if byte == b'\n' { '\n' } else { filler })
}

fn directive_length(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.trim_end_matches('\n').len();
        if !line.trim_end().ends_with('\\') {
            return end;
        }
        end += 1;
    }
    text.len()
}

/// Returns the length of the raw string whose quote begins the text.
fn raw_length(text: &str) -> usize {
    let mut delimiter = text.bytes().take(1 + LONGEST_DELIMITER + 1);
    let Some(open) = delimiter.position(|byte| byte == b'(') else { return literal_length(text) };
    let end = format!("){}\"", &text[1..open]);
    text.find(&end).map_or(text.len(), |at| at + end.len())
}

/// Words, and all other characters one by one, each by its place.
pub fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let length = match c {
            c if is_part(c) => text[at..].find(|c| !is_part(c)).unwrap_or(text.len() - at),
            c => c.len_utf8(),
        };
        if !c.is_whitespace() {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

/// Returns the words of a text.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a character may be in a word.
pub fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
