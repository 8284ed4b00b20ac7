//! Windows of generic addresses, and windows of a cluster's shared memory.
//!
//! The window of shared memory starts with the block's own bytes. After these, each block of the cluster has a part,
//! including the block itself.

use crate::memory::{GLOBAL_BASE, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};
use crate::program::aux::StateSpace;

/// Size of each block's part in the window of its cluster, in bytes.
pub const STRETCH: u64 = 1 << 24;

/// Returns the state space of a generic address, and the start of its window.
#[inline(always)]
pub const fn window(address: u64) -> (StateSpace, u64) {
    if address >= GLOBAL_BASE {
        (StateSpace::GLOBAL, 0)
    } else if address >= SHARED_WINDOW && address < SHARED_WINDOW + WINDOW {
        (StateSpace::SHARED, SHARED_WINDOW)
    } else if address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW {
        (StateSpace::LOCAL, LOCAL_WINDOW)
    } else if address >= PARAM_WINDOW && address < PARAM_WINDOW + WINDOW {
        (StateSpace::PARAM, PARAM_WINDOW)
    } else {
        (StateSpace::GLOBAL, 0)
    }
}

/// Returns the block that owns an offset in the window of shared memory, and the offset in that block; no block for the
/// block's own bytes.
pub const fn owner(offset: u64) -> (Option<u32>, u64) {
    match (offset / STRETCH) as u32 {
        0 => (None, offset),
        place => (Some(place - 1), offset % STRETCH),
    }
}

/// Returns the rank of a block in its cluster.
pub const fn rank_of([i, j, k]: [u32; 3], [x, y, z]: [u32; 3]) -> u32 {
    (k % z * y + j % y) * x + i % x
}

/// Returns the rank of the block whose shared memory starts at `origin`.
pub const fn rank_at(origin: u64) -> usize {
    ((origin % WINDOW) / STRETCH) as usize - 1
}
