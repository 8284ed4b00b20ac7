//! Which files a manifest may use, and how to read and write files safely.

pub mod atomic;
pub mod cache_folder;
pub mod file_names;
pub mod npy;
pub mod project;
pub mod regular;
pub mod safetensors;
pub mod sealed;
