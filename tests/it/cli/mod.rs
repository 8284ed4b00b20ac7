//! The command line, through the real binary.

mod check;
mod plan;
mod run;
mod schema;
