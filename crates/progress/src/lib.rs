//! What a run shows on standard error: its progress and its log.

pub mod log;
pub mod progress;
