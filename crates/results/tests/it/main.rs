//! From events to records and their analysis: what is stored, read back and merged.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics to fail")]

mod analyse;
mod claims;
mod expected_failures;
mod journal;
mod merge;
mod reals;
mod versions;
