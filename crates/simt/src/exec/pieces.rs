//! Requests of single words here and there, as the sanitizer takes them: line by line, which words, by which lanes.
//!
//! Only what is plain and of whole words comes here. Whatever a line cannot say in short is refused and
//! goes the long way, which says the same: a line that has been told does not mind to be told again.

use crate::exec::context::Context;
use crate::exec::monitor::words_stored;
use crate::memory::GLOBAL_BASE;
use crate::program::aux::form;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::{Op, Piece, Space};

/// The words of a request that lie in one line.
#[derive(Debug, Clone, Copy)]
struct Part {
    mask: u32,
    lanes: [u8; LANES],
    /// Words that several lanes touch.
    doubled: u32,
}

/// Checks and records a plain load or store of global memory by the active lanes, `bytes` bytes each at the addresses of
/// `a` and the instruction's offset; `straight` says that they lie `bytes` bytes apart from lane to lane. False where it
/// takes the long way to say what is wrong, if anything is.
#[inline(never)]
pub fn near(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, (bytes, straight): (u64, bool), store: bool) -> bool {
    if i.aux & (form::STRONG | form::VOLATILE) != 0 || !matches!(bytes, 4 | 8 | 16) || (store && bytes != 4) {
        return false;
    }
    cx.monitor.make_room();
    let first = (cx.mask.trailing_zeros() & 31) as usize;
    let offset = (i.imm as u64).wrapping_sub(GLOBAL_BASE);
    if straight && bytes == 4 {
        // Device memory begins with a gap: the words of lanes before the first one have numbers too.
        let start = (a.0[first].wrapping_add(offset) >> 2).wrapping_sub(first as u64);
        let from = (start % 32) as u8;
        let words = u64::from(cx.mask) << from;
        return [words as u32, (words >> 32) as u32].into_iter().zip(0_u8..).all(|(mask, line)| {
            let before = (32 * line).wrapping_sub(from);
            let lanes = std::array::from_fn(|w| before.wrapping_add(w as u8));
            mask == 0 || tell(cx, i, start / 32 + u64::from(line), &Part { mask, lanes, doubled: 0 }, store)
        });
    }
    let words = Row(a.0.map(|at| at.wrapping_add(offset) >> 2));
    let together = (0..LANES).fold(0, |apart, k| apart | if cx.on(k) { words.0[k] ^ words.0[first] } else { 0 }) == 0;
    if together && !store {
        // One of the lanes stands for all.
        let mask = u32::MAX >> (32 - bytes / 4) << (words.0[first] % 32);
        let doubled = if cx.mask.is_power_of_two() { 0 } else { mask };
        return tell(cx, i, words.0[first] / 32, &Part { mask, lanes: [first as u8; LANES], doubled }, store);
    }
    if store && !is_rising(cx.mask, &words) {
        // Of lanes that store to one word one is last: that is for those who look at every lane.
        return false;
    }
    match bytes {
        4 => lane_by_lane::<1>(cx, i, &words, store),
        8 => lane_by_lane::<2>(cx, i, &words, store),
        _ => lane_by_lane::<4>(cx, i, &words, store),
    }
}

/// Whether each lane lies behind the one before it.
#[inline(always)]
fn is_rising(mut lanes: u32, words: &Row<u64>) -> bool {
    let mut last = 0;
    let mut rising = true;
    while lanes != 0 {
        let word = words.0[lanes.trailing_zeros() as usize & 31];
        lanes &= lanes - 1;
        // Device memory begins with a gap, so that no word has number zero.
        rising &= word > last;
        last = word;
    }
    rising
}

/// Tells lines of the words that lanes touch, `N` each, as long as lanes stay in one.
#[inline(always)]
fn lane_by_lane<const N: usize>(cx: &mut Context<'_>, i: &Ins, words: &Row<u64>, store: bool) -> bool {
    let mut left = cx.mask;
    while left != 0 {
        let number = words.0[left.trailing_zeros() as usize & 31] / 32;
        let (mut mask, mut doubled, mut lanes) = (0, 0, [0; LANES]);
        while left != 0 {
            let lane = left.trailing_zeros() as usize & 31;
            let word = words.0[lane];
            if word / 32 != number {
                break;
            }
            left &= left - 1;
            // An access is aligned to its size, so that it never leaves its line.
            let bits = u32::MAX >> (32 - N) << (word % 32);
            doubled |= mask & bits;
            mask |= bits;
            for k in 0..N {
                lanes[(word as usize + k) % LANES] = lane as u8;
            }
        }
        if !tell(cx, i, number, &Part { mask, lanes, doubled }, store) {
            return false;
        }
    }
    true
}

/// Tells a line of its words, and memory what was written.
#[inline]
fn tell(cx: &mut Context<'_>, i: &Ins, number: u64, part: &Part, store: bool) -> bool {
    let address = GLOBAL_BASE + number * 128;
    if store {
        cx.launch.memory.mark_words(address, part.mask);
    } else if !cx.launch.memory.has_words(address, part.mask) {
        return false;
    }
    let piece = Piece {
        space: Space::Global,
        op: if store { Op::Store } else { Op::Load },
        number,
        mask: part.mask,
        lanes: &part.lanes,
        doubled: part.doubled,
        warp: cx.warp.index,
        line: cx.launch.shadow.line(cx.function, i.line),
    };
    // A store is of one word a lane here.
    let row = if store { words_stored(cx, i) } else { None };
    cx.monitor.plain_piece(&piece, row)
}
