//! `malloc` and `free` on the device.
//!
//! Every allocation is one of the machine's, so that bounds are checked to the byte. The order in which blocks
//! allocate shows in the addresses, so both wait for the block's turn.

use std::sync::atomic::{AtomicU64, Ordering};

use super::context::{Cached, Context, Event};
use super::control::take_turn;
use super::row::Ins;
use crate::sim::error::TrapKind;

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

/// `malloc`: slot offsets in `imm` (argument) and `aux` (result) count from the function's locals.
pub unsafe fn malloc(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if !take_turn(cx) {
        return cx.stop_at(Event::Turn, i);
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let bytes = cx.local_u64(k, i.imm as u32);
        let heap = cx.launch.heap;
        let fits = bytes > 0 && bytes <= heap.limit.saturating_sub(heap.used.load(Ordering::Relaxed));
        let address = if fits { cx.launch.memory.alloc(bytes, NAME, false) } else { None };
        if address.is_some() {
            heap.used.fetch_add(bytes, Ordering::Relaxed);
        }
        cx.set_local_u64(k, i.aux, address.unwrap_or(0));
    }
    Context::next(i)
}

/// `free`: the argument's offset is `imm`.
pub unsafe fn free(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if !take_turn(cx) {
        return cx.stop_at(Event::Turn, i);
    }
    cx.cached = Cached::default();
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros();
        lanes &= lanes - 1;
        let address = cx.local_u64(k as usize, i.imm as u32);
        if address == 0 {
            continue;
        }
        match cx.launch.memory.find(address) {
            Some(found) if found.start == address && found.name == NAME => {
                cx.launch.memory.free(address);
                cx.launch.heap.used.fetch_sub(found.bytes, Ordering::Relaxed);
            }
            _ => {
                let message = format!("`free` of {address:#x}, which `malloc` did not give or was freed before");
                return cx.trap(i, TrapKind::Heap, 1 << k, message);
            }
        }
    }
    Context::next(i)
}
