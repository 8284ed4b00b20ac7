//! What can be learned from a CUDA source without compiling it.

mod conditionals;
pub mod cpp;
pub mod device_half;
mod expand;
pub mod expression;
pub mod flatten;
pub mod host_half;
pub mod includes;
pub mod kernel_body;
pub mod kernel_file;
pub mod launches;
pub mod parameter;
pub mod ptx;
pub mod reach;
pub mod signature;
pub mod source;
pub mod source_lines;
pub mod types;
