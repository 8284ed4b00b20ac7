//! Reads TOML into a validated `Manifest`, and reports every fault with its location.
//!
//! The text is read into raw types that mirror the file, and these are then validated. Nothing here expands the matrix,
//! uses a device or compiles a source. [`draft`] goes the other way: from the kernels of a source to the text of a
//! manifest.

pub mod draft;
mod element;
mod files;
mod load;
mod raw;
mod read;
mod recognise;
mod schema;
mod validate;

pub use load::{load, load_within, packages, parse, parse_within};
pub use recognise::{experiment_name, is_manifest};
pub use schema::schema;

#[cfg(test)]
mod tests;
