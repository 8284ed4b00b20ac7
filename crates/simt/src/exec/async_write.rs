//! Asynchronous writes to the shared memory of a cluster, which complete on an mbarrier object of the target block.
//!
//! Writes take effect immediately: the program must allow for this, since they may complete at any time. It is a fault
//! if a write to one block completes on another block's object, or if it is outside shared memory.

use crate::error::TrapKind;
use crate::exec::access::{Region, Survey, misaligned, region};
use crate::exec::context::Context;
use crate::exec::{mbarrier, remote, sanitizer};
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::{Bulk, Space, Way};

#[derive(Debug, Clone, Copy)]
pub struct AsyncWrite {
    pub to: u64,
    pub bytes: u32,
    /// Address of the mbarrier object that counts the bytes.
    pub object: u64,
    pub way: Way,
}

/// Returns the region of `bytes` bytes at an address, which must be aligned to `unit`. `Err` is the handler's return
/// value.
pub fn place(
    cx: &mut Context<'_>,
    i: &Ins,
    space: StateSpace,
    (address, bytes, unit): (u64, u32, u64),
    store: bool,
) -> Result<Region, *const Ins> {
    let i = &Ins { aux: Access::to(space).bits(), ..*i };
    let a = Row([address; LANES]);
    if address & (unit - 1) != 0 {
        return Err(misaligned(cx, i, &a, unit));
    }
    let survey = Survey { lo: address, hi: address, low_bits: 0, contiguous: false };
    region(cx, i, &a, &survey, u64::from(bytes), store)
}

/// Performs a lane's write to shared or generic addresses. `from` holds the bytes; `write_bytes` writes them to host
/// memory. The lane is the only active one. `Err` is the handler's return value.
pub fn write_async(
    cx: &mut Context<'_>,
    i: &Ins,
    (lane, space): (usize, StateSpace),
    write: &AsyncWrite,
    from: *const u8,
    write_bytes: impl FnOnce(*mut u8),
) -> Result<(), *const Ins> {
    let unit = if write.way.bulk { 16 } else { u64::from(write.bytes) };
    let to = place(cx, i, space, (write.to, write.bytes, unit), true)?;
    let object = place(cx, i, space, (write.object, 8, 8), true)?;
    if [to, object].iter().any(|r| !matches!(r.space, StateSpace::SHARED | StateSpace::REMOTE)) {
        let message = "an asynchronous write, or its mbarrier object, is outside of shared memory".to_owned();
        return Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message));
    }
    if remote::rank(cx, &object) != remote::rank(cx, &to) {
        let message = "an asynchronous write to one block that completes on an mbarrier object of another".to_owned();
        return Err(cx.trap(i, TrapKind::Barrier, 1 << lane, message));
    }
    if cx.launch.sanitize {
        let side = Bulk { space: Space::Shared, offset: write.to - to.origin, bytes: u64::from(write.bytes) };
        let object_offset = write.object - object.origin;
        let refused = if to.space == StateSpace::REMOTE {
            remote::receive(cx, i, lane, &to, (sanitizer::sender(cx, i, lane), side, object_offset, write.way))
        } else {
            sanitizer::receive(cx, i, lane, (side, object_offset, write.way), from)
        };
        if let Some(stopped) = refused {
            return Err(stopped);
        }
    }
    write_bytes(to.at(lane, write.to));
    // SAFETY: the object was checked to lie in shared memory.
    unsafe { mbarrier::complete(cx, i, lane, &object, write.object, write.bytes) }
}
