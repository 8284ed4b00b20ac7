//! Plain loads and stores of whole words, line by line: the way that nearly all requests go.
//!
//! Each line is told which of its words are touched and by which lanes. A line that cannot say in the compact form what
//! that means refuses, and the request is looked at again, word by word, as a whole. Lines that it has touched before
//! do not mind: the same lanes touch the same words.

use super::BlockShadow;
use crate::sanitize::compact::{Moment, Words};
use crate::sanitize::lines::Line;
use crate::sanitize::request::{Op, Request, Space, Strength};
use crate::sanitize::table::LineLoad;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{WORDS, each};

/// The words of a request that lie in one line.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'p> {
    pub space: Space,
    pub op: Op,
    /// Of the line.
    pub number: u64,
    /// A bit a word.
    pub mask: u32,
    /// Which lane touches each of them, or the last that does.
    pub lanes: &'p [u8; WORDS],
    /// Those that several lanes touch.
    pub doubled: u32,
    pub warp: u32,
    pub line: u16,
}

/// Words that follow each other without a gap, touched by lanes that do.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub space: Space,
    pub op: Op,
    /// Where they start, counted from the start of the state space.
    pub start: u64,
    pub first: usize,
    pub lanes: usize,
    /// Each lane touches `1 << shift` words.
    pub shift: u32,
    pub warp: u32,
    pub line: u16,
}

/// The words from `first` on.
const fn run(first: usize, count: usize) -> u32 {
    u32::MAX >> (WORDS - count) << first
}

/// Which lane touches each word of a line, where `words` of a request lie before its first one. Lanes touch
/// `1 << shift` words each.
#[inline]
fn lanes_of_run(from: usize, words: usize, first: usize, shift: u32) -> [u8; WORDS] {
    let before = words as u8;
    let lane = |w: u8| (w.wrapping_add(before).wrapping_sub(from as u8) >> shift).wrapping_add(first as u8);
    std::array::from_fn(|w| lane(w as u8))
}

impl BlockShadow {
    /// Records a request, where it is one of those and may not conflict. `row` is what lanes store, where that is one
    /// word each; otherwise `value` gives what a lane stores to a word of its access.
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
        if r.straight && unbroken {
            let lanes = r.mask.count_ones() as usize;
            let shift = (r.bytes / 4).trailing_zeros();
            let &Request { space, op, warp, line, .. } = r;
            return self.plain_run(
                &Run { space, op, start: r.offset(first), first, lanes, shift, warp, line },
                row,
                value,
            );
        }
        // Of lanes that store to one word one is last: that is for those who look at every lane.
        (r.op == Op::Load || r.is_rising(r.mask)) && self.plain_lanes(r, value)
    }

    fn moment(&self, warp: u32, line: u16) -> (Moment, u32) {
        let moment = Moment { epoch: self.epoch, warp, sync: self.syncs[(warp & 31) as usize] };
        (moment, Tag::new(0, 0, warp, line).who())
    }

    /// All lanes load from one address.
    fn plain_at_one(&mut self, r: &Request<'_>, first: usize) -> bool {
        let (now, base) = self.moment(r.warp, r.line);
        let offset = r.offset(first);
        let mask = run((offset / 4) as usize % WORDS, r.bytes as usize / 4);
        let doubled = if r.mask.is_power_of_two() { 0 } else { mask };
        let words = Words { mask, lanes: &[first as u8; WORDS], doubled, base };
        let Some(line) = self.line(r.space, offset / 128) else { return false };
        line.load_words(now, &words, r.space == Space::Shared)
    }

    /// Makes sure that the lines of one more request can be kept.
    #[inline]
    pub fn make_room(&mut self) {
        if self.global.is_full() {
            self.condense();
        }
    }

    /// Records a part of a request, where it may not conflict. `row` is what lanes store, a word each.
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

    /// Records a request of all lanes side by side, where it may not conflict. `row` is what they store, a word each.
    pub fn plain_row(&mut self, run: &Run, row: Option<&[u32; 32]>) -> bool {
        if run.space == Space::Global {
            self.make_room();
        }
        self.plain_run(run, row, |_, _| 0)
    }

    /// Lanes touch words that follow each other without a gap.
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
                let line_load = LineLoad { epoch: now.epoch, sync: now.sync, base, shift: r.shift };
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

    /// Lanes touch words here and there.
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
                // An access is aligned to its size, so that it never leaves its line.
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

/// Records the part of a request that lies in a line.
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
