//! From TOML to a validated `Manifest`, with every fault reported at its place.
//!
//! The text is read into raw types that mirror the file, and these are then validated. Nothing here expands the matrix,
//! uses a device or compiles a source.

use runner_model::{diagnostics, experiment, expr, includes, model, npy};

mod cuda_source;
mod files;
mod load;
mod raw;
mod read;
mod schema;
mod validate;

pub use load::{load, parse};
pub use schema::schema;

#[cfg(test)]
mod tests;
