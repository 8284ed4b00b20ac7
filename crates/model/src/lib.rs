#![doc = include_str!("../README.md")]

pub mod cpp;
pub mod diagnostics;
pub mod experiment;
pub mod expr;
pub mod file_names;
pub mod format;
pub mod includes;
pub mod model;
pub mod npy;
pub mod project;
pub mod ptx;
pub mod regular;
pub mod safetensors;
pub mod source_lines;
