//! What the sanitizer remembers of a block's shared memory: who touched each word since the last barrier.
//!
//! Two warps that touch a word between the same two barriers race, unless both only read, or the accesses are strong
//! (volatile, atomic), or a store leaves the value that already stands there. Any barrier, fence or completed
//! asynchronous wait separates what lies before it from what lies behind it for the whole block, so the check never
//! blames a program that synchronises some warps only; it may miss races there.

use super::access::form;
use super::context::Context;
use super::row::{Ins, LANES, Row};
use crate::sim::error::TrapKind;

/// The last store and the last load of one word. An epoch of zero is "never".
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    store_epoch: u32,
    load_epoch: u32,
    store_warp: u8,
    /// The warp that loaded, or [`SEVERAL`].
    load_warp: u8,
}

const SEVERAL: u8 = u8::MAX;

/// The state of one block.
#[derive(Debug, Default)]
pub struct Monitor {
    words: Vec<Word>,
    epoch: u32,
}

impl Monitor {
    /// Forgets everything; the block has `bytes` of shared memory.
    pub fn reset(&mut self, bytes: usize) {
        self.words.clear();
        self.words.resize(bytes.div_ceil(4), Word::default());
        self.epoch = 1;
    }

    /// Separates what was done from what comes.
    pub const fn barrier(&mut self) {
        self.epoch += 1;
    }
}

/// Words of one lane's access.
fn words(address: u64, origin: u64, bytes: u64) -> std::ops::RangeInclusive<usize> {
    let offset = address - origin;
    (offset / 4) as usize..=((offset + bytes - 1) / 4) as usize
}

/// Checks and records a load of shared memory.
pub fn shared_load(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, origin: u64, bytes: u64) -> Option<*const Ins> {
    let warp = cx.warp.index as u8;
    let strong = i.aux & form::STRONG != 0;
    let epoch = cx.monitor.epoch;
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros();
        lanes &= lanes - 1;
        for w in words(a.0[k as usize], origin, bytes) {
            let Some(word) = cx.monitor.words.get_mut(w) else { continue };
            if word.store_epoch == 0 {
                let message = format!("read of shared memory at offset {:#x} that was never written", w * 4);
                return Some(cx.trap(i, TrapKind::Uninitialised, 1 << k, message));
            }
            if strong {
                continue;
            }
            if word.store_epoch == epoch && word.store_warp != warp && word.store_warp != SEVERAL {
                let other = word.store_warp;
                return Some(race(cx, i, k, w, "read", "written", other));
            }
            word.load_warp = if word.load_epoch == epoch && word.load_warp != warp { SEVERAL } else { warp };
            word.load_epoch = epoch;
        }
    }
    None
}

/// Checks and records a store to shared memory; the bytes are still the old ones.
pub fn shared_store(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, origin: u64, bytes: u64) -> Option<*const Ins> {
    let warp = cx.warp.index as u8;
    let strong = i.aux & form::STRONG != 0;
    let epoch = cx.monitor.epoch;
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros();
        lanes &= lanes - 1;
        for w in words(a.0[k as usize], origin, bytes) {
            let Some(word) = cx.monitor.words.get_mut(w) else { continue };
            // Bytes and halves of a word may belong to different warps: only whole words are held against them.
            let whole = bytes >= 4 && !strong;
            let read_elsewhere = word.load_epoch == epoch && word.load_warp != warp;
            let stored_elsewhere = word.store_epoch == epoch && word.store_warp != warp && word.store_warp != SEVERAL;
            let (load_warp, store_warp) = (word.load_warp, word.store_warp);
            word.store_epoch = epoch;
            // A strong store, or a part of a word, is never held against a later access.
            word.store_warp = if whole { warp } else { SEVERAL };
            if whole && (read_elsewhere || stored_elsewhere) && !leaves_value(cx, i, a, k, bytes) {
                let (done, other) = if read_elsewhere { ("read", load_warp) } else { ("written", store_warp) };
                return Some(race(cx, i, k, w, "written", done, other));
            }
        }
    }
    None
}

/// Whether a store writes what stands there already. Only plain 4- and 8-byte stores are looked at.
fn leaves_value(cx: &Context<'_>, i: &Ins, a: &Row<u64>, lane: u32, bytes: u64) -> bool {
    if i.aux & form::VECTOR != 1 || bytes > 8 {
        return false;
    }
    let (space, base) = super::access::window(a.0[lane as usize]);
    let offset = a.0[lane as usize] - if space == form::SHARED { base } else { 0 };
    // SAFETY: slot 1 of a store is a row of the access's width; the address was checked to lie in shared memory.
    unsafe {
        let old = cx.shared.add(offset as usize);
        let lane = lane as usize % LANES;
        if bytes == 4 {
            old.cast::<u32>().read_unaligned() == *cx.at::<u32>(i.o[1]).add(lane)
        } else {
            old.cast::<u64>().read_unaligned() == *cx.at::<u64>(i.o[1]).add(lane)
        }
    }
}

/// Records that atomics or asynchronous copies have written shared words.
pub fn shared_written(cx: &mut Context<'_>, address: u64, origin: u64, bytes: u64) {
    let epoch = cx.monitor.epoch;
    for w in words(address, origin, bytes) {
        if let Some(word) = cx.monitor.words.get_mut(w) {
            word.store_epoch = epoch;
            word.store_warp = SEVERAL;
        }
    }
}

#[cold]
fn race(cx: &mut Context<'_>, i: &Ins, lane: u32, word: usize, now: &str, before: &str, other: u8) -> *const Ins {
    let who = if other == SEVERAL { "several warps".to_owned() } else { format!("warp {other}") };
    let message = format!(
        "race on shared memory at offset {:#x}: {now} here, {before} by {who} with no barrier between",
        word * 4
    );
    cx.trap(i, TrapKind::Race, 1 << lane, message)
}
