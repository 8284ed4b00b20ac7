//! What can go wrong: at load, on the host's side, and inside a kernel.

use std::fmt;
use std::time::Duration;

/// Why the machine refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The text is not PTX.
    #[error("the PTX does not parse: {0}")]
    Parse(#[from] ptx_parser::ParseError),
    /// A form that the simulator does not know, or names that do not resolve.
    #[error("kernel `{kernel}`, {place}: {message}")]
    Load { kernel: String, place: String, message: String },
    #[error("the module has no kernel `{0}`")]
    NoKernel(String),
    #[error("the module has no variable `{0}`")]
    NoVariable(String),
    #[error("{bytes} bytes at address {address:#x} are not inside one allocation")]
    Address { address: u64, bytes: u64 },
    #[error("{needed} bytes are needed, {available} are free on the simulated device")]
    OutOfMemory { needed: u64, available: u64 },
    /// Arguments of another number or of other sizes than the kernel's parameters.
    #[error("{0}")]
    Arguments(String),
    /// A launch beyond the device's limits.
    #[error("{0}")]
    Launch(String),
    /// The host cannot give what the simulator needs.
    #[error("{0}")]
    Host(String),
}

/// A fault inside a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    pub kernel: String,
    /// `file:line` of the source, or the line of the PTX.
    pub place: String,
    pub block: [u32; 3],
    /// The first faulting thread, where one is to blame.
    pub thread: Option<[u32; 3]>,
    pub kind: TrapKind,
    /// What happened, with address, allocation and offset where there are.
    pub message: String,
    /// Where the grid was launched, where a kernel did that.
    pub launched_by: Option<String>,
    /// The memory it is about.
    pub site: Option<Site>,
    /// What the launch had printed by then, in the order of blocks: all of the blocks before the faulting one, and its own.
    pub printed: String,
}

/// A place in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// As the kernel sees it; in shared and local memory, counted from their start.
    pub address: u64,
    /// What lies there; outside of every allocation, the nearest one.
    pub allocation: String,
    /// Bytes from the start of the allocation; negative before it.
    pub offset: i64,
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
    OutOfBounds,
    Misaligned,
    Uninitialised,
    Race,
    Barrier,
    Shuffle,
    Deadlock,
    Watchdog,
    /// So much time was allowed, and is over.
    Deadline(Duration),
    Assert,
    Trap,
    StackOverflow,
    /// A call through an address that is no function.
    BadCall,
    /// An invalid `free`.
    Heap,
    /// An instruction that a GPU does not take in such a launch.
    Illegal,
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
        Ok(())
    }
}

impl std::error::Error for Trap {}
