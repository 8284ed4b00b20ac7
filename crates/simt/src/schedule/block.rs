//! One block: starts it, schedules its warps, and gives the other blocks of its cluster access to its shared memory.

mod arrivals;
mod rounds;

use std::ptr;
use std::time::{Duration, Instant};

use crate::counters::Counters;
use crate::error::{Trap, TrapKind};
use crate::exec::context::{Arrival, Commits, Context, Event, Peer};
use crate::exec::launch_state::{BlockRows, Deadline, LaunchState};
use crate::exec::prefetch::Strides;
use crate::exec::undefined;
use crate::exec::warp::{CLUSTER_BARRIER, Split, SplitState, Warp};
use crate::memory::Extent;
use crate::printed;
use crate::program::ins::{Area, Bases, Ins};
use crate::sanitize::{BlockShadow, RemoteThread};
use crate::schedule::block::arrivals::Barrier;
use crate::schedule::hang_report;
use crate::schedule::splits::{others_wait, regroup, rejoin, split_off};

/// Number of polls after which a path is scheduled independently if lanes of its warp wait for it.
const SPIN: u32 = 32;
/// Like [`SPIN`], under the fair scheduler, where the path may have to wait for other blocks.
const SPIN_IN_TURN: u32 = 1 << 12;
/// Number of polls after which a block is assumed to wait for another block.
const STUCK: u64 = 1 << 16;
/// Number of time slices per warp that a block gets under the fair scheduler before the next block runs.
const SLICES: u32 = 64;

/// Time between two checks of the time limit.
const CHECK_EVERY: Duration = Duration::from_millis(10);
/// Number of instructions between the first two checks, and maximum between any two. Other intervals are chosen to take
/// about [`CHECK_EVERY`], judging by the previous one: an instruction can take nanoseconds or, if it prints,
/// milliseconds.
const CHECK_INTERVALS: [u64; 2] = [1 << 12, 1 << 20];

/// Why a block stopped.
#[derive(Debug)]
pub enum Pause {
    Done,
    /// The block waits until it may commit.
    Commit,
    /// The block may commit, but seems to wait for a later block.
    Stuck,
    Trap(Box<Trap>),
}

/// 128 bytes of shared memory, aligned to their size.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(128))]
struct Line([u8; 128]);

/// A block that has started.
#[derive(Debug)]
pub struct Block {
    index: [u32; 3],
    /// Blocks of the cluster, while this one runs.
    pub peers: Vec<Peer>,
    /// Whether the block has ended while others of its cluster have not.
    pub ended: bool,
    #[expect(clippy::vec_box, reason = "the warp that runs changes places with another: a pointer, not a struct")]
    warps: Vec<Box<Warp>>,
    shared: Vec<Line>,
    barriers: Box<[Barrier; 16]>,
    /// Bit `k` is set if warps wait at barrier `k`.
    armed: u16,
    /// Whether paths wait at the cluster barrier.
    in_cluster: bool,
    /// Number of warps that have not ended.
    live: usize,
    shadow: BlockShadow,
    rows: Box<BlockRows>,
    cursor: usize,
    issued: u64,
    polls: u64,
    /// Instruction count at which the time limit and the watchdog are checked next.
    check_time_at: u64,
    /// Time of the last check, and number of instructions executed by then.
    checked: Option<(Instant, u64)>,
    pub counters: Counters,
    /// Number of blocks that this one represents.
    weight: u64,
    pub printed: String,
    /// Whether lanes had to be scheduled independently for the block to continue.
    pub independent: bool,
}

// SAFETY: the pointers inside only lead into the kernel's code, which does not change and outlives the launch. Only one
// thread at a time runs a block.
unsafe impl Send for Block {}

