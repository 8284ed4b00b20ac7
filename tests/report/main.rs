//! From events to files: what is stored, analysed and rendered of whole runs.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod analyse;
mod command;
mod expected_failures;
mod fidelity;
mod fixture;
mod hostile;
mod journal;
mod render;
mod terminal;
