//! Errors in the manifest with their places. Data only; `diagnostics` renders it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Range of bytes in the manifest's text.
pub type Span = Range<usize>;

/// Path and text of the manifest, for diagnostics and for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Path as the user gave it.
    pub path: PathBuf,
    /// Complete text of the file.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Wrong bytes of the manifest; `None` for an error of the whole file.
    pub span: Option<Span>,
    /// What is wrong: lowercase, naming the key and the value.
    pub message: String,
    /// Text to show under the marked bytes.
    pub label: Option<String>,
    pub hint: Option<String>,
    /// Other places related to the error, each with its label.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::whole(message) }
    }

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    pub source: Arc<SourceText>,
    pub items: Vec<Diagnostic>,
    /// Number of further errors that were not kept.
    pub omitted: usize,
}

impl Diagnostics {
    pub fn new(source: Arc<SourceText>, items: Vec<Diagnostic>) -> Self {
        Self { source, items, omitted: 0 }
    }
}
