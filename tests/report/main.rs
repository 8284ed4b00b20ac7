//! From events to files: what is analysed, stored and rendered of whole runs.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod fixture;
mod render;
