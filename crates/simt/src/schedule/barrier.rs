//! A block barrier: its arrivals, and whether they agree.

use crate::error::{Trap, TrapKind};
use crate::exec::context::{Arrival, Context};
use crate::exec::findings;

/// Arrivals at one barrier since it last opened.
#[derive(Debug, Default)]
pub struct Barrier {
    pub threads: u32,
    pub expected: Option<u32>,
    pub waiting: Vec<usize>,
    pub yes_votes: u32,
    pub votes: u32,
    pub first: Option<Arrived>,
}

/// An arrival, as recorded for the sanitizer.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    line: u16,
    warp: u32,
    lane: u32,
    threads: Option<u32>,
}

impl Barrier {
    /// Resets the barrier but keeps its storage.
    pub fn reset(&mut self) {
        self.waiting.clear();
        *self = Self { waiting: std::mem::take(&mut self.waiting), ..Self::default() };
    }

    /// Compares an arrival with the first one at the same barrier. Both must have the same thread count, and should be
    /// at the same line.
    pub fn compare(&mut self, cx: &mut Context<'_>, arrival: Arrival) -> Option<Trap> {
        // SAFETY: a barrier's resume point is its successor, so the instruction before it is the barrier.
        let i = unsafe { &*cx.resume.sub(1) };
        let line = cx.launch.shadow.line(cx.function, i.line);
        let lane = cx.mask.trailing_zeros() & 31;
        let whole = cx.launch.block.iter().product::<u32>().next_multiple_of(32);
        let now = Arrived { line, warp: cx.warp.index, lane, threads: arrival.threads.filter(|&t| t != whole) };
        let first = *self.first.get_or_insert(now);
        if first.threads != now.threads {
            let count = |threads: Option<u32>| threads.unwrap_or(whole);
            let place = findings::place(cx.launch, first.line);
            let (id, mine, theirs) = (arrival.id, count(now.threads), count(first.threads));
            let message = format!("barrier {id} waits for {mine} threads here, but for {theirs} at {place}");
            return Some(cx.describe(i.line, TrapKind::Barrier, cx.mask, message));
        }
        if arrival.waits && now.threads.is_none() && first.line != line {
            cx.shadow.note_places((first.warp, first.lane, first.line), (now.warp, lane, line));
        }
        None
    }
}
