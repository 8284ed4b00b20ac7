//! A fault of the manifest at its place. Data only; `diagnostics` renders it.

use std::ops::Range;
use std::sync::Arc;

use super::{Expression, SourceText, Span, Template};

/// One fault of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The offending bytes of the manifest; `None` for a fault of the file as a whole.
    pub span: Option<Span>,
    /// What is wrong: lowercase, naming the key and the value.
    pub message: String,
    /// What stands under the marked bytes.
    pub label: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Other places that have to do with the fault, each with its label.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// A fault at a place.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::whole(message) }
    }

    /// A fault of the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: None, hint: None, related: Vec::new() }
    }

    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

/// All faults of one manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    pub source: Arc<SourceText>,
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn new(source: Arc<SourceText>, items: Vec<Diagnostic>) -> Self {
        Self { source, items }
    }
}

impl Expression {
    /// The place in the manifest of a byte range of the expression: exact where the manifest holds the text as it is,
    /// the whole expression where it is written with escapes.
    pub fn place(&self, within: Range<usize>) -> Span {
        place(&self.text, &self.span, within)
    }
}

impl Template {
    /// The place in the manifest of a byte range of the template, as [`Expression::place`].
    pub fn place(&self, within: Range<usize>) -> Span {
        place(&self.text, &self.span, within)
    }
}

fn place(text: &str, span: &Span, within: Range<usize>) -> Span {
    if span.len() != text.len() || within.end > text.len() || within.start > within.end {
        return span.clone();
    }
    span.start + within.start..span.start + within.end
}
