//! Errors in the manifest with their places. Data only; `diagnostics` renders it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A range of bytes in the manifest's text.
pub type Span = Range<usize>;

/// The manifest's path and text, kept for diagnostics and for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file's path as the user gave it.
    pub path: PathBuf,
    /// The whole content of the file.
    pub text: String,
}

/// An error in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The offending bytes of the manifest; `None` for an error of the file as a whole.
    pub span: Option<Span>,
    /// What is wrong: lowercase, naming the key and the value.
    pub message: String,
    /// The text under the marked bytes.
    pub label: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The other places that have to do with the error, each with its label.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// Returns an error at a place.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::whole(message) }
    }

    /// Returns an error of the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: None, hint: None, related: Vec::new() }
    }

    /// Adds the text under the marked bytes.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place, with the text under it.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

/// The errors that one manifest has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The manifest that has them.
    pub source: Arc<SourceText>,
    /// The errors in the order in which they were found.
    pub items: Vec<Diagnostic>,
    /// How many more were found and not kept.
    pub omitted: usize,
}

impl Diagnostics {
    /// Makes the errors of one manifest.
    pub fn new(source: Arc<SourceText>, items: Vec<Diagnostic>) -> Self {
        Self { source, items, omitted: 0 }
    }
}
