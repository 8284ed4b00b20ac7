//! File formats for spaces and for measurements of them.
//!
//! T1 and T4 are the formats that autotuners exchange: T1 describes a space and its kernel, T4 lists results.

mod error;
mod kernel_tuner;
mod measured;
pub mod t1;
pub mod t4;
pub mod table;

pub use error::FormatError;
pub use measured::{open, read_measured, read_results};
