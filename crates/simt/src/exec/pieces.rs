//! Records requests for scattered words with the sanitizer, line by line, with the lanes that access each word.
//!
//! Only plain accesses to whole words are recorded here. If a line cannot record its part in compact form, the whole
//! request takes the slow path. Recording a part twice does no harm.

use crate::exec::context::Context;
use crate::exec::sanitizer::words_stored;
use crate::memory::GLOBAL_BASE;
use crate::program::aux::Access;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::{Op, Piece, Space};

/// The words of a request that are in one line.
#[derive(Debug, Clone, Copy)]
struct Part {
    mask: u32,
    lanes: [u8; LANES],
    /// Words that more than one lane accesses.
    doubled: u32,
}

/// Checks and records a plain load or store of global memory by the active lanes: `bytes` bytes each, at the addresses
/// in `a` plus the instruction's offset. `contiguous`: neighbouring lanes are `bytes` bytes apart. Returns false if the
/// request must take the slow path, which reports any fault.
#[inline(never)]
pub fn near(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, (bytes, contiguous): (u64, bool), store: bool) -> bool {
    if i.has(Access::STRONG | Access::VOLATILE) || !matches!(bytes, 4 | 8 | 16) || (store && bytes != 4) {
        return false;
    }
    cx.shadow.make_room();
    let first = cx.first_lane();
    let offset = (i.imm as u64).wrapping_sub(GLOBAL_BASE);
    if contiguous && bytes == 4 {
        // Device memory starts with a gap, so even lanes below the first active one get a valid word number.
        let start = (a.0[first].wrapping_add(offset) >> 2).wrapping_sub(first as u64);
        let from = (start % 32) as u8;
        let words = u64::from(cx.mask) << from;
        return [words as u32, (words >> 32) as u32].into_iter().zip(0_u8..).all(|(mask, line)| {
            let before = (32 * line).wrapping_sub(from);
            let lanes = std::array::from_fn(|w| before.wrapping_add(w as u8));
            mask == 0 || record(cx, i, start / 32 + u64::from(line), &Part { mask, lanes, doubled: 0 }, store)
        });
    }
    let words = Row(a.0.map(|at| at.wrapping_add(offset) >> 2));
    let together =
        (0..LANES).fold(0, |apart, k| apart | if cx.is_active(k) { words.0[k] ^ words.0[first] } else { 0 }) == 0;
    if together && !store {
        // One lane stands for all.
        let mask = u32::MAX >> (32 - bytes / 4) << (words.0[first] % 32);
        let doubled = if cx.mask.is_power_of_two() { 0 } else { mask };
        return record(cx, i, words.0[first] / 32, &Part { mask, lanes: [first as u8; LANES], doubled }, store);
    }
    if store && !is_rising(cx.mask, &words) {
        // If several lanes store to one word, only the slow path determines which lane is last.
        return false;
    }
    match bytes {
        4 => lane_by_lane::<1>(cx, i, &words, store),
        8 => lane_by_lane::<2>(cx, i, &words, store),
        _ => lane_by_lane::<4>(cx, i, &words, store),
    }
}

/// Whether addresses increase from lane to lane.
#[inline(always)]
fn is_rising(mut lanes: u32, words: &Row<u64>) -> bool {
    let mut last = 0;
    let mut rising = true;
    while lanes != 0 {
        let word = words.0[lanes.trailing_zeros() as usize & 31];
        lanes &= lanes - 1;
        // Device memory starts with a gap, so no word has number zero.
        rising &= word > last;
        last = word;
    }
    rising
}

/// Records the words that the lanes access, `N` words per lane, line by line.
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
            // Accesses are aligned to their size, so each lies within one line.
            let bits = u32::MAX >> (32 - N) << (word % 32);
            doubled |= mask & bits;
            mask |= bits;
            for k in 0..N {
                lanes[(word as usize + k) % LANES] = lane as u8;
            }
        }
        if !record(cx, i, number, &Part { mask, lanes, doubled }, store) {
            return false;
        }
    }
    true
}

/// Records words of a line, and marks stored words as written.
#[inline]
fn record(cx: &mut Context<'_>, i: &Ins, number: u64, part: &Part, store: bool) -> bool {
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
    // A store that reaches this point writes one word per lane.
    let row = if store { words_stored(cx, i) } else { None };
    cx.shadow.plain_piece(&piece, row)
}
