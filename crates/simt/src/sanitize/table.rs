//! The lines of global memory that one block has touched.
//!
//! Most of them are touched by one instruction that loads all of a line, and never again. Of those a [`Glance`] is
//! kept, which takes 16 bytes; the details, a hundred times as many, are made of it when something else comes along.

use super::compact::{Moment, Words};
use super::lines::{ByLine, Line, scattered};
use super::log::STRETCH;

/// Numbers that the table finds without its index: lines side by side have slots side by side, and stretches of them
/// that lie a power of two apart do not meet.
const SLOTS: usize = 4096;
/// Where the details are of a line that has none.
const NOWHERE: u32 = u32::MAX;

/// All that was done to a line in an epoch: one instruction of one warp has loaded all of it.
#[derive(Debug, Clone, Copy)]
pub struct LineLoad {
    pub epoch: u32,
    /// Synchronisations of the warp in the epoch.
    pub sync: u32,
    /// The thread that loaded word zero, as [`Tag::who`](super::tag::Tag::who) puts it.
    pub base: u32,
    /// Word `w` was loaded by the thread `w >> shift` behind that.
    pub shift: u32,
}

impl LineLoad {
    const fn warp(self) -> u32 {
        self.base >> 5 & 31
    }

    /// Whether nothing of the earlier one matters once this comes: nothing is left of it, or it is the same.
    const fn replaces(self, earlier: Self) -> bool {
        let same = self.base == earlier.base && self.shift == earlier.shift;
        self.epoch != earlier.epoch || self.warp() == earlier.warp() && (same || self.sync != earlier.sync)
    }

    /// Records it in a line that was just begun.
    fn apply_to(self, line: &mut Line) {
        let lanes = std::array::from_fn(|w| (w >> self.shift) as u8);
        let now = Moment { epoch: self.epoch, warp: self.warp(), sync: self.sync };
        line.load_words(now, &Words { mask: u32::MAX, lanes: &lanes, doubled: 0, base: self.base }, false);
    }
}

/// A line that was touched.
#[derive(Debug, Clone, Copy)]
struct Held {
    number: u32,
    /// Which of the lines has its details.
    at: u32,
    /// What there is to say where that is none.
    line_load: LineLoad,
}

/// The slot of a number.
#[inline]
const fn slot_of(number: u32) -> usize {
    number.wrapping_add(scattered(number / STRETCH)) as usize % SLOTS
}

/// What is known of a line.
#[derive(Debug)]
pub enum Known<'t> {
    LineLoad(LineLoad),
    Details(&'t Line),
}

/// The lines of global memory that one block has touched. Storage stays for the next block.
#[derive(Debug, Default)]
pub struct Table {
    held: Vec<Held>,
    /// Where in `held` the numbers are that found their slot taken.
    index: ByLine<u32>,
    /// Where in `held` the first number with these low bits is. Whether that holds for this block, `held` says.
    slots: Vec<u32>,
    lines: Vec<Line>,
    /// How many of the lines are in use.
    used: usize,
    /// Numbers above where they are held, of those that did not come right behind the one before.
    sorted: Vec<u64>,
}

impl Table {
    /// Forgets all lines.
    pub fn clear(&mut self) {
        self.index.clear();
        self.held.clear();
        self.used = 0;
    }

    pub const fn is_full(&self) -> bool {
        self.held.len() >= super::lines::MOST
    }

    /// A line by number with all details, begun in this epoch where it is new.
    #[inline]
    pub fn line(&mut self, number: u32, epoch: u32) -> &mut Line {
        let nothing = LineLoad { epoch: 0, sync: 0, base: 0, shift: 0 };
        let at = self.find(number).unwrap_or_else(|slot| self.add(number, slot, nothing));
        if self.held[at].at == NOWHERE {
            self.detail(at, epoch);
        }
        &mut self.lines[self.held[at].at as usize]
    }

    /// Records that a line was loaded as a whole. Gives the line, and has recorded nothing, where more is known of it
    /// than a glance.
    #[inline]
    pub fn line_load(&mut self, number: u32, line_load: LineLoad) -> Option<&mut Line> {
        let at = match self.find(number) {
            Ok(at) => at,
            Err(slot) => {
                self.add(number, slot, line_load);
                return None;
            }
        };
        let held = &mut self.held[at];
        if held.at == NOWHERE {
            if line_load.replaces(held.line_load) {
                held.line_load = line_load;
                return None;
            }
            self.detail(at, line_load.epoch);
        }
        Some(&mut self.lines[self.held[at].at as usize])
    }

    /// Where a number is held, or else the slot that it could take; none where another number has that.
    #[inline]
    fn find(&self, number: u32) -> Result<usize, Option<usize>> {
        let slot = slot_of(number);
        let known = self.slots.get(slot).map_or(NOWHERE, |at| *at) as usize;
        match self.held.get(known) {
            Some(held) if held.number == number => Ok(known),
            Some(held) if slot_of(held.number) == slot => self.index.get(&number).map(|at| *at as usize).ok_or(None),
            _ => Err(Some(slot)),
        }
    }

    fn add(&mut self, number: u32, slot: Option<usize>, line_load: LineLoad) -> usize {
        let at = self.held.len();
        self.held.push(Held { number, at: NOWHERE, line_load });
        if let Some(slot) = slot {
            self.slots.resize(SLOTS, NOWHERE);
            self.slots[slot] = at as u32;
        } else {
            self.index.insert(number, at as u32);
        }
        at
    }

    /// Makes the details of a line of which a glance is known, or nothing.
    fn detail(&mut self, at: usize, epoch: u32) {
        match self.lines.get_mut(self.used) {
            Some(line) => line.begin(epoch),
            None => self.lines.push(Line::default()),
        }
        let held = &mut self.held[at];
        if held.line_load.epoch != 0 {
            held.line_load.apply_to(&mut self.lines[self.used]);
        }
        held.at = self.used as u32;
        self.used += 1;
    }

    /// What is known of all lines, with their numbers, by number.
    pub fn sorted(&mut self) -> impl Iterator<Item = (u32, Known<'_>)> {
        // Most lines came one after the other: what is sorted is where such rows begin.
        let mut next = None;
        self.sorted.clear();
        for (held, at) in self.held.iter().zip(0..) {
            if next != Some(held.number) {
                self.sorted.push(u64::from(held.number) << 32 | at);
            }
            next = held.number.checked_add(1);
        }
        self.sorted.sort_unstable();
        let (held, lines) = (&self.held, &self.lines);
        self.sorted.iter().flat_map(move |&place| {
            let row = (place >> 32..).zip(&held[place as u32 as usize..]);
            row.take_while(|(number, held)| *number == u64::from(held.number)).map(move |(_, held)| {
                let known = match held.at {
                    NOWHERE => Known::LineLoad(held.line_load),
                    at => Known::Details(&lines[at as usize]),
                };
                (held.number, known)
            })
        })
    }

    /// Forgets every tag, for epochs that start anew.
    pub fn wipe(&mut self) {
        self.clear();
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests;