impl Block {
    /// Runs until the block ends or must wait.
    pub fn run<'m>(&mut self, launch: &'m LaunchState<'m>, commits: Commits) -> Pause {
        let mut cx = self.context(launch, commits);
        if let Some(counts) = &mut cx.per_instruction {
            std::mem::swap(&mut cx.accesses, &mut counts.accesses);
        }
        let pause = self.schedule(&mut cx);
        if matches!(pause, Pause::Done) {
            cx.shadow.end(&launch.shadow);
        }
        std::mem::swap(&mut cx.shadow, &mut self.shadow);
        std::mem::swap(&mut cx.peers, &mut self.peers);
        if let (Some(all), Some(mut counts)) = (&launch.per_instruction, cx.per_instruction.take()) {
            std::mem::swap(&mut cx.accesses, &mut counts.accesses);
            all.give_back(counts, self.weight);
        }
        cx.accesses.iter().for_each(|counted| self.counters.add(counted));
        self.issued += cx.counters.warp_instructions;
        self.counters.add(&cx.counters);
        printed::append(&mut self.printed, &cx.printed);
        pause
    }

    fn context<'m>(&mut self, launch: &'m LaunchState<'m>, commits: Commits) -> Context<'m> {
        let constants = launch.constants.as_ptr().cast_mut().cast();
        let block = ptr::from_mut(self.rows.as_mut()).cast();
        let mut bases = Bases::NONE;
        bases.set(Area::Constants, constants);
        bases.set(Area::Block, block);
        Context {
            bases,
            mask: 0,
            lanes: 0,
            rpc: ptr::null(),
            fuel: 0,
            launch,
            cached: Extent::default(),
            strides: Strides::default(),
            counters: Counters::default(),
            accesses: vec![Counters::default()],
            per_instruction: launch.per_instruction.as_ref().map(|counts| counts.lend(launch.kernel, self.weight)),
            inner: &launch.kernel.inner,
            warp: Box::default(),
            stack: Vec::new(),
            frames: Vec::new(),
            function: 0,
            registers: 0,
            locals: 0,
            event: Event::None,
            resume: ptr::null(),
            shared: self.shared.as_mut_ptr().cast(),
            shared_start: u64::from(launch.shared_start()),
            shared_end: u64::from(launch.shared_end()),
            peers: std::mem::take(&mut self.peers),
            shadow: std::mem::take(&mut self.shadow),
            block_index: self.index,
            commits,
            printed: String::new(),
            polls: 0,
            progressed: false,
            issued: self.issued,
        }
    }

    /// Returns the index of the warp after `at`.
    #[inline(always)]
    const fn following(&self, at: usize) -> usize {
        // A division would take longer than the rest of the step.
        if at + 1 == self.warps.len() { 0 } else { at + 1 }
    }

    /// Whether any path of the warp can run.
    #[inline(always)]
    fn is_ready(&self, at: usize) -> bool {
        match &self.warps[at].splits[..] {
            [only] => only.state == SplitState::Ready,
            paths => paths.iter().any(|f| f.state == SplitState::Ready),
        }
    }

    fn schedule(&mut self, cx: &mut Context<'_>) -> Pause {
        let count = self.warps.len();
        let (mut idle, mut slices) = (0, 0);
        while idle < count {
            let at = self.cursor;
            let following = self.following(at);
            if !self.is_ready(at) {
                idle += 1;
                self.cursor = following;
                continue;
            }
            idle = 0;
            let (at, following, pause) = if self.can_run_rounds(cx) {
                let pause = self.rounds(cx);
                let at = self.cursor;
                (at, self.following(at), pause)
            } else {
                self.warps[following].prefetch();
                (at, following, self.run_warp(cx, at))
            };
            let executed = cx.counters.warp_instructions + self.issued;
            if executed > self.check_time_at
                && matches!(pause, None | Some(Pause::Commit))
                && let Some(end) = self.overdue(cx, at, executed)
            {
                return end;
            }
            // If the block may have some visible effects, its warps take turns; if it may have none, the same warp is
            // retried.
            if pause.is_none() || cx.commits != Commits::None {
                self.cursor = following;
            }
            if let Some(pause) = pause {
                return pause;
            }
            slices += 1;
            if matches!(cx.commits, Commits::UpTo(_)) && slices >= SLICES * count as u32 {
                return Pause::Commit;
            }
            if cx.commits == Commits::All && self.polls > STUCK {
                // The path does not wait for a lane of its own warp.
                (self.polls, self.independent) = (0, false);
                return Pause::Stuck;
            }
        }
        match self.warps.iter().position(|w| !w.splits.is_empty()) {
            None => Pause::Done,
            // Other blocks of the cluster have not arrived yet.
            Some(_) if self.in_cluster && self.has_arrived() => Pause::Commit,
            Some(at) => {
                let message = self.deadlock();
                self.fault(cx, at, TrapKind::Deadlock, message)
            }
        }
    }

    /// Makes the block check the time after its next instructions.
    pub const fn check_time_soon(&mut self) {
        self.check_time_at = 0;
    }

    /// Ends a block that has executed too many instructions or has run for too long; otherwise schedules the next
    /// check.
    #[cold]
    fn overdue(&mut self, cx: &mut Context<'_>, at: usize, executed: u64) -> Option<Pause> {
        let launch = cx.launch;
        let (kind, what) = if executed > launch.watchdog {
            let limit = launch.watchdog;
            (TrapKind::Watchdog, format!("the block has executed {limit} warp instructions without ending"))
        } else if let Some(deadline) = launch.deadline.filter(Deadline::has_passed) {
            (
                TrapKind::Deadline(deadline.span),
                format!("the block did not end within {} s", deadline.span.as_secs_f64()),
            )
        } else {
            let now = Instant::now();
            let [first, most] = CHECK_INTERVALS;
            let interval = self.checked.map_or(first, |(then, before)| {
                let share = CHECK_EVERY.as_secs_f64() / (now - then).as_secs_f64().max(1e-9);
                ((executed.saturating_sub(before) as f64 * share) as u64).clamp(1, most)
            });
            self.checked = Some((now, executed));
            self.check_time_at = launch.watchdog.min(executed + interval);
            return None;
        };
        let message = format!("{what}: {}", hang_report::describe(launch.kernel, &self.warps, at));
        Some(self.fault(cx, at, kind, message))
    }

    /// Returns a fault of the warp's running path, or else of its first one, at the instruction that the path executes
    /// next or at which it has stopped.
    fn fault(&mut self, cx: &mut Context<'_>, at: usize, kind: TrapKind, message: String) -> Pause {
        std::mem::swap(&mut cx.warp, &mut self.warps[at]);
        let split = hang_report::shown(&cx.warp);
        cx.function = split.map_or(0, |f| f.function);
        let mask = split.map_or(0, |f| f.mask);
        let line = hang_report::position(cx.launch.kernel, split).line;
        let trap = cx.describe(line, kind, mask, message);
        std::mem::swap(&mut cx.warp, &mut self.warps[at]);
        Pause::Trap(Box::new(trap))
    }

    fn deadlock(&self) -> String {
        let mut parts = Vec::new();
        for (id, barrier) in self.barriers.iter().enumerate().filter(|(_, b)| !b.waiting.is_empty()) {
            let expected = barrier.expected.map_or_else(|| "the whole block".to_owned(), |t| format!("{t} threads"));
            parts.push(format!("barrier {id} has {} threads and waits for {expected}", barrier.threads));
        }
        if self.in_cluster {
            let missing: u32 = self.warps.iter().map(|w| (w.existing & !w.exited & !w.arrived).count_ones()).sum();
            parts.push(format!("the cluster barrier waits for {missing} threads of the block"));
        }
        for warp in &self.warps {
            for split in &warp.splits {
                match split.state {
                    SplitState::Barrier { id: CLUSTER_BARRIER } => {}
                    SplitState::Lanes { wanted } => parts.push(format!(
                        "lanes {:#010x} of warp {} wait for lanes {:#010x}, which wait elsewhere",
                        split.mask,
                        warp.index,
                        wanted & !split.mask
                    )),
                    SplitState::Barrier { id } if split.mask != warp.existing & !warp.exited => parts.push(format!(
                        "barrier {id} is reached only by lanes {:#010x} of warp {}",
                        split.mask, warp.index
                    )),
                    _ => {}
                }
            }
        }
        if parts.is_empty() {
            parts.push("no warp of the block can continue".to_owned());
        }
        format!("deadlock: {}", parts.join("; "))
    }

    /// Runs one path of a warp until it stops. `Some` means that the block stops, too.
    fn run_warp(&mut self, cx: &mut Context<'_>, at: usize) -> Option<Pause> {
        std::mem::swap(&mut cx.warp, &mut self.warps[at]);
        let pause = self.run_split(cx, at);
        std::mem::swap(&mut cx.warp, &mut self.warps[at]);
        self.after_run(cx, at, pause.is_none());
        pause
    }

    /// Unless the block stops, opens the barriers at which this warp was the last to arrive.
    #[inline(always)]
    fn after_run(&mut self, cx: &mut Context<'_>, at: usize, goes_on: bool) {
        if !goes_on {
            return;
        }
        self.live -= usize::from(self.warps[at].splits.is_empty());
        self.open_barriers(cx);
        if self.in_cluster && cx.cluster_blocks() == 1 && self.has_arrived() {
            cx.shadow.barrier();
            self.open_cluster_barrier();
        }
    }

    fn run_split(&mut self, cx: &mut Context<'_>, at: usize) -> Option<Pause> {
        let chosen = if let [only] = &cx.warp.splits[..] {
            (only.state == SplitState::Ready).then_some(0)?
        } else {
            let count = cx.warp.splits.len();
            let ready = |&k: &usize| cx.warp.splits[k].state == SplitState::Ready;
            (0..count).map(|k| (cx.warp.current as usize + k) % count).find(ready)?
        };
        // The running split is moved to the end.
        let last = cx.warp.splits.len() - 1;
        cx.warp.current = chosen as u32;
        if chosen != last {
            cx.warp.splits.swap(chosen, last);
        }
        self.go(cx, last);
        self.settle(cx, at, last)
    }

    /// Runs the split `last` of the warp until something stops it.
    #[inline(always)]
    fn go(&mut self, cx: &mut Context<'_>, last: usize) {
        let rows = &raw const cx.launch.warp_rows[cx.warp.index as usize];
        cx.bases.set(Area::Warp, rows.cast_mut().cast());
        cx.fuel = cx.warp.fuel.take().unwrap_or(cx.launch.slice);
        (cx.polls, cx.progressed) = (std::mem::take(&mut cx.warp.spun), false);
        let before = cx.polls;
        let pc = cx.enter(last);
        if cx.per_instruction.is_some() {
            cx.note_arrival(pc);
        }
        dispatch(cx, pc);
        self.polls = if cx.progressed { u64::from(cx.polls) } else { self.polls + u64::from(cx.polls - before) };
    }

    /// Handles the event that stopped `last`, the last split of the warp.
    #[inline(always)]
    fn settle(&mut self, cx: &mut Context<'_>, at: usize, last: usize) -> Option<Pause> {
        match cx.event {
            Event::Sync { id } => {
                cx.event = Event::None;
                let arrival = Arrival { id, threads: None, waits: true, votes: 0 };
                let mismatch = if cx.launch.sanitize { self.compare(cx, arrival) } else { None };
                if mismatch.is_some() || self.arrive_whole(cx, at, id) {
                    return mismatch;
                }
                self.arrive(cx, at, last, arrival)
            }
            _ => self.settle_event(cx, at, last),
        }
    }

    /// Handles all events except the most frequent one.
    #[inline(never)]
    fn settle_event(&mut self, cx: &mut Context<'_>, at: usize, last: usize) -> Option<Pause> {
        let resume = cx.resume;
        match std::mem::replace(&mut cx.event, Event::None) {
            Event::None | Event::Exited | Event::Sync { .. } | Event::Undefined => {
                cx.warp.spare = cx.warp.splits.pop();
                regroup(cx);
                self.arrive_if_all_wait(cx, at);
                None
            }
            Event::Cluster => {
                let waits = SplitState::Barrier { id: CLUSTER_BARRIER };
                self.in_cluster = true;
                if cx.mask == cx.alive() {
                    cx.leave(last, resume, waits);
                } else {
                    split_off(cx, last, resume, waits);
                    regroup(cx);
                }
                None
            }
            Event::Slice => {
                if self.spins(cx) {
                    split_off(cx, last, resume, SplitState::Ready);
                } else {
                    cx.leave(last, resume, SplitState::Ready);
                }
                cx.warp.current = 0;
                None
            }
            Event::Commit => {
                cx.warp.fuel = Some(cx.fuel);
                if self.spins(cx) {
                    split_off(cx, last, resume, SplitState::Ready);
                } else {
                    cx.leave(last, resume, SplitState::Ready);
                }
                Some(Pause::Commit)
            }
            Event::Lanes { wanted } => {
                split_off(cx, last, resume, SplitState::Lanes { wanted });
                regroup(cx);
                None
            }
            Event::Barrier(arrival) => {
                let mismatch = if cx.launch.sanitize { self.compare(cx, arrival) } else { None };
                mismatch.or_else(|| self.arrive(cx, at, last, arrival))
            }
            Event::Trap(trap) => Some(Pause::Trap(trap)),
        }
    }

    /// Whether the running path polls while lanes of its warp wait for it, and should be scheduled independently.
    fn spins(&mut self, cx: &mut Context<'_>) -> bool {
        let in_turn = matches!(cx.commits, Commits::UpTo(_));
        let spins = cx.polls >= if in_turn { SPIN_IN_TURN } else { SPIN } && others_wait(cx);
        self.independent |= spins;
        cx.warp.spun = if in_turn && !spins { cx.polls } else { 0 };
        spins
    }

    /// Returns the block with this index at its first instruction. It represents `weight` blocks and reuses the storage
    /// of `old`.
    pub fn start(
        launch: &LaunchState<'_>,
        (index, weight): ([u32; 3], u64),
        old: Option<Self>,
        workspace: u64,
    ) -> Self {
        let ([gx, gy, _], [x, y, z]) = (launch.grid.map(u64::from), index.map(u64::from));
        let linear = (z * gy + y) * gx + x;
        let threads = launch.block.iter().product::<u32>();
        let count = threads.div_ceil(32) as usize;
        let kernel = launch.kernel;
        let (start, total) = (launch.shared_start(), launch.shared_end());
        let Storage { mut warps, mut shared, mut shadow, mut barriers, rows } =
            old.map_or_else(Storage::default, Self::storage);
        shared.clear();
        shared.resize((total as usize).div_ceil(128).max(1), Line([0; 128]));
        if launch.sanitize {
            let [cx, cy, cz] = std::array::from_fn(|axis| u64::from(index[axis] / launch.cluster[axis]));
            let cluster = (cz * gy + cy) * gx + cx;
            shadow.begin(&launch.shadow, linear as u32, start as usize..total as usize, cluster);
            if launch.cluster != [1; 3] {
                // Blocks of a cluster follow commit order from the start.
                shadow.run_in_turns();
            }
        }
        barriers.iter_mut().for_each(Barrier::reset);
        warps.resize_with(count, Box::default);
        for (at, warp) in warps.iter_mut().enumerate() {
            let lanes = (threads - at as u32 * 32).min(32);
            warp.start(kernel, at as u32, u32::MAX >> (32 - lanes));
        }
        let mut rows = rows.unwrap_or_else(|| Box::new(BlockRows::new(launch, count as u32, workspace)));
        rows.move_to(launch, linear, index);
        let counters = Counters { blocks: 1, warps: count as u64, ..Counters::default() };
        Self {
            index,
            peers: Vec::new(),
            ended: false,
            warps,
            shared,
            barriers,
            armed: 0,
            in_cluster: false,
            live: count,
            shadow,
            rows,
            cursor: 0,
            issued: 0,
            polls: 0,
            check_time_at: if launch.deadline.is_some() { 0 } else { launch.watchdog },
            checked: None,
            counters,
            weight,
            printed: String::new(),
            independent: false,
        }
    }

    /// Returns the storage, for use by another block.
    fn storage(self) -> Storage {
        let Self { warps, shared, shadow, barriers, rows, .. } = self;
        Storage { warps, shared, shadow, barriers, rows: Some(rows) }
    }

    /// Whether all threads that have not exited have arrived at the cluster barrier.
    pub fn has_arrived(&self) -> bool {
        self.warps.iter().all(|warp| warp.existing & !warp.exited & !warp.arrived == 0)
    }

    /// Releases the lanes that have arrived at the cluster barrier.
    fn open_cluster_barrier(&mut self) {
        self.in_cluster = false;
        for warp in &mut self.warps {
            let waiting = |f: &&Split| f.state == SplitState::Barrier { id: CLUSTER_BARRIER };
            let waited = warp.splits.iter().filter(waiting).fold(0, |m, f| m | f.mask);
            (warp.released, warp.arrived) = ((warp.released | warp.arrived) & !waited, 0);
            if waited != 0 {
                rejoin(warp, CLUSTER_BARRIER);
            }
        }
    }

    /// Passes the cluster barrier, at which all blocks of the cluster have arrived.
    pub fn pass_cluster_barrier(&mut self, launch: &LaunchState<'_>) {
        self.shadow.barrier();
        self.shadow.acquire_from_cluster(&launch.shadow);
        self.open_cluster_barrier();
    }

    /// Returns the parts of this block that other blocks of the cluster can access. If this block is the one that
    /// `runs`, it keeps its shadow state.
    pub fn as_peer(&mut self, runs: bool) -> Peer {
        let shadow = if runs { BlockShadow::default() } else { std::mem::take(&mut self.shadow) };
        Peer { shared: self.shared.as_mut_ptr().cast(), ended: self.ended, index: self.index, shadow }
    }

    /// Takes back what [`Self::as_peer`] has lent.
    pub fn take_back(&mut self, peer: &mut Peer) {
        std::mem::swap(&mut self.shadow, &mut peer.shadow);
    }

    /// Returns the thread of another block that last accessed the block's shared memory since the cluster barrier.
    pub fn remote_thread(&self) -> Option<RemoteThread> {
        self.shadow.remote_thread()
    }
}

/// The dispatch loop: executes instructions, starting at `pc`, until a handler stops the path.
fn dispatch(cx: &mut Context<'_>, mut pc: *const Ins) {
    if cx.warp.undefined.is_some() {
        pc = undefined::run(cx, pc);
    }
    loop {
        while !pc.is_null() {
            // SAFETY: `pc` points into the code of a loaded function; the loader matched handlers and operands.
            pc = unsafe { ((*pc).run.handler())(cx, &*pc) };
        }
        if !matches!(cx.event, Event::Undefined) {
            return;
        }
        pc = undefined::begin(cx);
    }
}

/// Storage of a finished block of the same launch.
#[derive(Debug, Default)]
struct Storage {
    #[expect(clippy::vec_box, reason = "the warp that runs changes places with another: a pointer, not a struct")]
    warps: Vec<Box<Warp>>,
    shared: Vec<Line>,
    shadow: BlockShadow,
    barriers: Box<[Barrier; 16]>,
    rows: Option<Box<BlockRows>>,
}
