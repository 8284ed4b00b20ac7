//! Counts memory requests, and runs the checks that depend on earlier accesses.

use crate::counters::SharedTraffic;
use crate::error::TrapKind;
use crate::exec::access::{Region, Survey};
use crate::exec::context::Context;
use crate::exec::{findings, footprint, sanitizer};
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::Fault;

/// Counts and checks a load. `Some` is the handler's return value after a fault.
#[inline(always)]
pub fn load(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    match r.space {
        StateSpace::GLOBAL => {
            // A load that must be retried is not counted yet.
            if cx.launch.sanitize {
                if reads_unwritten(cx, a, s, bytes) {
                    return Some(uninitialised(cx, i, a, bytes));
                }
                if let fault @ Some(_) = sanitizer::load(cx, i, a, s, r, bytes) {
                    return fault;
                }
            }
            let mask = cx.mask;
            footprint::count(&mut cx.accesses(i).global_load, mask, a, s, bytes);
        }
        StateSpace::SHARED | StateSpace::REMOTE => {
            if cx.launch.sanitize
                && let fault @ Some(_) = sanitizer::load(cx, i, a, s, r, bytes)
            {
                return fault;
            }
            let (mask, conflicts) = (cx.mask, conflicts(cx, a, s, bytes));
            cx.accesses(i).shared_load.count(conflicts);
            if cx.per_instruction.is_some() && !is_free(s) && bytes <= 8 {
                widen(&mut cx.accesses(i).shared_load, mask, a);
            }
        }
        StateSpace::LOCAL if !i.has(Access::FRAME) => {
            if cx.launch.sanitize
                && let fault @ Some(_) = sanitizer::local_load(cx, i, a, s, r, bytes)
            {
                return fault;
            }
            cx.accesses(i).local_load_requests += 1;
        }
        _ => {}
    }
    None
}

/// Counts and checks a store. `Some` is the handler's return value after a fault.
#[inline(always)]
pub fn store(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    match r.space {
        StateSpace::GLOBAL => {
            let mask = cx.mask;
            footprint::count(&mut cx.accesses(i).global_store, mask, a, s, bytes);
            if cx.launch.sanitize {
                note_written(cx, a, s, bytes);
                return sanitizer::store(cx, i, a, s, r, bytes);
            }
        }
        StateSpace::SHARED | StateSpace::REMOTE => {
            let (mask, conflicts) = (cx.mask, conflicts(cx, a, s, bytes));
            cx.accesses(i).shared_store.count(conflicts);
            if cx.per_instruction.is_some() && !is_free(s) && bytes <= 8 {
                widen(&mut cx.accesses(i).shared_store, mask, a);
            }
            if cx.launch.sanitize {
                return sanitizer::store(cx, i, a, s, r, bytes);
            }
        }
        StateSpace::LOCAL => {
            cx.accesses(i).local_store_requests += u64::from(!i.has(Access::FRAME));
            if cx.launch.sanitize {
                sanitizer::local_store(cx, a, s, r, bytes);
            }
        }
        _ => {}
    }
    None
}

/// Returns the number of extra passes, summed over the groups of lanes that shared memory serves at once (128 bytes).
#[inline(always)]
fn conflicts(cx: &Context<'_>, a: &Row<u64>, s: &Survey, bytes: u64) -> u64 {
    if is_free(s) {
        return 0;
    }
    conflicts_of(cx.mask, a, bytes)
}

/// Whether the lanes access adjacent words or all the same word.
#[inline(always)]
const fn is_free(s: &Survey) -> bool {
    s.contiguous || s.lo == s.hi
}

/// Counts the conflicts of an access as if each lane accessed the 8 or the 16 bytes around its address.
#[inline(never)]
fn widen(traffic: &mut SharedTraffic, mask: u32, a: &Row<u64>) {
    for (sum, shift) in traffic.wide_conflicts.iter_mut().zip([3, 4]) {
        *sum += aligned_conflicts(mask, a, shift);
    }
}

