//! Bytes that are sent to shared memory of the cluster, and told to a barrier object there when they have come.
//!
//! They land at once, which is one of the moments that the program must expect. Bytes of one block and the object of
//! another, and anything that lies in no shared memory, end the launch.

use crate::error::TrapKind;
use crate::exec::access::{Region, Survey, misaligned, region};
use crate::exec::context::Context;
use crate::exec::{mbarrier, monitor, remote};
use crate::program::aux::form;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::{Bulk, Space, Way};

/// What a lane sends.
#[derive(Debug, Clone, Copy)]
pub struct Parcel {
    pub to: u64,
    pub bytes: u32,
    /// Of the barrier object that is told.
    pub object: u64,
    pub way: Way,
}

/// The region of so many bytes from an address on, aligned to `unit`; `Err` is what the handler returns.
pub fn place(
    cx: &mut Context<'_>,
    i: &Ins,
    space: u32,
    (address, bytes, unit): (u64, u32, u64),
    store: bool,
) -> Result<Region, *const Ins> {
    let i = &Ins { aux: space, ..*i };
    let a = Row([address; LANES]);
    if address & (unit - 1) != 0 {
        return Err(misaligned(cx, i, &a, unit));
    }
    let survey = Survey { lo: address, hi: address, low_bits: 0, straight: false };
    region(cx, i, &a, &survey, u64::from(bytes), store)
}

/// Delivers what a lane sends to addresses of a space, shared or generic ones. `from` has the bytes, `land` puts them
/// to where they lie on the host. The lane is the only active one; `Err` is what the handler returns.
pub fn deliver(
    cx: &mut Context<'_>,
    i: &Ins,
    (lane, space): (usize, u32),
    parcel: &Parcel,
    from: *const u8,
    land: impl FnOnce(*mut u8),
) -> Result<(), *const Ins> {
    let unit = if parcel.way.bulk { 16 } else { u64::from(parcel.bytes) };
    let to = place(cx, i, space, (parcel.to, parcel.bytes, unit), true)?;
    let object = place(cx, i, space, (parcel.object, 8, 8), true)?;
    if [to, object].iter().any(|r| !matches!(r.space, form::SHARED | form::REMOTE)) {
        let message = "bytes are sent, or told to a barrier object, outside of shared memory".to_owned();
        return Err(cx.trap(i, TrapKind::OutOfBounds, 1 << lane, message));
    }
    if remote::rank(cx, &object) != remote::rank(cx, &to) {
        let message = "bytes are sent to one block and told to a barrier object of another".to_owned();
        return Err(cx.trap(i, TrapKind::Barrier, 1 << lane, message));
    }
    if cx.launch.sanitize {
        let side = Bulk { space: Space::Shared, offset: parcel.to - to.origin, bytes: u64::from(parcel.bytes) };
        let told = parcel.object - object.origin;
        let refused = if to.space == form::REMOTE {
            remote::receive(cx, i, lane, &to, (monitor::sender(cx, i, lane), side, told, parcel.way))
        } else {
            monitor::receive(cx, i, lane, (side, told, parcel.way), from)
        };
        if let Some(stopped) = refused {
            return Err(stopped);
        }
    }
    land(to.at(lane, parcel.to));
    // SAFETY: the object was checked to lie in shared memory.
    unsafe { mbarrier::complete(cx, i, lane, &object, parcel.object, parcel.bytes) }
}
