//! The command line, through the real binary.

mod check;
mod schema;
