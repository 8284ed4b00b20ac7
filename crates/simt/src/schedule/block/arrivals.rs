//! Warp arrivals at a block's barriers, and the opening of these barriers.

use std::ptr;

use crate::error::{Trap, TrapKind};
use crate::exec::context::{Arrival, Context};
use crate::exec::findings;
use crate::exec::warp::{CLUSTER_BARRIER, Split, SplitState};
use crate::program::aux;
use crate::program::ins::Ins;
use crate::schedule::block::{Block, Pause};
use crate::schedule::splits::{others_wait_to_go_on, regroup, rejoin, split_off};

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

/// Whether the running path has all lanes of the warp that have not exited, and is not in a call.
#[inline(always)]
pub(super) fn is_whole(cx: &Context<'_>) -> bool {
    cx.stack.is_empty() && cx.frames.is_empty() && cx.mask == cx.alive() && cx.rpc.is_null()
}

/// Returns an error if part of a warp, on the path `last`, arrives at an aligned barrier while other lanes wait to
/// reconverge with it or wait at another barrier. Lanes that only exit do not cause an error.
fn divergence(cx: &Context<'_>, last: usize, resume: *const Ins, id: u32) -> Option<String> {
    let mask = cx.mask;
    let apart = |f: &Split| matches!(f.state, SplitState::Barrier { .. }) && !ptr::eq(f.pc, resume);
    let elsewhere = cx.warp.splits[..last].iter().filter(|f| apart(f)).fold(0, |m, f| m | f.mask);
    if elsewhere != 0 {
        return Some(format!(
            "barrier {id} is reached by lanes {mask:#010x} of a warp while lanes {elsewhere:#010x} wait at another \
             barrier"
        ));
    }
    others_wait_to_go_on(cx).then(|| {
        let missing = cx.alive() & !mask;
        format!("barrier {id} is reached by lanes {mask:#010x} of a warp while lanes {missing:#010x} are elsewhere")
    })
}

impl Block {
    /// Compares an arrival with the first one at its barrier.
    pub(super) fn compare(&mut self, cx: &mut Context<'_>, arrival: Arrival) -> Option<Pause> {
        let trap = self.barriers[(arrival.id & 15) as usize].compare(cx, arrival)?;
        Some(Pause::Trap(Box::new(trap)))
    }

    /// Arrives with all lanes of a warp if they are on one path and not in a call. Otherwise returns false.
    #[inline(always)]
    pub(super) fn arrive_whole(&mut self, cx: &mut Context<'_>, at: usize, id: u32) -> bool {
        if !is_whole(cx) || cx.warp.splits.len() != 1 {
            return false;
        }
        let resume = cx.resume;
        cx.uncount(resume);
        let split = &mut cx.warp.splits[0];
        (split.pc, split.mask, split.state) = (resume, cx.mask, SplitState::Barrier { id });
        split.rpc = ptr::null();
        self.arrive_at(cx, id, at, cx.lanes);
        true
    }

    /// Records that all lanes of a warp wait at a barrier.
    #[inline(always)]
    pub(super) fn arrive_at(&mut self, cx: &mut Context<'_>, id: u32, at: usize, lanes: u32) {
        cx.counters.barriers += 1;
        let barrier = &mut self.barriers[(id & 15) as usize];
        barrier.votes += lanes;
        barrier.expected = None;
        barrier.threads += 32;
        barrier.waiting.push(at);
        self.armed |= 1 << (id & 15);
    }

    pub(super) fn arrive(&mut self, cx: &mut Context<'_>, at: usize, last: usize, arrival: Arrival) -> Option<Pause> {
        let resume = cx.resume;
        let barrier = &mut self.barriers[(arrival.id & 15) as usize];
        if arrival.votes != 0 {
            barrier.yes_votes += arrival.votes.count_ones();
        }
        barrier.votes += cx.lanes;
        barrier.expected = arrival.threads;
        if !arrival.waits {
            cx.counters.barriers += 1;
            barrier.threads += 32;
            if cx.launch.sanitize {
                cx.shadow.arrive_at_barrier(arrival.id, cx.warp.index, cx.mask);
            }
            cx.leave(last, resume, SplitState::Ready);
            return None;
        }
        let waits = SplitState::Barrier { id: arrival.id };
        let whole = cx.alive();
        if cx.mask == whole {
            cx.leave(last, resume, waits);
        } else {
            // SAFETY: a barrier's resume point is its successor, so the instruction before it is the barrier.
            let i = unsafe { &*resume.sub(1) };
            if cx.launch.sanitize
                && i.has(aux::Barrier::ALIGNED)
                && let Some(message) = divergence(cx, last, resume, arrival.id)
            {
                let mask = cx.mask;
                return Some(Pause::Trap(Box::new(cx.describe(i.line, TrapKind::Barrier, mask, message))));
            }
            split_off(cx, last, resume, waits);
            regroup(cx);
        }
        if cx.mask == whole {
            self.count_warp(cx, at, arrival.id);
        } else {
            self.arrive_if_all_wait(cx, at);
        }
        None
    }

    /// Counts a warp's arrival once all its lanes that have not exited wait at the same block barrier. Since Volta, a
    /// barrier does not wait for exited lanes.
    pub(super) fn arrive_if_all_wait(&mut self, cx: &mut Context<'_>, at: usize) {
        let Some(SplitState::Barrier { id }) = cx.warp.splits.first().map(|split| split.state) else { return };
        if id != CLUSTER_BARRIER && cx.warp.splits.iter().all(|split| split.state == SplitState::Barrier { id }) {
            self.count_warp(cx, at, id);
        }
    }

    fn count_warp(&mut self, cx: &mut Context<'_>, at: usize, id: u32) {
        cx.counters.barriers += 1;
        let barrier = &mut self.barriers[(id & 15) as usize];
        barrier.threads += 32;
        barrier.waiting.push(at);
        self.armed |= 1 << (id & 15);
    }

    /// Opens every barrier at which all expected threads have arrived.
    pub(super) fn open_barriers(&mut self, cx: &mut Context<'_>) {
        let mut armed = self.armed;
        while armed != 0 {
            let id = armed.trailing_zeros() as usize;
            armed &= armed - 1;
            let barrier = &self.barriers[id];
            let open = match barrier.expected {
                Some(threads) => barrier.threads >= threads,
                None => barrier.waiting.len() >= self.live,
            };
            if !open {
                continue;
            }
            let barrier = &mut self.barriers[id];
            if barrier.waiting.len() >= self.live {
                cx.shadow.barrier();
            } else if cx.launch.sanitize {
                let lanes = |&at: &usize| (at as u32, self.warps[at].existing & !self.warps[at].exited);
                cx.shadow.open_barrier(id as u32, barrier.waiting.iter().map(lanes));
            }
            let reduced = (barrier.yes_votes, barrier.votes);
            (barrier.threads, barrier.expected, barrier.yes_votes, barrier.votes) = (0, None, 0, 0);
            barrier.first = None;
            let mut waiting = std::mem::take(&mut barrier.waiting);
            for at in waiting.drain(..) {
                let warp = &mut self.warps[at];
                warp.reduced = reduced;
                rejoin(warp, id as u32);
            }
            // The list keeps its storage for the next arrivals.
            self.barriers[id].waiting = waiting;
            self.armed &= !(1 << id);
        }
    }
}
