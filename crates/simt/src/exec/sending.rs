//! `st.async` and `red.async`: words that lanes send to shared memory of the cluster, told to a barrier object there.
//!
//! A launch without clusters ends, as it does on the hardware. A block may send to itself, which the hardware takes too.

use crate::error::TrapKind;
use crate::exec::bulk::{Combine, GENERIC, NARROW_OBJECT, NARROW_TO, address, combine};
use crate::exec::cell::Cell;
use crate::exec::context::Context;
use crate::exec::deliver::{Parcel, deliver};
use crate::exec::traffic;
use crate::program::aux::form;
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::sanitize::Way;

/// Bit of `aux`, beside those of a bulk copy: the elements of a store have 64 bits.
pub const DOUBLE: u32 = 1 << 16;

/// The slots of a store's elements.
const ELEMENTS: [usize; 4] = [1, 3, 4, 5];

/// What a lane sends to where.
struct Letter {
    to: u64,
    object: u64,
    value: [u8; 16],
    bytes: u32,
}

/// Sends what each active lane has, one after the other; `land` puts a lane's bytes to where they belong.
fn send_each(
    cx: &mut Context<'_>,
    i: &Ins,
    reduces: bool,
    letter: impl Fn(&Context<'_>, usize) -> Letter,
    land: impl Fn(&Letter, *mut u8),
) -> *const Ins {
    if cx.launch.kernel.cluster.is_none() {
        let message = "bytes are sent through a cluster in a launch without clusters: a GPU ends it with an illegal \
                       instruction";
        return cx.trap(i, TrapKind::Illegal, cx.mask, message.to_owned());
    }
    let space = if i.aux & GENERIC != 0 { form::GENERIC } else { form::SHARED };
    let whole = cx.mask;
    for k in (0..LANES).filter(|&k| whole >> k & 1 == 1) {
        let letter = letter(cx, k);
        let Letter { to, bytes, object, value } = letter;
        let parcel = Parcel { to, bytes, object, way: Way { reduces, bulk: false } };
        cx.set_mask(1 << k);
        let done = deliver(cx, i, (k, space), &parcel, value.as_ptr(), |at| land(&letter, at));
        cx.set_mask(whole);
        if let Err(stopped) = done {
            return stopped;
        }
    }
    Context::next(i)
}

/// The addresses of what a lane sends, and of the object that is told.
///
/// # Safety
/// Slots 0 and 2 are rows of addresses as `aux` says.
unsafe fn addressed(cx: &Context<'_>, i: &Ins, lane: usize) -> (u64, u64) {
    // SAFETY: by the caller's promise.
    unsafe { (address(cx, i, 0, NARROW_TO, lane), address(cx, i, 2, NARROW_OBJECT, lane)) }
}

/// `st.async`: slot 0 is the address, slots 1, 3, 4 and 5 are the elements, slot 2 is the address of the barrier object;
/// `imm` holds the addresses' offsets.
pub unsafe fn store_async(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let double = i.aux & DOUBLE != 0;
    let each = if double { 8 } else { 4 };
    let count = ELEMENTS.iter().filter(|&&slot| i.o[slot] != Slot::NONE).count();
    let letter = |cx: &Context<'_>, lane: usize| {
        let mut value = [0; 16];
        for (part, slot) in value.chunks_exact_mut(each).zip(ELEMENTS.map(|slot| i.o[slot])).take(count) {
            // SAFETY: such a slot is a row of the elements' width; a lane is below 32.
            unsafe {
                if double {
                    part.copy_from_slice(&(*cx.at::<u64>(slot).add(lane)).to_le_bytes());
                } else {
                    part.copy_from_slice(&(*cx.at::<u32>(slot).add(lane)).to_le_bytes());
                }
            }
        }
        // SAFETY: the slots are the loader's.
        let (to, object) = unsafe { addressed(cx, i, lane) };
        Letter { to, object, value, bytes: (each * count) as u32 }
    };
    // SAFETY: the target was checked to have so many bytes.
    let land = |letter: &Letter, at: *mut u8| unsafe {
        std::ptr::copy_nonoverlapping(letter.value.as_ptr(), at, letter.bytes as usize);
    };
    let to = Row(std::array::from_fn(|k| letter(cx, k).to));
    cx.counters.shared_store.requests += 1;
    cx.counters.shared_store.conflicts += traffic::conflicts_of(cx.mask, &to, (each * count) as u64);
    send_each(cx, i, false, letter, land)
}

/// `red.async`: slot 0 is the address, slot 1 the operand, slot 2 the address of the barrier object; `imm` holds the
/// addresses' offsets.
pub unsafe fn reduce_async<M: Cell, F: Fn(M, M, M) -> M + Copy>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let sizes = (size_of::<M>(), size_of::<M::Register>());
    // SAFETY: forwarded from the caller.
    unsafe { reduce_each(cx, i, sizes, combine::<M, F>) }
}

/// Sends the operands of a reduction, `bytes` bytes each of registers of `register` bytes.
///
/// # Safety
/// The slots are the loader's, slot 1 a row of such registers; `combine` takes so many bytes.
unsafe fn reduce_each(
    cx: &mut Context<'_>,
    i: &Ins,
    (bytes, register): (usize, usize),
    combine: Combine,
) -> *const Ins {
    let letter = |cx: &Context<'_>, lane: usize| {
        let mut value = [0; 16];
        // SAFETY: slot 1 is a row of registers, which are no shorter than their elements and begin with their bytes; the
        // other slots are the loader's.
        let (to, object) = unsafe {
            let operand = cx.at::<u8>(i.o[1]).add(lane * register);
            std::ptr::copy_nonoverlapping(operand, value.as_mut_ptr(), bytes);
            addressed(cx, i, lane)
        };
        Letter { to, object, value, bytes: bytes as u32 }
    };
    // SAFETY: the value has so many bytes; the target was checked, and is aligned.
    let land = |letter: &Letter, at: *mut u8| unsafe { combine(letter.value.as_ptr(), at, bytes) };
    cx.counters.shared_atomics += 1;
    send_each(cx, i, true, letter, land)
}
