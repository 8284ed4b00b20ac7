//! Checks plain loads and stores of whole words, line by line. This is the fast path for nearly all requests.
//!
//! Each line receives the accessed words and their lanes. If a line cannot record them in compact form, the whole
//! request is checked again word by word. Lines that were already recorded then see the same lanes access the same
//! words again, which changes nothing.

use crate::sanitize::block::BlockShadow;
use crate::sanitize::compact::{Moment, Words};
use crate::sanitize::lines::Line;
use crate::sanitize::request::{Op, Request, Space, Strength};
use crate::sanitize::table::LineLoad;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{WORDS, each};

/// The words of a request that are in one line.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'p> {
    pub space: Space,
    pub op: Op,
    pub number: u64,
    /// Accessed words, one bit per word.
    pub mask: u32,
    /// Lane that accesses each word, or the last one if several do.
    pub lanes: &'p [u8; WORDS],
    /// Words that more than one lane accesses.
    pub doubled: u32,
    pub warp: u32,
    pub line: u16,
}

/// A run of contiguous words, accessed by contiguous lanes.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub space: Space,
    pub op: Op,
    /// Offset of the first word from the start of the state space.
    pub start: u64,
    pub first: usize,
    pub lanes: usize,
    /// Base-2 logarithm of the number of words that each lane accesses.
    pub shift: u32,
    pub warp: u32,
    pub line: u16,
}

/// Mask of `count` words, starting at `first`.
const fn run(first: usize, count: usize) -> u32 {
    u32::MAX >> (WORDS - count) << first
}

/// Returns the lane that accesses each word of a line, if the line's first accessed word is preceded by `words` words
/// of the request. Each lane accesses `1 << shift` words.
#[inline]
fn lanes_of_run(from: usize, words: usize, first: usize, shift: u32) -> [u8; WORDS] {
    let before = words as u8;
    let lane = |w: u8| (w.wrapping_add(before).wrapping_sub(from as u8) >> shift).wrapping_add(first as u8);
    std::array::from_fn(|w| lane(w as u8))
}

impl BlockShadow {
    /// Records a request if it is plain and cannot conflict. `row` has the lanes' stored values if each lane stores one
    /// word; otherwise `value` is the word that a lane stores.
    pub fn plain(&mut self, r: &Request<'_>, row: Option<&[u32; 32]>, value: impl Fn(usize, usize) -> u32) -> bool {
        if r.strength != Strength::Plain || r.bytes < 4 || r.op == Op::Change {
            return false;
        }
        if r.space == Space::Global {
            self.make_room();
        }
        let first = (r.mask.trailing_zeros() & 31) as usize;
        if r.together && r.op == Op::Load {
            return self.plain_at_one(r, first);
        }
        let unbroken = r.mask == u32::MAX || ((r.mask >> first) + 1).is_power_of_two();
        if r.contiguous && unbroken {
            let lanes = r.mask.count_ones() as usize;
            let shift = (r.bytes / 4).trailing_zeros();
            let &Request { space, op, warp, line, .. } = r;
            return self.plain_run(
                &Run { space, op, start: r.offset(first), first, lanes, shift, warp, line },
                row,
                value,
            );
        }
        // If several lanes store to one word, one of them is last. The lane-by-lane path determines which.
        (r.op == Op::Load || r.is_rising(r.mask)) && self.plain_lanes(r, value)
    }

    fn moment(&self, warp: u32, line: u16) -> (Moment, u32) {
        let moment = self.order.moment(self.epoch, warp);
        (moment, Tag::new(0, 0, warp, line).who())
    }

    /// Records that all lanes load from the same address.
    fn plain_at_one(&mut self, r: &Request<'_>, first: usize) -> bool {
        let (now, base) = self.moment(r.warp, r.line);
        let offset = r.offset(first);
        let mask = run((offset / 4) as usize % WORDS, r.bytes as usize / 4);
        let doubled = if r.mask.is_power_of_two() { 0 } else { mask };
        let words = Words { mask, lanes: &[first as u8; WORDS], doubled, base };
        let Some(line) = self.line(r.space, offset / 128) else { return false };
        line.load_words(now, &words, r.space == Space::Shared)
    }

    /// Reserves space for the lines that one more request may touch.
    #[inline]
    pub fn make_room(&mut self) {
        if self.global.is_full() {
            self.condense();
        }
    }

