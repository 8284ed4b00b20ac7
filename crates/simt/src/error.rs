//! Errors at load, errors of host calls, and traps inside a kernel.

use std::fmt;
use std::time::Duration;

/// Why a call of the machine failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The text is not PTX.
    #[error("the PTX does not parse: {0}")]
    Parse(#[from] ptx_parser::ParseError),
    /// An instruction that is not simulated, or a name that does not resolve.
    #[error("kernel `{kernel}`, {place}: {message}")]
    Load {
        /// The kernel, or the variable whose initial value is wrong.
        kernel: String,
        /// The `file:line` of the source, or the line of the PTX.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// Files that cannot be linked into one module.
    #[error("{0}")]
    Link(String),
    /// No kernel of the module has this name.
    #[error("the module has no kernel `{0}`")]
    NoKernel(String),
    /// No variable of the module has this name.
    #[error("the module has no variable `{0}`")]
    NoVariable(String),
    /// A range of a host call that is not inside one allocation.
    #[error("{bytes} bytes at address {address:#x} are not inside one allocation")]
    Address {
        /// The start of the range.
        address: u64,
        /// The size of the access.
        bytes: u64,
    },
    /// A texture or surface object that cannot be.
    #[error("no texture or surface object can be made: {0}")]
    Image(&'static str),
    /// The device has not enough free memory.
    #[error("{needed} bytes are needed, {available} are free on the simulated device")]
    OutOfMemory {
        /// The number of bytes that were requested.
        needed: u64,
        /// The free bytes, which may not be contiguous.
        available: u64,
    },
    /// The number or the sizes of the arguments are not those of the kernel's parameters.
    #[error("{0}")]
    Arguments(String),
    /// The launch exceeds the device's limits.
    #[error("{0}")]
    Launch(String),
    /// The host lacks a resource that the simulator needs.
    #[error("{0}")]
    Host(String),
}

/// A fault inside a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    /// The name of the kernel.
    pub kernel: String,
    /// The `file:line` of the source, or the line of the PTX.
    pub place: String,
    /// The index of the block.
    pub block: [u32; 3],
    /// The first faulting thread, if the fault is of a thread.
    pub thread: Option<[u32; 3]>,
    /// The class of the fault.
    pub kind: TrapKind,
    /// The description, with address, allocation and offset if there are any.
    pub message: String,
    /// What would cure a race, and how to silence it.
    pub cure: Option<String>,
    /// The launch in a parent kernel that started the grid, if a kernel did.
    pub launched_by: Option<String>,
    /// The memory that the trap is about.
    pub site: Option<Site>,
    /// What `printf` wrote up to then: the output of all blocks before the faulting one, and of that block.
    pub printed: String,
}

/// A place in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The address; in shared and local memory the offset from where they begin.
    pub address: u64,
    /// The allocation that contains the address; outside of every allocation, the nearest one.
    pub allocation: String,
    /// The bytes from the start of the allocation; negative if the address is before the allocation.
    pub offset: i64,
}

impl Site {
    /// Returns a place in a state space that is one allocation, such as `shared memory`.
    pub(crate) fn inside(space: &str, offset: u64) -> Self {
        Self { address: offset, allocation: space.to_owned(), offset: offset as i64 }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, distance) = (if self.offset < 0 { '-' } else { '+' }, self.offset.unsigned_abs());
        if i64::try_from(self.address) == Ok(self.offset) {
            return write!(f, "{} {sign} {distance}", self.allocation);
        }
        write!(f, "{:#x} ({} {sign} {distance})", self.address, self.allocation)
    }
}

/// Classes of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrapKind {
    /// An access outside of every allocation, or beyond the end of a state space; a store to constant memory.
    OutOfBounds,
    /// An access whose address is not a multiple of its size.
    Misaligned,
    /// A read of bytes that were never written.
    Uninitialised,
    /// Two accesses that nothing orders.
    Race,
    /// A barrier was misused.
    Barrier,
    /// A warp operation with lanes that do not take part.
    Shuffle,
    /// No thread of a block can continue.
    Deadlock,
    /// The block executed more warp instructions than `Options::watchdog`.
    Watchdog,
    /// The time limit of the launch was exceeded.
    Deadline(Duration),
    /// An `assert` failed.
    Assert,
    /// The kernel executed `trap` or `brkpt`.
    Trap,
    /// Nested calls need more local memory than `Options::stack`.
    StackOverflow,
    /// An indirect call to an address that is not a function.
    BadCall,
    /// A `free` was invalid.
    Heap,
    /// An instruction that a GPU does not execute in such a launch.
    Illegal,
    /// An access through which blocks communicate, in a launch that runs a sample of its blocks.
    Communication,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "{} in kernel `{}` at {}, block ({x},{y},{z})", self.message, self.kernel, self.place)?;
        if let Some([x, y, z]) = self.thread {
            write!(f, ", thread ({x},{y},{z})")?;
        }
        if let Some(by) = &self.launched_by {
            write!(f, ", launched by {by}")?;
        }
        if let Some(cure) = &self.cure {
            write!(f, "; {cure}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Trap {}
