//! Finds the host addresses of a load's or store's bytes, after checking and counting the whole request.
//!
//! All of this is the same for every element type, so it is compiled once per instruction set of the host. Only the
//! copy between memory and registers, in [`load`](super::load) and [`store`](super::store), is compiled per type.

use crate::exec::access::{addresses, enter, poll, region, same_region, split, survey, truncate_constants};
use crate::exec::context::Context;
use crate::exec::elements::{Elements, Pointers};
use crate::exec::{contiguous, traffic, undefined};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::{Ins, Slot};
use crate::program::row::Row;

/// Resolves a request for `bytes` bytes per element. `tried`: the fast path was already tried.
#[inline(always)]
fn resolve<const STORE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
    bytes: u64,
    tried: bool,
    apart: &mut Pointers,
) -> Elements {
    let vector = i.access().elements();
    let slot = if STORE { i.o[0] } else { i.o[4] };
    // A vector's elements come from several slots, so they are not contiguous per slot.
    let whole = !STORE || vector == 1;
    if !tried {
        if whole && let Some(at) = contiguous::place(cx, i, slot, (bytes * u64::from(vector), vector), STORE) {
            return Elements::All(at);
        }
        if vector == 1
            && let Some(found) = near::<STORE>(cx, i, slot, bytes, apart)
        {
            return found;
        }
    }
    if !STORE && let Some(at) = parameter(cx, i, bytes) {
        return Elements::Same(at);
    }
    if let Some(stopped) = enter(cx, i) {
        return Elements::Done(stopped);
    }
    let mut a = addresses(cx, i, slot);
    if !STORE {
        if i.has(Access::CONST) {
            truncate_constants(cx, &mut a);
        }
        poll(cx, i, &a);
    }
    let each = bytes * u64::from(vector);
    let s = survey(cx, &a, each);
    if same_region(cx, i, &a, &s) != cx.mask {
        // SAFETY: the instruction comes from the loader.
        return Elements::Done(unsafe { split(cx, i, &a, &s) });
    }
    let r = match region(cx, i, &a, &s, each, STORE) {
        Ok(r) => r,
        Err(stopped) => return Elements::Done(stopped),
    };
    let fault = if STORE { traffic::store(cx, i, &a, &s, &r, each) } else { traffic::load(cx, i, &a, &s, &r, each) };
    if let Some(stopped) = fault {
        return Elements::Done(if STORE { stopped } else { undefined::defer(cx, i, stopped) });
    }
    if r.stride == 0 && s.contiguous && cx.mask == u32::MAX && whole {
        return Elements::All(r.at(0, s.lo));
    }
    if !STORE && r.stride == 0 && s.lo == s.hi {
        return Elements::Same(r.at(0, s.lo));
    }
    // The address of an inactive lane may be anything.
    let pointer = |k: usize| r.host.wrapping_add(a.0[k].wrapping_sub(r.origin) as usize);
    if r.stride == 0 {
        apart.set(pointer);
    } else {
        apart.set(|k| pointer(k).wrapping_add(k * r.stride));
    }
    Elements::Apart
}

/// Resolves a request for global memory within 16 lines; `None` for any other.
#[inline(always)]
fn near<const STORE: bool>(
    cx: &mut Context<'_>,
    i: &Ins,
    slot: Slot,
    bytes: u64,
    apart: &mut Pointers,
) -> Option<Elements> {
    if bytes == 4
        && let Some(at) = contiguous::place_row(cx, i, slot, STORE)
    {
        return Some(Elements::Active(at));
    }
    let (base, row) = contiguous::place_near(cx, i, slot, bytes, STORE)?;
    let offset = (i.imm as u64).wrapping_sub(GLOBAL_BASE);
    // SAFETY: the slot is a row of 64-bit addresses.
    let a: Row<u64> = unsafe { cx.row(slot) };
    let pointer = |address: u64| base.wrapping_add(address.wrapping_add(offset) as usize);
    if row {
        let first = cx.first_lane();
        return Some(Elements::Active(pointer(a.0[first]).wrapping_sub(first * bytes as usize)));
    }
    apart.set(|k| pointer(a.0[k]));
    Some(Elements::Apart)
}

/// Returns the host address of a kernel parameter at a known offset; `None` for any other request.
#[inline(always)]
fn parameter(cx: &Context<'_>, i: &Ins, bytes: u64) -> Option<*mut u8> {
    let at = i.imm as u64;
    let inside = at & (bytes - 1) == 0 && at.saturating_add(bytes) <= cx.launch.params.len() as u64;
    let known = i.access() == (Access::ABSOLUTE | Access::to(StateSpace::PARAM)).with_elements(1) && inside;
    known.then(|| cx.launch.params.as_ptr().cast_mut().wrapping_add(at as usize))
}

/// Defines the resolvers of loads and stores, for one instruction set.
macro_rules! resolvers {
    ($(#[$feature:meta])* $load:ident, $store:ident) => {
        /// Resolves a load.
        ///
        /// # Safety
        ///
        /// The host must have the instruction set, and the instruction must come from the loader.
        $(#[$feature])*
        #[inline(never)]
        pub unsafe fn $load(cx: &mut Context<'_>, i: &Ins, bytes: u64, tried: bool, apart: &mut Pointers) -> Elements {
            resolve::<false>(cx, i, bytes, tried, apart)
        }

        /// Resolves a store.
        ///
        /// # Safety
        ///
        /// The host must have the instruction set, and the instruction must come from the loader.
        $(#[$feature])*
        #[inline(never)]
        pub unsafe fn $store(cx: &mut Context<'_>, i: &Ins, bytes: u64, tried: bool, apart: &mut Pointers) -> Elements {
            resolve::<true>(cx, i, bytes, tried, apart)
        }
    };
}

resolvers!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    load_avx512,
    store_avx512
);
resolvers!(
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    load_avx2,
    store_avx2
);
resolvers!(load_base, store_base);
