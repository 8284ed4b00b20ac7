//! Lines of global memory that one block has accessed.
//!
//! Most lines are loaded as a whole by one instruction and never accessed again. For these, the table keeps a
//! [`LineLoad`] of 16 bytes. Any other access expands it to the full state, which is a hundred times larger.

use crate::sanitize::compact::{Moment, Words};
use crate::sanitize::lines;
use crate::sanitize::lines::{ByLine, Line, scattered};
use crate::sanitize::log::STRETCH;

/// Number of slots of the direct-mapped table in front of the index. Adjacent lines have adjacent slots; ranges of
/// lines that are a power of two apart have different slots.
const SLOTS: usize = 4096;
/// Used in place of an index for a line without full state.
const NOWHERE: u32 = u32::MAX;

/// Accesses to a line in an epoch in which one instruction of one warp has loaded the whole line.
#[derive(Debug, Clone, Copy)]
pub struct LineLoad {
    pub epoch: u32,
    /// Time of the warp in this epoch.
    pub time: u32,
    /// Thread that loaded word zero, encoded like [`Tag::who`](super::tag::Tag::who).
    pub base: u32,
    /// Word `w` was loaded by the thread `w >> shift` after the one that loaded word zero.
    pub shift: u32,
}

impl LineLoad {
    const fn warp(self) -> u32 {
        self.base >> 5 & 31
    }

    /// Whether this load replaces an earlier one, which is either outdated or the same.
    const fn replaces(self, earlier: Self) -> bool {
        let same = self.base == earlier.base && self.shift == earlier.shift;
        self.epoch != earlier.epoch || self.warp() == earlier.warp() && (same || self.time != earlier.time)
    }

    /// Records the load in a new line.
    fn apply_to(self, line: &mut Line) {
        let lanes = std::array::from_fn(|w| (w >> self.shift) as u8);
        let (time, synced) = (self.time, self.time);
        let now = Moment { epoch: self.epoch, warp: self.warp(), time, synced, event: 0, busy: false };
        line.load_words(now, &Words { mask: u32::MAX, lanes: &lanes, doubled: 0, base: self.base }, false);
    }
}

#[derive(Debug, Clone, Copy)]
struct Held {
    number: u32,
    /// Index of the line's full state, if it has one.
    at: u32,
    /// The load of a line that has no full state.
    line_load: LineLoad,
    /// Whether a log has already recorded the load.
    logged: bool,
}

/// Returns the slot of a line's number.
#[inline]
const fn slot_of(number: u32) -> usize {
    number.wrapping_add(scattered(number / STRETCH)) as usize % SLOTS
}

#[derive(Debug)]
pub enum Known<'t> {
    LineLoad(LineLoad),
    Details(&'t Line),
}

/// Lines of global memory that one block has accessed. Storage is reused for the next block.
#[derive(Debug, Default)]
pub struct Table {
    held: Vec<Held>,
    /// Indices in `held` of lines whose slot was already taken.
    index: ByLine<u32>,
    /// Index in `held` of the first line in each slot. Valid for this block only if `held` agrees.
    slots: Vec<u32>,
    lines: Vec<Line>,
    /// Number of entries of `lines` in use.
    used: usize,
    /// Indices in `held` of lines that do not directly follow the previous line.
    sorted: Vec<u64>,
}

impl Table {
    pub fn clear(&mut self) {
        self.index.clear();
        self.held.clear();
        self.used = 0;
    }

    pub const fn is_full(&self) -> bool {
        self.held.len() >= lines::MOST
    }

    /// Returns the full state of a line, which is reset if the line is new.
    #[inline]
    pub fn line(&mut self, number: u32) -> &mut Line {
        let nothing = LineLoad { epoch: 0, time: 0, base: 0, shift: 0 };
        let at = self.find(number).unwrap_or_else(|slot| self.add(number, slot, nothing));
        if self.held[at].at == NOWHERE {
            self.detail(at);
        }
        &mut self.lines[self.held[at].at as usize]
    }

    /// Records that a line was loaded as a whole. If the line has a full state, returns that instead and records
    /// nothing.
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
                (held.line_load, held.logged) = (line_load, false);
                return None;
            }
            self.detail(at);
        }
        Some(&mut self.lines[self.held[at].at as usize])
    }

    /// Returns the index of a line. For a new line, the error is its slot, if free.
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
        self.held.push(Held { number, at: NOWHERE, line_load, logged: false });
        if let Some(slot) = slot {
            self.slots.resize(SLOTS, NOWHERE);
            self.slots[slot] = at as u32;
        } else {
            self.index.insert(number, at as u32);
        }
        at
    }

    /// Creates the full state of a line that has only a load, or nothing.
    fn detail(&mut self, at: usize) {
        match self.lines.get_mut(self.used) {
            Some(line) => line.begin(),
            None => self.lines.push(Line::default()),
        }
        let held = &mut self.held[at];
        if held.line_load.epoch != 0 {
            held.line_load.apply_to(&mut self.lines[self.used]);
            if held.logged {
                self.lines[self.used].forget_logged();
            }
        }
        held.at = self.used as u32;
        self.used += 1;
    }

    /// Iterates over the states of all lines, ordered by number.
    pub fn sorted(&mut self) -> impl Iterator<Item = (u32, Known<'_>)> {
        // Most lines were accessed in order, so only the starts of such runs are sorted.
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
            let row = row.take_while(|(number, held)| *number == u64::from(held.number));
            row.filter(|(_, held)| held.at != NOWHERE || !held.logged).map(move |(_, held)| {
                let known = match held.at {
                    NOWHERE => Known::LineLoad(held.line_load),
                    at => Known::Details(&lines[at as usize]),
                };
                (held.number, known)
            })
        })
    }

    /// Writes the tags of the last accesses to all lines that have a full state.
    pub fn settle(&mut self) {
        self.lines.iter_mut().take(self.used).for_each(Line::settle);
    }

    /// Drops the accesses that a log has by now, except those that checks within the block need.
    pub fn forget_logged(&mut self) {
        self.held.iter_mut().for_each(|held| held.logged = true);
        self.lines.iter_mut().take(self.used).for_each(Line::forget_logged);
    }

    /// Resets all tags when epochs start from one again.
    pub fn wipe(&mut self) {
        self.clear();
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests;
