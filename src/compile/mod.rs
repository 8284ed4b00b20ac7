//! From sources to machine code: toolkit discovery and setup, the compiler in a child that can be killed, a
//! content-addressed cache.
//!
//! [`Toolkit::ensure`] finds NVRTC and headers that suit the driver. This stage touches no device, and reaches the
//! network only through [`fetch`], only where it may.

mod cache;
pub mod fetch;
mod toolkit;

pub use cache::{CACHE_VARIABLE, Cache, CacheError};
pub use toolkit::{Missing, Network, TOOLKIT_VARIABLE, Toolkit, ToolkitError, ToolkitSource, Want};
