//! Other programs: where to find them, what a sandbox lets them do, and where their output goes.

pub mod programs;
pub mod sandbox;
pub mod stdout;
