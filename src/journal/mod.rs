//! The append-only journal and the records for git.
