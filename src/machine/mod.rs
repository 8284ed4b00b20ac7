//! Measures a machine itself: how fast it can be, and how far its clock can be trusted.
//!
//! [`survey`] drives a device through its trait with kernels made for nothing else; [`unit`] says how these are
//! compiled; [`calibrate`] compares the clock's survey with a witness's; [`Store`] keeps what was found, once a device and driver. Nothing here starts a process, changes a clock,
//! or judges a case by what it found.

mod ceilings;
mod clock;
#[cfg(test)]
mod fixture;
mod store;
mod survey;

pub use clock::calibrate;
pub use store::{Store, StoreError};
pub use survey::{survey, unit, write_source};
