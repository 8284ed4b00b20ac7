//! Git commits, as reports show them.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    /// Date in the form `2026-11-22`.
    pub date: String,
    /// First line of the commit message.
    pub subject: String,
}

impl Commit {
    /// Abbreviated hash for display.
    pub fn short(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }
}
