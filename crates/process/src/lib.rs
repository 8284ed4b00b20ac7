//! Other programs and what they may do: where they are found, what a sandbox lets them touch, where their output goes.

pub mod programs;
pub mod sandbox;
pub mod stdout;
