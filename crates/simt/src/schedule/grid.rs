//! Distributes the clusters of a grid over the host's cores, with the same result for any number of cores. Without
//! clusters, every block is a cluster of one.
//!
//! Blocks start in order and run in parallel until they reach an access through which blocks can communicate, which was
//! marked when the kernel was lowered. Such a block waits until all earlier ones have ended, which is its place in
//! commit order. Blocks are scheduled fairly instead if the launch is cooperative or has clusters, or if a block that
//! may commit seems to wait for a later block. The resident blocks then take turns, each running up to its next visible
//! effect.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::counters::Counters;
use crate::error::Trap;
use crate::exec::context::Commits;
use crate::exec::launch_state::{Deadline, LaunchState};
use crate::printed;
use crate::schedule::block::Pause;
use crate::schedule::cluster::Cluster;

/// Maximum number of blocks per worker that wait for their place in commit order.
const PARKED: usize = 16;

#[derive(Debug, Default)]
pub struct GridReport {
    pub counters: Counters,
    pub printed: String,
    pub independent: bool,
    pub fair: bool,
}

/// State that the workers share.
#[derive(Debug, Default)]
struct Queue {
    /// Next block to start.
    next: u64,
    /// First block that has not ended.
    first: u64,
    ended: BTreeSet<u64>,
    parked: BTreeMap<u64, Cluster>,
    running: usize,
    /// First block to ignore, with all later ones, because an earlier block has failed.
    limit: u64,
    trap: Option<(u64, Box<Trap>)>,
    /// Whether the fair scheduler takes over.
    fair: bool,
    printed: BTreeMap<u64, String>,
    /// Bytes of output that the queue keeps.
    kept: usize,
    counters: Counters,
    independent: bool,
    free: Vec<Cluster>,
}

struct Grid<'g, 'm> {
    launch: &'m LaunchState<'m>,
    queue: &'g Mutex<Queue>,
    changed: &'g Condvar,
    workers: usize,
    workspace: u64,
}

/// Runs all blocks on `workers` threads. `resident` blocks fit on the device at once.
pub fn run(
    launch: &LaunchState<'_>,
    workers: usize,
    resident: u64,
    cooperative: bool,
    workspace: u64,
) -> Result<GridReport, Box<Trap>> {
    let size = launch.cluster.iter().product::<u32>().max(1);
    let all = launch.grid.iter().map(|&n| u64::from(n)).product::<u64>() / u64::from(size);
    let total = launch.sample.as_ref().map_or(all, |sample| sample.len() as u64);
    let in_turn = cooperative || size > 1;
    let queue = Mutex::new(Queue { limit: total, fair: in_turn, ..Queue::default() });
    let changed = Condvar::new();
    let workers = workers.clamp(1, total.min(1 << 10) as usize);
    let grid = Grid { launch, queue: &queue, changed: &changed, workers, workspace };
    if !in_turn {
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| grid.work());
            }
            grid.work();
        });
    }
    let mut queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    if queue.fair {
        fair(launch, &mut queue, total, (resident / u64::from(size)).max(1), workspace);
    }
    let Queue { trap, counters, printed, independent, fair, .. } = queue;
    match trap {
        Some((linear, mut trap)) => {
            // Which later blocks have run by now depends on the host's timing.
            let before = printed.range(..=linear).map(|(_, text)| text);
            trap.printed = joined(before);
            Err(trap)
        }
        None => Ok(GridReport { counters, printed: joined(printed.values()), independent, fair: fair && !in_turn }),
    }
}

fn joined<'t>(texts: impl Iterator<Item = &'t String>) -> String {
    let mut all = String::new();
    texts.for_each(|text| printed::append(&mut all, text));
    all
}

impl Grid<'_, '_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if queue.first >= queue.limit || (queue.fair && queue.running == 0) {
                self.changed.notify_all();
                return;
            }
            let first = queue.first;
            let job = if queue.fair {
                None
            } else if let Some(block) = queue.parked.remove(&first) {
                Some((first, Some(block)))
            } else if queue.next < queue.limit && queue.parked.len() < PARKED * self.workers {
                queue.next += 1;
                Some((queue.next - 1, None))
            } else {
                None
            };
            let Some((linear, block)) = job else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let mine = if linear == queue.first && self.launch.sample.is_none() { Commits::All } else { Commits::None };
            queue.running += 1;
            let old = if block.is_none() { queue.free.pop() } else { None };
            drop(queue);
            let mut block = block.unwrap_or_else(|| Cluster::start(self.launch, linear, old, self.workspace));
            let pause = block.run(self.launch, mine);
            queue = self.lock();
            queue.running -= 1;
            queue.settle(block, pause);
            if self.workers > 1 {
                self.changed.notify_all();
            }
        }
    }
}

