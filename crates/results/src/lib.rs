//! What runs came to: journals, the records made of them, and their analysis. Reports are made of the analysis.

pub mod analyse;
pub mod journal;
pub mod stored;
