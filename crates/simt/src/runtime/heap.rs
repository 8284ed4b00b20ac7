//! Heap of `malloc` and `free` on the device.
//!
//! Each heap allocation is an allocation of the machine, so bounds are checked to the byte. The order in which blocks
//! allocate is visible in the addresses, so both calls follow commit order.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Memory, Use};

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

/// Name of heap allocations in messages. `free` accepts only allocations with this name.
const NAME: &str = "a malloc of the device";

/// Allocates from the heap, in commit order. `None` for zero bytes, or if the heap is full.
pub fn allocate(memory: &Memory, heap: &Heap, bytes: u64) -> Option<u64> {
    let fits = bytes > 0 && bytes <= heap.limit.saturating_sub(heap.used.load(Ordering::Relaxed));
    let address = if fits { memory.alloc(bytes, NAME, Use::Data) } else { None };
    if address.is_some() {
        heap.used.fetch_add(bytes, Ordering::Relaxed);
    }
    address
}

/// Frees memory from [`allocate`], in commit order. Returns false for any other address except null.
pub fn free(memory: &Memory, heap: &Heap, address: u64) -> bool {
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

/// Frees everything in the heap.
pub fn clear(memory: &Memory, heap: &Heap) {
    if heap.used.swap(0, Ordering::Relaxed) > 0 {
        for address in memory.named(NAME) {
            memory.free(address);
        }
    }
}

/// Whether an address is in the heap or in memory that was freed.
pub fn owns(memory: &Memory, address: u64) -> bool {
    memory.find(address).is_none_or(|a| a.name == NAME)
}
