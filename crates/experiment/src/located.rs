//! Parsed strings of the manifest with their locations.
//!
//! Later stages evaluate them and can still point at the offending part of the manifest.

use std::ops::{Deref, Range};

use runner_lang::diagnostics::Diagnostic;
use runner_lang::reference::RefProgram;
use runner_lang::template::TemplateProgram;
use runner_lang::{ExprError, Parsed, Program};
use runner_types::Span;

pub type Expression = Located<Program>;

/// A string with `{expression}` placeholders.
pub type Template = Located<TemplateProgram>;

/// An expression of reference functions over buffers.
pub type Reference = Located<RefProgram>;

/// A parsed string of the manifest with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    parsed: T,
    /// The string without its quotes if it is written without escapes; otherwise the whole value.
    pub span: Span,
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.parsed
    }
}

impl<T: Parsed> Located<T> {
    /// Parses a string at `span` of the manifest. Errors point at the offending part.
    pub fn parse(text: &str, span: Span) -> Result<Self, Diagnostic> {
        match T::parse(text) {
            Ok(parsed) => Ok(Self { parsed, span }),
            Err(error) => Err(fault(error, text, &span)),
        }
    }

    /// Diagnostic for an evaluation error, pointing at the offending part.
    pub fn fault(&self, error: ExprError) -> Diagnostic {
        fault(error, self.parsed.text(), &self.span)
    }

    /// Location of the first occurrence of a name.
    pub fn place_of(&self, name: &str) -> Span {
        self.parsed.place_of(name).map_or_else(|| self.span.clone(), |at| place(self.parsed.text(), &self.span, at))
    }

    /// Whether this stands for a missing or invalid value, which was already reported.
    pub fn is_missing(&self) -> bool {
        self.span == (0..0)
    }
}

impl Expression {
    /// An integer that is implied at `span` of the manifest.
    pub fn integer(value: i64, span: Span) -> Self {
        Self { parsed: Program::integer(value), span }
    }

    /// Placeholder for a missing or invalid value, which was already reported.
    pub fn missing() -> Self {
        Self::integer(1, 0..0)
    }
}

impl Template {
    /// Placeholder for a missing or invalid value, which was already reported.
    pub fn missing() -> Self {
        Self { parsed: TemplateProgram::default(), span: 0..0 }
    }
}

/// Diagnostic for an error in a string at `span` of the manifest, pointing at the offending part.
pub fn fault(error: ExprError, text: &str, span: &Span) -> Diagnostic {
    let at = error.at.map_or_else(|| span.clone(), |at| place(text, span, at));
    Diagnostic { hint: error.hint, ..Diagnostic::at(at, error.message) }
}

/// Location of a part of a string, or of the whole string if it is written with escapes.
pub fn place(text: &str, span: &Span, within: Range<usize>) -> Span {
    if span.len() != text.len() || within.end > text.len() || within.start > within.end {
        return span.clone();
    }
    span.start + within.start..span.start + within.end
}
