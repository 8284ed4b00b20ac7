//! Turns sources into machine code: finds and fetches toolkits, runs the compiler in a child process, and caches by
//! content.
//!
//! [`Toolkit::ensure`] finds an NVRTC and headers that suit the driver; [`compile_all`] compiles units into files. This
//! stage does not use a device. It uses the network only to fetch, and only if that is allowed.

mod assembler;
mod batch;
mod cache;
mod child;
mod disassembler;
mod elf;
pub mod fetch;
mod host_headers;
mod key;
mod layout;
mod library_headers;
mod locate;
mod log;
mod nvcc;
mod nvrtc;
mod on_demand;
mod options;
pub mod package;
pub mod pinned;
mod plain_paths;
mod program;
mod ptx_digest;
mod ready;
mod replaced;
pub mod sanitizer;
mod sources;
mod to_ptx;
mod toolkit;
mod whole_file;

pub use assembler::{Assembler, AssemblerError};
pub use batch::{CompileOptions, UnitResult, compile_all};
pub use cache::Cache;
pub use child::end_first;
pub use child::serve;
pub use disassembler::{Disassembler, DisassemblerError};
pub use fetch::Network;
pub use library_headers::LibraryHeaders;
pub use locate::{Missing, Requirement, ToolkitError};
pub use nvcc::{Nvcc, NvccError};
pub use on_demand::OnDemand;
pub use options::Target;
pub use sources::{SourceReader, Sources, sources};
pub use to_ptx::{Clang, Installed};
pub use toolkit::{Toolkit, ToolkitSource};
