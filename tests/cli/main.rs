//! The command line, through the real binary.

mod check;
mod run;
mod schema;
