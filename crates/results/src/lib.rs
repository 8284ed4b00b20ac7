//! What runs produced: journals, the records made from them, and their analysis.
//!
//! Apart from `runner-report`, which words and draws the analysis, and from `runner-execute`, which produces the
//! events: nothing here needs a device or formats a sentence.

pub mod analyse;
pub mod journal;
pub mod stored;
