//! `st.async` and `red.async`: writes to the shared memory of a cluster, which complete on an mbarrier object of the
//! target block.
//!
//! As on hardware, these instructions end the launch if there is no cluster, and a block may write to itself.

use crate::error::TrapKind;
use crate::exec::async_write::{AsyncWrite, write_async};
use crate::exec::bulk::{Combine, address, combine};
use crate::exec::cell::Cell;
use crate::exec::context::Context;
use crate::exec::traffic;
use crate::program::aux::{Bulk, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::sanitize::Way;

/// Slots of a store's elements.
const ELEMENTS: [usize; 4] = [1, 3, 4, 5];

struct LaneWrite {
    to: u64,
    object: u64,
    value: [u8; 16],
    bytes: u32,
}

/// Performs the active lanes' writes, one after another. `write` writes a lane's bytes.
fn write_each(
    cx: &mut Context<'_>,
    i: &Ins,
    reduces: bool,
    lane_write: impl Fn(&Context<'_>, usize) -> LaneWrite,
    write: impl Fn(&LaneWrite, *mut u8),
) -> *const Ins {
    if !cx.launch.is_clustered {
        let message = "an asynchronous write to a cluster in a launch without clusters: a GPU ends it with an illegal \
                       instruction";
        return cx.trap(i, TrapKind::Illegal, cx.mask, message.to_owned());
    }
    let space = if i.has(Bulk::GENERIC) { StateSpace::GENERIC } else { StateSpace::SHARED };
    let whole = cx.mask;
    for k in (0..LANES).filter(|&k| whole >> k & 1 == 1) {
        let lane_write = lane_write(cx, k);
        let LaneWrite { to, bytes, object, value } = lane_write;
        let request = AsyncWrite { to, bytes, object, way: Way { reduces, bulk: false } };
        cx.set_mask(1 << k);
        let done = write_async(cx, i, (k, space), &request, value.as_ptr(), |at| write(&lane_write, at));
        cx.set_mask(whole);
        if let Err(stopped) = done {
            return stopped;
        }
    }
    Context::next(i)
}

/// Returns the address that a lane writes to, and the address of its mbarrier object.
///
/// # Safety
///
/// Slots 0 and 2 are rows of addresses, of the widths in `aux`.
unsafe fn addressed(cx: &Context<'_>, i: &Ins, lane: usize) -> (u64, u64) {
    // SAFETY: the caller guarantees that slots 0 and 2 are address rows of these widths.
    unsafe { (address(cx, i, 0, Bulk::NARROW_TO, lane), address(cx, i, 2, Bulk::NARROW_OBJECT, lane)) }
}

/// `st.async`. Slot 0: address; slots 1, 3, 4 and 5: elements; slot 2: address of the mbarrier object. `imm` has the
/// offsets of the addresses.
pub unsafe fn store_async(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let double = i.has(Bulk::DOUBLE);
    let each = if double { 8 } else { 4 };
    let count = ELEMENTS.iter().filter(|&&slot| i.o[slot] != Slot::NONE).count();
    let lane_write = |cx: &Context<'_>, lane: usize| {
        let mut value = [0; 16];
        for (part, slot) in value.chunks_exact_mut(each).zip(ELEMENTS.map(|slot| i.o[slot])).take(count) {
            // SAFETY: the slot of an element is a row of the element's width; a lane is below 32.
            unsafe {
                if double {
                    part.copy_from_slice(&(*cx.at::<u64>(slot).add(lane)).to_le_bytes());
                } else {
                    part.copy_from_slice(&(*cx.at::<u32>(slot).add(lane)).to_le_bytes());
                }
            }
        }
        // SAFETY: the loader assigned the slots.
        let (to, object) = unsafe { addressed(cx, i, lane) };
        LaneWrite { to, object, value, bytes: (each * count) as u32 }
    };
    // SAFETY: the target was checked to have this many bytes.
    let write = |lane_write: &LaneWrite, at: *mut u8| unsafe {
        std::ptr::copy_nonoverlapping(lane_write.value.as_ptr(), at, lane_write.bytes as usize);
    };
    let to = Row(std::array::from_fn(|k| lane_write(cx, k).to));
    let conflicts = traffic::conflicts_of(cx.mask, &to, (each * count) as u64);
    cx.accesses(i).shared_store.count(conflicts);
    write_each(cx, i, false, lane_write, write)
}

/// `red.async`. Slot 0: address; slot 1: operand; slot 2: address of the mbarrier object. `imm` has the offsets of the
/// addresses.
pub unsafe fn reduce_async<M: Cell, F: Fn(M, M, M) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let sizes = (size_of::<M>(), size_of::<M::Register>());
    // SAFETY: same contract as this function.
    unsafe { reduce_each(cx, i, sizes, combine::<M, F>) }
}

/// Performs a reduction of `bytes` bytes for each active lane, from registers of `register` bytes.
///
/// # Safety
///
/// The loader assigned the slots, with slot 1 as a row of such registers; `combine` accepts this many bytes.
unsafe fn reduce_each(
    cx: &mut Context<'_>,
    i: &Ins,
    (bytes, register): (usize, usize),
    combine: Combine,
) -> *const Ins {
    let lane_write = |cx: &Context<'_>, lane: usize| {
        let mut value = [0; 16];
        // SAFETY: slot 1 is a row of registers that begin with their element's bytes; the loader assigned the other
        // slots.
        let (to, object) = unsafe {
            let operand = cx.at::<u8>(i.o[1]).add(lane * register);
            std::ptr::copy_nonoverlapping(operand, value.as_mut_ptr(), bytes);
            addressed(cx, i, lane)
        };
        LaneWrite { to, object, value, bytes: bytes as u32 }
    };
    // SAFETY: the value has this many bytes; the target was checked, including its alignment.
    let write = |lane_write: &LaneWrite, at: *mut u8| unsafe { combine(lane_write.value.as_ptr(), at, bytes) };
    cx.accesses(i).shared_atomics += 1;
    write_each(cx, i, true, lane_write, write)
}
