//! From sources to machine code: toolkit discovery and setup, the compiler in a child that can be killed, a
//! content-addressed cache.
//!
//! [`Toolkit::ensure`] finds NVRTC and headers that suit the driver, [`compile_all`] turns units into code on disk.
//! This stage touches no device, and reaches the network only through [`fetch`], only where it may.

mod batch;
mod cache;
mod child;
mod elf;
pub mod fetch;
mod key;
mod layout;
mod locate;
mod log;
mod nvrtc;
mod options;
pub mod pinned;
mod plugin;
mod toolkit;

pub use batch::{CompileOptions, UnitResult, compile_all};
pub use cache::{CACHE_VARIABLE, Cache, CacheError};
pub use child::serve;
pub use locate::{Missing, Network, ToolkitError, Want};
pub use options::Target;
pub use pinned::Pinned;
pub use plugin::Nvcc;
pub use toolkit::{TOOLKIT_VARIABLE, Toolkit, ToolkitSource};