/// Counts bank conflicts of aligned accesses of `1 << shift` bytes (8 or 16) that contain the given addresses.
fn aligned_conflicts(mask: u32, a: &Row<u64>, shift: u32) -> u64 {
    let group = 128_usize >> shift;
    let mut extra = 0;
    for first in (0..LANES).step_by(group) {
        let (mut depth, mut worst) = ([0_u64; 16], 1);
        let lanes = || (first..first + group).filter(|k| mask >> k & 1 == 1);
        for k in lanes() {
            let word = a.0[k] >> shift;
            if !lanes().take_while(|before| *before < k).any(|before| a.0[before] >> shift == word) {
                let bank = &mut depth[word as usize % group];
                *bank += 1;
                worst = worst.max(*bank);
            }
        }
        extra += worst - 1;
    }
    extra
}

/// Counts bank conflicts for arbitrary addresses. There are 32 banks of 4 bytes; lanes that read the same word share a
/// pass.
#[inline(never)]
pub fn conflicts_of(mask: u32, a: &Row<u64>, bytes: u64) -> u64 {
    let words = (bytes / 4).max(1) as usize;
    let group = LANES / words;
    let mut extra = 0;
    for g in 0..words {
        let lanes = mask & (u32::MAX >> (32 - group) << (g * group));
        let mut heads = [u8::MAX; 32];
        let mut depth = [0_u8; 32];
        let mut seen = [(0_u64, u8::MAX); LANES * 4];
        let (mut n, mut worst) = (0_usize, 1_u8);
        let mut left = lanes;
        while left != 0 {
            let k = left.trailing_zeros() as usize;
            left &= left - 1;
            for w in 0..words as u64 {
                let word = a.0[k] / 4 + w;
                let bank = (word % 32) as usize;
                let mut at = heads[bank];
                while at != u8::MAX && seen[at as usize].0 != word {
                    at = seen[at as usize].1;
                }
                if at == u8::MAX {
                    seen[n] = (word, heads[bank]);
                    heads[bank] = n as u8;
                    n += 1;
                    depth[bank] += 1;
                    worst = worst.max(depth[bank]);
                }
            }
        }
        extra += u64::from(worst - 1);
    }
    extra
}

#[inline(always)]
fn written(cx: &Context<'_>, a: &Row<u64>, s: &Survey, bytes: u64) -> bool {
    let memory = cx.launch.memory;
    if s.contiguous && cx.mask == u32::MAX {
        return memory.is_written(s.lo, bytes * LANES as u64);
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        if !memory.is_written(a.0[k], bytes) {
            return false;
        }
    }
    true
}

/// Whether active lanes read global memory that was never written, if such reads are reported.
#[inline(always)]
pub fn reads_unwritten(cx: &Context<'_>, a: &Row<u64>, s: &Survey, bytes: u64) -> bool {
    !written(cx, a, s, bytes) && cx.shadow.ignored().reports(Fault::Unwritten)
}

#[inline(always)]
pub fn note_written(cx: &Context<'_>, a: &Row<u64>, s: &Survey, bytes: u64) {
    let memory = cx.launch.memory;
    if s.contiguous && cx.mask == u32::MAX {
        memory.mark_written(s.lo, bytes * LANES as u64);
        return;
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        memory.mark_written(a.0[k], bytes);
    }
}

/// Ends the launch because active lanes read bytes that were never written.
#[cold]
pub fn uninitialised(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, bytes: u64) -> *const Ins {
    let memory = cx.launch.memory;
    let bad = |k: &usize| cx.mask >> k & 1 == 1 && !memory.is_written(a.0[*k], bytes);
    let lane = (0..LANES).find(bad).unwrap_or(0);
    let address = a.0[lane];
    let unwritten = (address..address + bytes).find(|&at| !memory.is_written(at, 1)).unwrap_or(address);
    let site = findings::site_of(cx.launch, StateSpace::GLOBAL, unwritten);
    let message = format!("read of {bytes} bytes at {site}, which was never written");
    let stopped = cx.trap(i, TrapKind::Uninitialised, 1 << lane, message);
    cx.locate_trap(site);
    stopped
}