impl Queue {
    fn settle(&mut self, mut block: Cluster, pause: Pause) {
        let linear = block.linear;
        match pause {
            Pause::Done => {
                self.end(&mut block);
                self.ended.insert(linear);
                while self.ended.remove(&self.first) {
                    self.first += 1;
                }
                if self.free.len() < 64 {
                    self.free.push(block);
                }
            }
            Pause::Commit => {
                self.parked.insert(linear, block);
            }
            Pause::Stuck => {
                self.parked.insert(linear, block);
                self.fair = true;
            }
            Pause::Trap(trap) => {
                self.keep(linear, block.printed());
                if linear < self.limit {
                    self.limit = linear;
                    self.trap = Some((linear, trap));
                }
            }
        }
    }

    /// Records the end of a cluster under the fair scheduler.
    fn retire(&mut self, mut block: Cluster) {
        self.end(&mut block);
        self.free.push(block);
    }

    /// Records the fault of a cluster under the fair scheduler.
    fn fail(&mut self, mut block: Cluster, trap: Box<Trap>) {
        self.keep(block.linear, block.printed());
        self.trap = Some((block.linear, trap));
    }

    /// Keeps the output of clusters that will not continue.
    fn keep_printed(&mut self, blocks: VecDeque<Cluster>) {
        for mut block in blocks {
            self.keep(block.linear, block.printed());
        }
    }

    /// Keeps a cluster's output. Drops the output of the last clusters if that of the earlier ones already reaches the
    /// limit.
    fn keep(&mut self, linear: u64, text: String) {
        self.kept += text.len();
        self.kept -= self.printed.insert(linear, text).map_or(0, |before| before.len());
        while let Some(last) = self.printed.last_entry()
            && self.kept - last.get().len() >= printed::MOST
        {
            self.kept -= last.remove().len();
        }
    }

    fn end(&mut self, block: &mut Cluster) {
        self.counters.add_times(&block.counters(), block.weight);
        self.independent |= block.is_independent();
        let printed = block.printed();
        if !printed.is_empty() {
            self.keep(block.linear, printed);
        }
    }
}

/// Schedules clusters fairly: they take turns, each running up to its next visible effect.
///
/// Which clusters have started by now depends on the host's threads. So a cluster that has not started is first brought
/// to the same point as the others, before its first visible effect. A fault that a cluster has already had takes
/// effect only when that cluster would start.
fn fair(launch: &LaunchState<'_>, queue: &mut Queue, total: u64, resident: u64, workspace: u64) {
    let mut failed = queue.trap.take();
    let end = failed.as_ref().map_or(total, |(linear, _)| *linear);
    let mut begun = std::mem::take(&mut queue.parked);
    let mut active: VecDeque<Cluster> = VecDeque::new();
    loop {
        while (active.len() as u64) < resident && queue.trap.is_none() {
            let Some(block) = next_block(launch, queue, &mut begun, end, workspace) else {
                queue.trap = queue.trap.take().or_else(|| failed.take());
                break;
            };
            active.push_back(block);
        }
        if active.is_empty() || queue.trap.is_some() {
            return queue.keep_printed(active);
        }
        if launch.deadline.as_ref().is_some_and(Deadline::has_passed) {
            active.iter_mut().for_each(Cluster::check_time_soon);
        }
        for _ in 0..active.len() {
            let Some(mut block) = active.pop_front() else { break };
            match block.run(launch, Commits::UpTo(1)) {
                Pause::Done => queue.retire(block),
                Pause::Commit | Pause::Stuck => active.push_back(block),
                Pause::Trap(trap) => {
                    queue.keep_printed(active);
                    return queue.fail(block, trap);
                }
            }
        }
    }
}

/// Returns the next cluster that has a visible effect, stopped before the first such effect.
fn next_block(
    launch: &LaunchState<'_>,
    queue: &mut Queue,
    begun: &mut BTreeMap<u64, Cluster>,
    end: u64,
    workspace: u64,
) -> Option<Cluster> {
    if let Some((linear, block)) = begun.pop_first() {
        return (linear < end).then_some(block);
    }
    while queue.next < end {
        let mut block = Cluster::start(launch, queue.next, queue.free.pop(), workspace);
        queue.next += 1;
        if launch.cluster != [1; 3] {
            // Blocks of a cluster follow commit order from the start.
            return Some(block);
        }
        match block.run(launch, Commits::None) {
            Pause::Done => queue.retire(block),
            Pause::Commit | Pause::Stuck => return Some(block),
            Pause::Trap(trap) => {
                queue.fail(block, trap);
                return None;
            }
        }
    }
    None
}
