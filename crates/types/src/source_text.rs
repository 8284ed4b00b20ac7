//! The text of a manifest and locations in it.

use std::ops::Range;
use std::path::PathBuf;

/// Byte range in the manifest's text.
pub type Span = Range<usize>;

/// Path and text of the manifest, for diagnostics and for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Path as the user gave it.
    pub path: PathBuf,
    /// Complete text of the file.
    pub text: String,
}
