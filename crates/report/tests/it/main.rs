//! From records to reports: pages, comparisons and terminal output.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod compare;
mod events;
mod headlines;
mod render;
mod terminal;
