//! State of the device runtime of CUDA's dynamic parallelism and of the device's heap: what kernels share and queue.
//!
//! Nothing is started here. A grid queues launches and transfers, and its caller takes them with [`GridRuntime::take`]
//! when the grid's blocks have ended. A GPU may start them earlier, but a grid cannot wait for its children, so a later
//! start is also correct.

pub mod errors;
pub mod heap;
pub mod limits;
pub mod transfer;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::SimError;
use crate::memory::Memory;
use crate::profile::DeviceProfile;
use crate::program::Kernel;
use crate::runtime::errors::{Code, Texts};
use crate::runtime::transfer::Transfer;

/// Value of `cudaStreamTailLaunch`.
pub const TAIL: u64 = 3;

/// Value of `cudaStreamFireAndForget`.
pub const FIRE_AND_FORGET: u64 = 4;

/// CUDA's default for `cudaLimitDevRuntimePendingLaunchCount`.
pub const PENDING_LAUNCHES: u64 = 2048;

/// State that all grids of one host launch share.
#[derive(Debug)]
pub struct Device<'m> {
    pub profile: &'m DeviceProfile,
    /// Kernels of the module, by the number that determines their address.
    pub kernels: BTreeMap<u32, &'m Kernel>,
    /// Kernels of the module that are not simulated, by number, with the reasons.
    pub refused: BTreeMap<u32, &'m SimError>,
    pub texts: &'m Texts,
    /// Local memory per thread, and size of the heap, in bytes.
    pub stack: u64,
    pub heap: u64,
    pub slots: Slots,
}

/// Launches that have not ended, including everything that they launch. An H100 limits their number, and limits their
/// nesting to the same depth.
#[derive(Debug)]
pub struct Slots {
    pub limit: u64,
    pending: AtomicU64,
}

impl Slots {
    pub const fn new(limit: u64) -> Self {
        Self { limit, pending: AtomicU64::new(0) }
    }

    /// Reserves a slot for a launch; returns false if all are taken.
    pub fn reserve(&self) -> bool {
        // Calls follow commit order, so no other thread interferes.
        let free = self.pending.load(Ordering::Relaxed) < self.limit;
        if free {
            self.pending.fetch_add(1, Ordering::Relaxed);
        }
        free
    }

    /// Releases the slot of a launch that has ended or will never be made.
    pub fn release(&self) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Extents and dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Size of dynamic shared memory in bytes.
    pub shared: u32,
    /// Blocks per cluster, if the launch specifies them.
    pub cluster: Option<[u32; 3]>,
}

/// Call site in a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub kernel: String,
    pub place: String,
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// A launch that has been accepted.
#[derive(Debug)]
pub struct ChildLaunch {
    /// Number of the kernel in the module.
    pub kernel: u32,
    pub shape: Shape,
    pub params: Vec<u8>,
}

/// Work that a grid has queued.
#[derive(Debug)]
pub enum Work {
    Launch(ChildLaunch),
    Transfer(Transfer),
}

/// Queued work and the call that queued it.
#[derive(Debug)]
pub struct Queued {
    pub work: Work,
    pub by: Origin,
}

/// A grid's queued work, in an order that every stream allows. Everything outside the tail stream comes first, ordered
/// by block and then by call; the tail stream comes last.
#[derive(Debug, Default)]
pub struct Queue {
    pub children: Vec<Queued>,
    pub tail: Vec<Queued>,
}

#[derive(Debug)]
pub struct ParameterBuffer {
    pub bytes: u64,
    /// Kernel number and shape of the launch, if they were passed when the buffer was requested.
    pub launch: Option<(u32, Shape)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handle {
    Stream(u64),
    Event(u64),
}

#[derive(Debug, Default)]
pub struct State {
    pub buffers: BTreeMap<u64, ParameterBuffer>,
    /// Last error of each thread that has one, by block index and thread index.
    pub errors: HashMap<([u32; 3], [u32; 3]), Code>,
    pub handles: BTreeSet<Handle>,
    pub next_handle: u64,
    pub queue: Queue,
}

/// State of the device runtime for one grid.
#[derive(Debug)]
pub struct GridRuntime<'m> {
    pub device: &'m Device<'m>,
    state: Mutex<State>,
}

impl<'m> GridRuntime<'m> {
    pub fn new(device: &'m Device<'m>) -> Self {
        Self { device, state: Mutex::default() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the grid's queued work once its blocks have ended. Frees parameter buffers that were never launched.
    pub fn take(&self, memory: &Memory) -> Queue {
        let mut state = self.state();
        for address in std::mem::take(&mut state.buffers).into_keys() {
            memory.free(address);
            self.device.slots.release();
        }
        std::mem::take(&mut state.queue)
    }
}
