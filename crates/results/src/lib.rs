//! Results of runs: journals, the records made from them, and their analysis.
//!
//! Separate from `runner-report`, which phrases and draws the analysis, and from `runner-execute`, which produces the
//! events. Nothing here needs a device or formats a sentence.

pub mod analyse;
pub mod journal;
pub mod stored;
