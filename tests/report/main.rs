//! From events to files: what is stored, analysed and rendered of whole runs.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod analyse;
mod command;
mod fidelity;
mod fixture;
mod hostile;
mod journal;
mod lessons;
mod render;
mod terminal;
