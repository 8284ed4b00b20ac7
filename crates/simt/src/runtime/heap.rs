//! The heap of `malloc` and `free` on the device.
//!
//! Every allocation is one of the machine's, so that bounds are checked to the byte. The order in which blocks allocate
//! is visible in the addresses, so both are in commit order.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Memory, Use};

/// The heap of a device: how much of its limit is used.
#[derive(Debug)]
pub struct Heap {
    pub limit: u64,
    used: AtomicU64,
}

impl Heap {
    pub const fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }
}

/// What heap allocations are called in messages; `free` accepts no others.
const NAME: &str = "a malloc of the device";

/// Allocates from the heap, in commit order; `None` for no bytes and where the heap is used up.
pub fn give(memory: &Memory, heap: &Heap, bytes: u64) -> Option<u64> {
    let fits = bytes > 0 && bytes <= heap.limit.saturating_sub(heap.used.load(Ordering::Relaxed));
    let address = if fits { memory.alloc(bytes, NAME, Use::Data) } else { None };
    if address.is_some() {
        heap.used.fetch_add(bytes, Ordering::Relaxed);
    }
    address
}

/// Frees what [`give`] gave, in commit order; false for any other address but null.
pub fn take_back(memory: &Memory, heap: &Heap, address: u64) -> bool {
    match memory.find(address) {
        _ if address == 0 => true,
        Some(found) if found.start == address && found.name == NAME => {
            memory.free(address);
            heap.used.fetch_sub(found.bytes, Ordering::Relaxed);
            true
        }
        _ => false,
    }
}

/// Whether an address lies in the heap, or in what was freed.
pub fn owns(memory: &Memory, address: u64) -> bool {
    memory.find(address).is_none_or(|a| a.name == NAME)
}
