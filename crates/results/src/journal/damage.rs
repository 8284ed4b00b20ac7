//! Lines of a journal that cannot be read.

/// A line that was cut off; it is not among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// The number of the line that was cut off; the first line is 1.
    pub line: usize,
    /// Where it begins, bytes into the file.
    pub offset: u64,
}

/// A line that has changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The number of the line that could not be used; the first line is 1.
    pub line: usize,
    /// How its content differs from what was written.
    pub message: String,
}
