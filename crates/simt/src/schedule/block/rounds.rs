//! Rounds: each warp of a block runs once, from one barrier to the next.
//!
//! Nearly all blocks run like this, and it needs no state per warp: no search for a ready warp, and no list of waiting
//! ones. A warp that stops at anything other than the others' barrier ends the rounds, and the scheduler continues from
//! that point.

use std::ptr;

use crate::exec::context::{Arrival, Commits, Context, Event};
use crate::exec::warp::SplitState;
use crate::schedule::block::arrivals::is_whole;
use crate::schedule::block::{Block, Pause};

impl Block {
    /// Whether the warps can run in rounds, starting with the first one: each has a single path, which is ready. Not
    /// used under the fair scheduler, which stops more often.
    pub(super) fn can_run_rounds(&self, cx: &Context<'_>) -> bool {
        let free =
            self.cursor == 0 && self.armed == 0 && cx.peers.is_empty() && !matches!(cx.commits, Commits::UpTo(_));
        free && self.warps.iter().all(|warp| matches!(&warp.splits[..], [only] if only.state == SplitState::Ready))
    }

    /// Runs rounds until the time must be checked or a warp stops elsewhere. In the second case, the cursor points at
    /// that warp.
    pub(super) fn rounds(&mut self, cx: &mut Context<'_>) -> Option<Pause> {
        let count = self.warps.len();
        while cx.counters.warp_instructions + self.issued <= self.check_time_at {
            // Barrier at which the warps of this round have arrived so far.
            let mut met = None;
            for at in 0..count {
                self.warps[self.following(at)].prefetch();
                std::mem::swap(&mut cx.warp, &mut self.warps[at]);
                self.go(cx, 0);
                if let Some(id) = arrived(cx)
                    && *met.get_or_insert(id) == id
                {
                    cx.event = Event::None;
                    let arrival = Arrival { id, threads: None, waits: true, votes: 0 };
                    let mismatch = if cx.launch.sanitize { self.compare(cx, arrival) } else { None };
                    cx.uncount(cx.resume);
                    let (resume, mask) = (cx.resume, cx.mask);
                    let path = &mut cx.warp.splits[0];
                    (path.pc, path.mask, path.rpc) = (resume, mask, ptr::null());
                    std::mem::swap(&mut cx.warp, &mut self.warps[at]);
                    if mismatch.is_some() {
                        self.cursor = at;
                        return mismatch;
                    }
                    continue;
                }
                if let Some(id) = met {
                    for earlier in 0..at {
                        let path = &mut self.warps[earlier].splits[0];
                        path.state = SplitState::Barrier { id };
                        let lanes = path.mask.count_ones();
                        self.arrive_at(cx, id, earlier, lanes);
                    }
                }
                self.cursor = at;
                let pause = self.settle(cx, at, 0);
                std::mem::swap(&mut cx.warp, &mut self.warps[at]);
                self.after_run(cx, at, pause.is_none());
                return pause;
            }
            cx.counters.barriers += count as u64;
            cx.shadow.barrier();
            if let Some(id) = met {
                self.barriers[(id & 15) as usize].reset();
            }
        }
        self.cursor = count - 1;
        None
    }
}

/// Returns the barrier at which the warp has stopped with all its lanes, on one path and not in a call.
#[inline(always)]
fn arrived(cx: &Context<'_>) -> Option<u32> {
    let Event::Sync { id } = cx.event else { return None };
    is_whole(cx).then_some(id)
}