    /// Records part of a request, unless it may conflict. `row` has the lanes' stored values, one word each.
    #[inline]
    pub fn plain_piece(&mut self, p: &Piece<'_>, row: Option<&[u32; 32]>) -> bool {
        let (now, base) = self.moment(p.warp, p.line);
        let words = Words { mask: p.mask, lanes: p.lanes, doubled: p.doubled, base };
        let Some(line) = self.line(p.space, p.number) else { return false };
        let fill = |values: &mut [u32; WORDS]| {
            for w in each(p.mask) {
                values[w] = row.map_or(0, |row| row[p.lanes[w] as usize & 31]);
            }
        };
        apply(line, (p.op, p.space), now, &words, fill)
    }

    /// Records a request by all lanes for contiguous words, unless it may conflict. `row` has the lanes' stored values,
    /// one word each.
    pub fn plain_row(&mut self, run: &Run, row: Option<&[u32; 32]>) -> bool {
        if run.space == Space::Global {
            self.make_room();
        }
        self.plain_run(run, row, |_, _| 0)
    }

    /// Records accesses to contiguous words, unless they may conflict.
    #[inline]
    fn plain_run(&mut self, r: &Run, row: Option<&[u32; 32]>, value: impl Fn(usize, usize) -> u32) -> bool {
        let (now, base) = self.moment(r.warp, r.line);
        let (each, total) = (1 << r.shift, r.lanes << r.shift);
        let mut done = 0;
        while done < total {
            let at = r.start + 4 * done as u64;
            let from = (at / 4) as usize % WORDS;
            let count = (WORDS - from).min(total - done);
            let line = if r.op == Op::Load && r.space == Space::Global && count == WORDS && r.shift < 3 {
                let base = base + (r.first + (done >> r.shift)) as u32;
                let line_load = LineLoad { epoch: now.epoch, time: now.time, base, shift: r.shift };
                self.global.line_load((at / 128) as u32, line_load)
            } else {
                let Some(line) = self.line(r.space, at / 128) else { return false };
                Some(line)
            };
            if let Some(line) = line {
                let lanes = lanes_of_run(from, done, r.first, r.shift);
                let words = Words { mask: run(from, count), lanes: &lanes, doubled: 0, base };
                let done_so_far = done;
                let fill = |values: &mut [u32; WORDS]| match row {
                    Some(row) if each == 1 => {
                        let start = r.first + done_so_far;
                        values[from..from + count].copy_from_slice(&row[start..start + count]);
                    }
                    _ => {
                        for (k, to) in values.iter_mut().skip(from).take(count).enumerate() {
                            let k = done_so_far + k;
                            *to = value(r.first + k / each, k % each);
                        }
                    }
                };
                if !apply(line, (r.op, r.space), now, &words, fill) {
                    return false;
                }
            }
            done += count;
        }
        true
    }

    /// Records accesses to scattered words, unless they may conflict.
    fn plain_lanes(&mut self, r: &Request<'_>, value: impl Fn(usize, usize) -> u32) -> bool {
        let (now, base) = self.moment(r.warp, r.line);
        let each = r.bytes as usize / 4;
        let mut left = r.mask;
        while left != 0 {
            let number = r.offset(left.trailing_zeros() as usize) / 128;
            let (mut mask, mut doubled, mut lanes, mut stored) = (0, 0, [0; WORDS], [0; WORDS]);
            while left != 0 {
                let lane = left.trailing_zeros() as usize & 31;
                let offset = r.offset(lane);
                if offset / 128 != number {
                    break;
                }
                left &= left - 1;
                // Accesses are aligned to their size, so each lies within one line.
                let from = (offset / 4) as usize % WORDS;
                let bits = run(from, each);
                doubled |= mask & bits;
                mask |= bits;
                for word in 0..each {
                    lanes[(from + word) % WORDS] = lane as u8;
                    if r.op == Op::Store {
                        stored[(from + word) % WORDS] = value(lane, word);
                    }
                }
            }
            let words = Words { mask, lanes: &lanes, doubled, base };
            let Some(line) = self.line(r.space, number) else { return false };
            let fill = |values: &mut [u32; WORDS]| {
                for (w, to) in values.iter_mut().enumerate() {
                    *to = if mask >> w & 1 == 0 { *to } else { stored[w] };
                }
            };
            if !apply(line, (r.op, r.space), now, &words, fill) {
                return false;
            }
        }
        true
    }
}

/// Records the part of a request that is in one line.
#[inline]
fn apply(
    line: &mut Line,
    (op, space): (Op, Space),
    now: Moment,
    words: &Words<'_>,
    fill: impl FnOnce(&mut [u32; WORDS]),
) -> bool {
    match op {
        Op::Load => line.load_words(now, words, space == Space::Shared),
        _ => line.store_words(now, words, fill),
    }
}
