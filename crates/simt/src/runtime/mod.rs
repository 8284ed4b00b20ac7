//! The state of the device runtime of CUDA's dynamic parallelism and of the device's heap: what kernels share and
//! queue.
//!
//! Nothing starts here: a grid queues launches and transfers, and its caller takes them with [`GridRuntime::take`] when
//! its blocks have ended. A GPU may start them earlier. A grid cannot wait for its children, so none starts too late.

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

/// CUDA's default of `cudaLimitDevRuntimePendingLaunchCount`.
pub const PENDING_LAUNCHES: u64 = 2048;

/// State that all grids of one host launch share.
#[derive(Debug)]
pub struct Device<'m> {
    pub profile: &'m DeviceProfile,
    /// Kernels of the module, by the number in their address.
    pub kernels: BTreeMap<u32, &'m Kernel>,
    /// Kernels of the module that are not simulated, by number, and why.
    pub refused: BTreeMap<u32, &'m SimError>,
    pub texts: &'m Texts,
    /// Bytes of local memory per thread, and of the heap.
    pub stack: u64,
    pub heap: u64,
    pub slots: Slots,
}

/// The launches that have not ended with everything that they launch. An H100 limits their number, and their nesting to
/// the same depth.
#[derive(Debug)]
pub struct Slots {
    pub limit: u64,
    pending: AtomicU64,
}

impl Slots {
    /// Returns slots for at most `limit` launches.
    pub const fn new(limit: u64) -> Self {
        Self { limit, pending: AtomicU64::new(0) }
    }

    /// Takes a slot for a launch; false if all are taken.
    pub fn reserve(&self) -> bool {
        // Calls are in commit order, so no other thread intervenes.
        let free = self.pending.load(Ordering::Relaxed) < self.limit;
        if free {
            self.pending.fetch_add(1, Ordering::Relaxed);
        }
        free
    }

    /// Frees the slot of a launch that has ended or will never be made.
    pub fn release(&self) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Extents and dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// The bytes of dynamic shared memory.
    pub shared: u32,
    /// Blocks per cluster, if the launch states them.
    pub cluster: Option<[u32; 3]>,
}

/// Where a call was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub kernel: String,
    pub place: String,
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// A launch that was accepted.
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

/// Queued work, and the call that queued it.
#[derive(Debug)]
pub struct Queued {
    pub work: Work,
    pub by: Origin,
}

/// A grid's queued work, in an order that every stream allows: first everything except the tail stream, in the order of
/// blocks and of each block's calls, then the tail stream.
#[derive(Debug, Default)]
pub struct Queue {
    pub children: Vec<Queued>,
    pub tail: Vec<Queued>,
}

/// A buffer for the parameters of a launch.
#[derive(Debug)]
pub struct ParameterBuffer {
    pub bytes: u64,
    /// Present if the launch's shape was passed when the buffer was requested.
    pub launch: Option<(u32, Shape)>,
}

/// What a handle refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handle {
    Stream(u64),
    Event(u64),
}

#[derive(Debug, Default)]
pub struct State {
    pub buffers: BTreeMap<u64, ParameterBuffer>,
    /// Last error of each thread that has one, by block and thread.
    pub errors: HashMap<([u32; 3], [u32; 3]), Code>,
    pub handles: BTreeSet<Handle>,
    pub next_handle: u64,
    pub queue: Queue,
}

/// The device runtime's state for one grid.
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

    /// Returns the grid's queued work after its blocks have ended. Frees parameter buffers that it never launched.
    pub fn take(&self, memory: &Memory) -> Queue {
        let mut state = self.state();
        for address in std::mem::take(&mut state.buffers).into_keys() {
            memory.free(address);
            self.device.slots.release();
        }
        std::mem::take(&mut state.queue)
    }
}
