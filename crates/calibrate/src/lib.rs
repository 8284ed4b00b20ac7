//! Measures a machine itself: its ceilings and its clock.
//!
//! [`survey`] runs kernels of its own on a device, which are compiled as [`unit`](fn@unit); [`calibrate`] compares
//! surveys with the [`reference_times`], and [`constant`] does so for one process; [`spread`] estimates how much
//! processes differ; [`Store`] keeps the results per device and driver. Nothing here starts a process, changes a clock,
//! or judges a case.

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
