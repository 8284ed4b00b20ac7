//! Commits of a repository.

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its object name.
    pub id: String,
    /// The day it was committed, as `2026-11-22`.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// Returns the beginning of the object name, for readers.
    pub fn short(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }
}
