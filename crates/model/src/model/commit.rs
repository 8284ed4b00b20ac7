//! Commits of a repository.

/// A commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The object name of the commit.
    pub id: String,
    /// The day it was committed, as `2026-11-22`.
    pub date: String,
    /// The first line of the commit's message.
    pub subject: String,
}

impl Commit {
    /// Returns the beginning of the object name, for readers.
    pub fn short(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }
}
