//! The command line, through the real binary.

mod check;
mod checkout;
mod exits;
mod plan;
mod run;
mod schema;
mod version;
