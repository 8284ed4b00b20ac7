//! What can be known of a CUDA source without compiling it.

pub mod cpp;
pub mod includes;
pub mod kernel_body;
pub mod ptx;
pub mod signature;
pub mod source;
pub mod source_lines;
