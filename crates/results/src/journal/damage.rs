//! Lines of a journal that cannot be read.

/// A last line that was cut off. It is not among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// 1-based line number.
    pub line: usize,
    /// Byte offset of the line in the file.
    pub offset: u64,
}

/// A line that was changed after it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// 1-based line number.
    pub line: usize,
    pub message: String,
}
