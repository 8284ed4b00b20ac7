//! Which files a manifest may name, and how files are read and written: whole or not at all.

pub mod atomic;
pub mod cache_folder;
pub mod file_names;
pub mod npy;
pub mod project;
pub mod regular;
pub mod safetensors;
pub mod sealed;
