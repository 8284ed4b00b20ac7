//! Strings with `{expression}` placeholders.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use super::token::quoted_length;
use super::{ExprError, Parsed, Program, Scope};

/// How to spell values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As in manifests: `i32`.
    Names,
    /// As in C++: `int`.
    Cpp,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TemplateProgram {
    text: String,
    pieces: Vec<Piece>,
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Value(Program),
}

/// Parses a template, where `{{` and `}}` are escaped braces. Errors point into `text`.
pub fn parse(text: &str) -> Result<TemplateProgram, ExprError> {
    let whole: Arc<str> = text.into();
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            literal.push(c);
            at += 2;
        } else if c == '{' {
            let inside = placeholder(text, at)?;
            let program = Program::parse_part(&whole, inside.clone())?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            at = inside.end + 1;
            pieces.push(Piece::Value(program));
        } else if c == '}' {
            return Err(ExprError::new("`}` closes nothing").hint("a brace itself is written `}}`").at(at..at + 1));
        } else {
            literal.push(c);
            at += c.len_utf8();
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    let names = pieces.iter().filter_map(Piece::program).flat_map(|p| p.names().iter().cloned()).collect();
    Ok(TemplateProgram { text: text.to_owned(), pieces, names })
}

/// Byte range between the brace at `open` and its closing brace. Braces inside quotes do not count.
fn placeholder(text: &str, open: usize) -> Result<Range<usize>, ExprError> {
    let mut at = open + 1;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '}' => return Ok(open + 1..at),
            '"' => at += quoted_length(&text[at..]),
            _ => at += c.len_utf8(),
        }
    }
    Err(ExprError::new("`{` is not closed").hint("a brace itself is written `{{`").at(open..open + 1))
}

impl Piece {
    const fn program(&self) -> Option<&Program> {
        match self {
            Self::Text(_) => None,
            Self::Value(program) => Some(program),
        }
    }
}

impl Parsed for TemplateProgram {
    fn parse(text: &str) -> Result<Self, ExprError> {
        parse(text)
    }

    fn text(&self) -> &str {
        self.text()
    }

    fn names(&self) -> &BTreeSet<String> {
        self.names()
    }

    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.pieces.iter().filter_map(Piece::program).find_map(|program| program.place_of(name))
    }
}

impl TemplateProgram {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// The text, if it has no placeholders.
    pub fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn render(&self, scope: &Scope, style: Style) -> Result<String, ExprError> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(program) => {
                    let value = program.evaluate(scope)?;
                    match style {
                        // Writing to a String cannot fail.
                        Style::Names => drop(write!(out, "{value}")),
                        Style::Cpp => out.push_str(&value.cpp()),
                    }
                }
            }
        }
        Ok(out)
    }
}
