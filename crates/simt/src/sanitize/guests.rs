//! Accesses by other blocks of the cluster to a block's shared memory.
//!
//! The two sides are ordered where the block has told (a fence, its arrival at the barrier of the cluster or at a
//! barrier object elsewhere) after what it did, and where it has heard (that barrier, a wait for one of its own barrier
//! objects, a polling load) of what others did. Atomics by others race with the block's plain stores alone.

use std::collections::HashMap;

use super::board::Board;
use super::lines::Line;
use super::races::{Fault, Hazard, Op};
use super::tag::Tag;
use super::watch::{Space, Watch};
use super::when::When;

/// A thread of another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visitor {
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// The thread's number in its block.
    pub thread: u32,
    pub line: u16,
}

/// Who did something before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A thread of the block itself.
    Own(Tag),
    Visitor(Visitor),
}

/// Why another block may not do what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clash {
    pub fault: Fault,
    /// In the block's shared memory.
    pub offset: u64,
    pub before: Op,
    pub who: Who,
}

/// What others did to a line since the block heard of them last. Masks have a bit a byte.
#[derive(Debug, Clone, Copy)]
struct Guest {
    loads: u128,
    stores: u128,
    loader: Visitor,
    storer: Visitor,
}

/// What is known of other blocks' accesses.
#[derive(Debug, Default)]
pub struct Guests {
    lines: HashMap<u64, Guest>,
    last: Option<Visitor>,
    /// When the block told of all epochs before one, the latest last.
    told: Vec<(u64, u32)>,
    /// Epochs before this one are taken to be told at any time.
    floor: u32,
    /// When the block heard of others last.
    heard: u64,
    met: bool,
}

/// Times that a block has told which are remembered.
const TOLD: usize = 64;

impl Guests {
    /// Forgets everything; the present epoch is the first one.
    pub fn begin(&mut self, epoch: u32) {
        self.lines.clear();
        self.told.clear();
        (self.last, self.floor, self.heard, self.met) = (None, epoch, 0, false);
    }

    /// Epochs start anew: what the earlier ones did is taken to be told.
    pub fn wrap(&mut self) {
        self.told.clear();
        self.floor = 1;
    }

    fn tell(&mut self, time: u64, epoch: u32) {
        if self.told.last().is_some_and(|&(_, told)| told == epoch) {
            return;
        }
        if self.told.len() == TOLD {
            self.floor = self.told.remove(0).1;
        }
        self.told.push((time, epoch));
    }

    /// The first epoch of which somebody who has last heard at this time does not know.
    fn unknown_to(&self, heard: u64) -> u32 {
        let known = self.told.iter().rev().find(|(time, _)| *time < heard);
        known.map_or(self.floor, |&(_, epoch)| epoch)
    }
}

impl Watch {
    /// Checks and records an access by another block, which has last heard at a time, to bytes that lie in one line.
    pub fn visit(&mut self, op: Op, offset: u64, bytes: u32, (by, heard): (Visitor, u64)) -> Result<(), Clash> {
        let mask = (u128::MAX >> (128 - bytes)) << (offset % 128);
        self.guests.last = Some(by);
        if let Some(clash) = self.foreign_clash(op, offset, mask, (by, heard)) {
            return Err(clash);
        }
        let Some(line) = self.shared.get_mut((offset / 128) as usize) else { return Ok(()) };
        let fresh = Guest { loads: 0, stores: 0, loader: by, storer: by };
        let guest = self.guests.lines.entry(offset / 128).or_insert(fresh);
        match op {
            Op::Load => {
                (guest.loads, guest.loader) = (guest.loads | mask, by);
                line.lent |= mask;
                return Ok(());
            }
            Op::Store => {
                (guest.stores, guest.storer) = (guest.stores | mask, by);
                line.pending |= mask;
            }
            Op::Change => {}
        }
        line.written |= mask;
        line.unfenced |= (0..32).filter(|w| mask >> (4 * w) & 0xf != 0).fold(0, |words, w| words | 1 << w);
        Ok(())
    }

    /// Notes an access by another block that races with nothing.
    pub const fn visit_quietly(&mut self, by: Visitor) {
        self.guests.last = Some(by);
    }

    /// Who stored to a byte last.
    pub(super) fn who_stored(&self, offset: u64) -> Who {
        let guest = self.guests.lines.get(&(offset / 128)).filter(|g| g.stores >> (offset % 128) & 1 == 1);
        let word = (offset / 4) as usize % 32;
        let own = || self.shared.get((offset / 128) as usize).map_or(Tag::default(), |line| line.storer(word));
        guest.map_or_else(|| Who::Own(own()), |guest| Who::Visitor(guest.storer))
    }

