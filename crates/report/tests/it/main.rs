//! From records to reports: pages, comparisons and terminal output.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics to fail")]

mod compare;
mod events;
mod headlines;
mod render;
mod terminal;
