//! Lines of a journal that cannot be read.

/// A line that was cut off. It is not among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Line number, counted from 1.
    pub line: usize,
    /// Offset of the line's first byte in the file.
    pub offset: u64,
}

/// A line that has changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Line number, counted from 1.
    pub line: usize,
    /// How its content differs from what was written.
    pub message: String,
}