    pub(super) fn foreign_clash(&self, op: Op, offset: u64, mask: u128, (by, heard): (Visitor, u64)) -> Option<Clash> {
        let line = self.shared.get((offset / 128) as usize)?;
        let start = offset / 128 * 128;
        let clash = |fault: Fault, bad: u128, before: Op, who: &dyn Fn(usize) -> Who| {
            let at = (bad & mask).trailing_zeros();
            let word = at as usize / 4 % 32;
            (bad & mask != 0).then(|| Clash { fault, offset: start + u64::from(at), before, who: who(word) })
        };
        let storer = |word: usize| Who::Own(line.storer(word));
        let loader = |word: usize| Who::Own(line.loader(word));
        let unwritten = if op == Op::Load { !line.written } else { 0 };
        let (coming, going) = self.bulk_in(offset / 128);
        // What is combined with what stands there does not mind others that do the same.
        let coming = if op == Op::Change { coming & !line.merging } else { coming };
        let (loaded, stored, changed) = line.since(self.guests.unknown_to(heard));
        let plain = if op == Op::Store { loaded } else { 0 };
        let atomics = if op == Op::Store { changed } else { 0 };
        let read = if op == Op::Load { 0 } else { going };
        let own = clash(Fault::Unwritten, unwritten, Op::Store, &storer)
            .or_else(|| clash(Fault::Pending, coming, Op::Store, &storer))
            .or_else(|| clash(Fault::Lent, read, Op::Load, &loader))
            .or_else(|| clash(Fault::Race, stored, Op::Store, &storer))
            .or_else(|| clash(Fault::Race, atomics, Op::Change, &storer))
            .or_else(|| clash(Fault::Race, plain, Op::Load, &loader));
        own.or_else(|| {
            let guest = self.guests.lines.get(&(offset / 128))?;
            let apart = |other: Visitor, bytes: u128| if other.block == by.block { 0 } else { bytes };
            let loads = if op == Op::Store { apart(guest.loader, guest.loads) } else { 0 };
            clash(Fault::Race, apart(guest.storer, guest.stores), Op::Store, &|_| Who::Visitor(guest.storer))
                .or_else(|| clash(Fault::Race, loads, Op::Load, &|_| Who::Visitor(guest.loader)))
        })
    }

    /// Who of another block did what makes a local access a hazard.
    pub fn guest_of(&self, hazard: &Hazard) -> Option<(Visitor, Op)> {
        if hazard.space != Space::Shared {
            return None;
        }
        let guest = self.guests.lines.get(&(hazard.offset / 128))?;
        let bit = 1 << (hazard.offset % 128);
        match hazard.fault {
            Fault::Pending if guest.stores & bit != 0 => Some((guest.storer, Op::Store)),
            Fault::Lent if guest.loads & bit != 0 => Some((guest.loader, Op::Load)),
            _ => None,
        }
    }

    /// The last visitor of whom nothing says that it has gone.
    pub const fn visitor(&self) -> Option<Visitor> {
        self.guests.last
    }

    /// Whether the blocks of the cluster are known to have begun.
    pub const fn has_met(&self) -> bool {
        self.guests.met
    }

    /// When the block heard of others of its cluster last.
    pub const fn cluster_heard(&self) -> u64 {
        self.guests.heard
    }

    /// Others of the cluster may hear of all that the block did so far.
    pub fn tell_cluster(&mut self, board: &Board) {
        self.guests.tell(board.tick(), self.epoch);
    }

    /// The block hears of all that others of the cluster did.
    pub fn hear_cluster(&mut self, board: &Board) {
        self.guests.met = true;
        self.guests.heard = board.tick();
        self.hear_all(When::At(self.guests.heard));
    }

    /// The blocks of the cluster have met at its barrier.
    pub fn meet(&mut self, board: &Board) {
        self.hear_cluster(board);
    }

    /// Forgets other blocks' accesses.
    pub(super) fn see_off(&mut self) {
        self.guests.last = None;
        for (number, guest) in std::mem::take(&mut self.guests.lines) {
            let (coming, going) = self.bulk_in(number);
            if let Some(line) = self.shared.get_mut(number as usize) {
                line.pending = line.pending & !guest.stores | coming;
                line.lent = line.lent & !guest.loads | going;
            }
        }
    }

    /// Marks again what other blocks did, where bulk copies have left the same lines.
    pub(super) fn mark_guests(&mut self) {
        for (number, guest) in &self.guests.lines {
            if let Some(line) = self.shared.get_mut(*number as usize) {
                line.pending |= guest.stores;
                line.lent |= guest.loads;
            }
        }
    }
}

impl Line {
    /// Who stored to a word last, and who loaded it.
    fn storer(&self, word: usize) -> Tag {
        Tag::of_who(self.brief.stores.who[word])
    }

    fn loader(&self, word: usize) -> Tag {
        Tag::of_who(self.brief.loads.who[word])
    }
}
