//! Measures a machine itself: how fast it can be, and how far its clock can be trusted.
//!
//! [`survey`] drives a device through its trait with kernels made for nothing else; [`unit`] says how these are
//! compiled; [`calibrate`] compares the clock's surveys with the reference clock's [`reference_times`], and [`constant`] those of one process; [`spread`] says how much processes differ;
//! [`Store`] keeps what was found, once a device and driver. Nothing here starts a process, changes a clock, or judges a
//! case by what it found.

mod bench;
mod ceilings;
mod clock;
#[cfg(test)]
mod fixture;
mod spread;
mod store;
mod survey;

pub use clock::{calibrate, constant, reference_times};
pub use spread::spread;
pub use store::{Known, Store, StoreError};
pub use survey::{survey, unit, write_source};
