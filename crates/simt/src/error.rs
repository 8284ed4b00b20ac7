//! Load errors, host call errors, and traps inside kernels.

use std::fmt;
use std::time::Duration;

/// Why a call to the machine failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The text is not PTX.
    #[error("the PTX does not parse: {0}")]
    Parse(#[from] ptx_parser::ParseError),
    /// An instruction that is not simulated, or a name that is not defined.
    #[error("kernel `{kernel}`, {place}: {message}")]
    Load {
        /// Kernel, or variable with a bad initial value.
        kernel: String,
        /// `file:line` of the source, or the line of the PTX.
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
    /// The range of a host call is not inside one allocation.
    #[error("{bytes} bytes at address {address:#x} are not inside one allocation")]
    Address {
        /// Start of the range.
        address: u64,
        /// Size of the range in bytes.
        bytes: u64,
    },
    /// Why a texture or surface object is invalid.
    #[error("no texture or surface object can be created: {0}")]
    Image(&'static str),
    /// The device does not have enough free memory.
    #[error("{needed} bytes are needed, but only {available} are free on the simulated device")]
    OutOfMemory {
        /// Requested bytes.
        needed: u64,
        /// Free bytes, which may not be contiguous.
        available: u64,
    },
    /// The arguments do not match the kernel's parameters in number or size.
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
    /// Name of the kernel.
    pub kernel: String,
    /// `file:line` of the source, or the line of the PTX.
    pub place: String,
    /// Index of the block.
    pub block: [u32; 3],
    /// First faulting thread, if the fault is attributed to threads.
    pub thread: Option<[u32; 3]>,
    /// Class of the fault.
    pub kind: TrapKind,
    /// Description, including the address, allocation and offset, if any.
    pub message: String,
    /// How to fix a race, and how to silence it.
    pub cure: Option<String>,
    /// Launch that started the grid, in a parent kernel, if any.
    pub launched_by: Option<String>,
    /// Memory location of the fault, if any.
    pub site: Option<Site>,
    /// Output of `printf` up to the trap, from the faulting block and all earlier blocks.
    pub printed: String,
}

/// A location in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Address or, in shared and local memory, offset from the start of the state space.
    pub address: u64,
    /// Allocation that contains the address, or else the nearest one.
    pub allocation: String,
    /// Offset in the allocation in bytes; negative if the address is before it.
    pub offset: i64,
}

impl Site {
    /// Returns a location in a state space that is a single allocation, such as `shared memory`.
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
    /// An access outside every allocation or beyond the end of a state space, or a store to constant memory.
    OutOfBounds,
    /// An access whose address is not a multiple of its size.
    Misaligned,
    /// A read of bytes that were never written.
    Uninitialised,
    /// Two conflicting accesses that are not ordered.
    Race,
    /// Misuse of a barrier.
    Barrier,
    /// A warp operation whose mask names lanes that do not take part.
    Shuffle,
    /// No thread of a block can continue.
    Deadlock,
    /// The block executed more warp instructions than `Options::watchdog`.
    Watchdog,
    /// The time limit of the launch was exceeded.
    Deadline(Duration),
    /// A failed `assert`.
    Assert,
    /// A `trap` or `brkpt` instruction.
    Trap,
    /// Nested calls that need more local memory than `Options::stack`.
    StackOverflow,
    /// An indirect call to an address that is not a function.
    BadCall,
    /// An invalid `free`.
    Heap,
    /// An instruction that a GPU refuses in this kind of launch.
    Illegal,
    /// Communication between blocks in a launch that runs only a sample of its blocks.
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
