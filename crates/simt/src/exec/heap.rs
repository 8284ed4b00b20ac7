//! `malloc` and `free` on the device.
//!
//! Every allocation is one of the machine's, so that bounds are checked to the byte. The order in which blocks
//! allocate shows in the addresses, so both wait for the block's turn.

use std::sync::atomic::{AtomicU64, Ordering};

use super::context::{Context, Event, LaunchState};
use super::control::take_turn;
use super::row::Ins;
use crate::error::TrapKind;
use crate::memory::{Extent, Memory, Use};

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

/// Allocates from the heap, in the block's turn; `None` for no bytes and where the heap is used up.
pub fn give(launch: &LaunchState<'_>, bytes: u64) -> Option<u64> {
    let heap = launch.heap;
    let fits = bytes > 0 && bytes <= heap.limit.saturating_sub(heap.used.load(Ordering::Relaxed));
    let address = if fits { launch.memory.alloc(bytes, NAME, Use::Data) } else { None };
    if address.is_some() {
        heap.used.fetch_add(bytes, Ordering::Relaxed);
    }
    address
}

/// Frees what [`give`] gave, in the block's turn; false for any other address but null.
pub fn take_back(launch: &LaunchState<'_>, address: u64) -> bool {
    match launch.memory.find(address) {
        _ if address == 0 => true,
        Some(found) if found.start == address && found.name == NAME => {
            launch.memory.free(address);
            launch.heap.used.fetch_sub(found.bytes, Ordering::Relaxed);
            true
        }
        _ => false,
    }
}

/// Whether an address lies in the heap, or in what was freed.
pub fn owns(memory: &Memory, address: u64) -> bool {
    memory.find(address).is_none_or(|a| a.name == NAME)
}

/// `malloc`: slot offsets in `imm` (argument) and `aux` (result) count from the function's locals.
pub unsafe fn malloc(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    allocate(cx, i, |_, _| true)
}

/// The same with an alignment, whose offset is the upper half of `imm`. Every allocation is aligned to 256 bytes;
/// there are none for more, nor for what is no power of two.
pub unsafe fn aligned_malloc(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let at = (i.imm >> 32) as u32;
    allocate(cx, i, |cx, lane| {
        let align = cx.local_u64(lane, at);
        align.is_power_of_two() && align <= 256
    })
}

#[inline(always)]
fn allocate(cx: &mut Context<'_>, i: &Ins, may: impl Fn(&Context<'_>, usize) -> bool) -> *const Ins {
    if !take_turn(cx) {
        return cx.stop_at(Event::Turn, i);
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let bytes = cx.local_u64(k, i.imm as u32);
        let address = if may(cx, k) { give(cx.launch, bytes) } else { None };
        cx.set_local_u64(k, i.aux, address.unwrap_or(0));
    }
    Context::next(i)
}

/// `free`: the argument's offset is `imm`.
pub unsafe fn free(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if !take_turn(cx) {
        return cx.stop_at(Event::Turn, i);
    }
    cx.cached = Extent::default();
    // The next owner of the piece does not meet this one.
    cx.monitor.barrier();
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros();
        lanes &= lanes - 1;
        let address = cx.local_u64(k as usize, i.imm as u32);
        if !take_back(cx.launch, address) {
            let message = format!("`free` of {address:#x}, which `malloc` did not give or was freed before");
            return cx.trap(i, TrapKind::Heap, 1 << k, message);
        }
    }
    Context::next(i)
}
