//! The device runtime of CUDA's dynamic parallelism in its second version (`__cudaCDP2…`): the functions that kernels
//! call.
//!
//! Calls are in commit order, so that handles, error codes and the queue are the same for any number of host threads.

mod call;
mod launch;
mod query;
mod services;
mod transfer;

pub use services::{call, find};
