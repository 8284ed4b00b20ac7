//! Measures the machine itself: its ceilings and its clock.
//!
//! [`survey`] runs its own kernels, compiled from [`unit`](fn@unit), on a device. [`calibrate`] compares surveys with
//! the [`reference_times`], and [`constant`] does so for one process. [`spread`] estimates how much processes differ.
//! [`Store`] keeps the results per device and driver. Nothing here starts a process, changes a clock, or judges a case.

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
