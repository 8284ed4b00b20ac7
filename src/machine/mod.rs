//! Measures a machine itself: how fast it can be.
//!
//! [`survey`] drives a device through its trait with kernels made for nothing else; [`unit`] says how these are
//! compiled; [`Store`] keeps what was found, once a device and driver. Nothing here starts a process, changes a clock,
//! or judges a case by what it found.

mod ceilings;
mod store;
mod survey;

pub use store::{Store, StoreError};
pub use survey::{survey, unit, write_source};
