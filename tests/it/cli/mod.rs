//! The command line, through the real binary.

mod check;
mod checkout;
mod plan;
mod run;
mod schema;
