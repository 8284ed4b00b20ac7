//! How one group runs.

pub mod fill;
mod npy;
mod typed;
