//! Functions of the device runtime for dynamic parallelism, version 2 (`__cudaCDP2…`), that kernels call.
//!
//! Calls run in commit order, so handles, error codes and the queue do not depend on the number of host threads.

mod call;
mod launch;
mod query;
mod services;
mod transfer;

pub use services::{call, find};
