//! A launch with all that it launches in turn.
//!
//! A grid's blocks run first, then what they have queued in the order of their calls, each with everything below it,
//! then the tail stream. That is one of the orders that CUDA allows, and the same one every time. Nothing of it runs
//! beside its parent: a kernel that polls for what its child writes never ends on it, as it may never end on a GPU.

use std::time::{Duration, Instant};
use std::vec::IntoIter;

use super::error::{Trap, TrapKind};
use super::exec::context::{LaunchState, WarpRows};
use super::exec::device_runtime::{ChildLaunch, Device, GridRuntime, Origin, Queue, Queued, Shape, Transfer, Work};
use super::exec::findings;
use super::exec::grid;
use super::exec::heap::Heap;
use super::exec::program::Kernel;
use super::exec::row::Row;
use super::machine::{LaunchError, LaunchReport, Options};
use super::memory::Memory;
use super::profile::DeviceProfile;
use super::sanitize::GridShadow;

/// Blocks of a launch that fit the device at once, as far as threads and shared memory tell.
pub fn resident(profile: &DeviceProfile, kernel: &Kernel, shape: &Shape) -> u64 {
    let threads = shape.block.iter().product();
    let facts = profile.occupancy(threads, 0, kernel.shared_static + shape.shared);
    u64::from(profile.sm_count) * u64::from(facts.blocks_per_sm)
}

/// What all grids below one launch of the host share.
#[derive(Debug)]
pub struct Tree<'m> {
    pub options: Options,
    pub memory: &'m Memory,
    pub heap: &'m Heap,
    /// Address and size of what cooperative groups find as the workspace of their grid.
    pub workspace: (u64, u64),
    pub device: &'m Device<'m>,
    pub deadline: Option<Deadline>,
}

/// When a launch is to end, with all that it launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    pub at: Instant,
    /// How long after it was set.
    pub span: Duration,
}

impl Deadline {
    pub fn has_passed(&self) -> bool {
        Instant::now() >= self.at
    }
}

/// A grid whose blocks have run, with what it has left to run.
struct Open {
    left: IntoIter<Queued>,
    /// What comes when that has ended; `None` once it has come.
    tail: Option<Vec<Queued>>,
    /// Whether it holds a slot of the launches that there may be.
    slot: bool,
}

impl Tree<'_> {
    /// Runs a kernel and everything that it launches. The report is of all grids together.
    pub fn run(
        &self,
        kernel: &Kernel,
        shape: &Shape,
        params: Vec<u8>,
        cooperative: bool,
    ) -> Result<LaunchReport, LaunchError> {
        let mut report = LaunchReport::default();
        let first = self.grid(kernel, shape, params, cooperative, &mut report).map_err(LaunchError::Trap)?;
        self.descend(first, &mut report).map_err(LaunchError::Trap)?;
        Ok(report)
    }

    /// Runs what a grid has queued, each with everything below it, and its tail stream last. A grid that was launched on
    /// the device keeps its slot until all below it but its tail stream has ended, as on an H100: a recursion in tail
    /// streams has no end but its own.
    fn descend(&self, queue: Queue, report: &mut LaunchReport) -> Result<(), Box<Trap>> {
        // What each grid that has not ended has left to run, from the host's launch downwards.
        let mut open = vec![Open { left: queue.children.into_iter(), tail: Some(queue.tail), slot: false }];
        while let Some(grid) = open.last_mut() {
            let Some(Queued { work, by }) = grid.left.next() else {
                if std::mem::take(&mut grid.slot) {
                    self.device.slots.release();
                }
                match grid.tail.take() {
                    Some(tail) => grid.left = tail.into_iter(),
                    None => drop(open.pop()),
                }
                continue;
            };
            match work {
                Work::Transfer(transfer) => self.transfer(&transfer, by).map_err(|mut trap| {
                    trap.printed.clone_from(&report.printed);
                    trap
                })?,
                Work::Launch(ChildLaunch { kernel, shape, params }) => {
                    let depth = open.len();
                    // The number was a kernel's when the launch was accepted.
                    let Some(kernel) = self.device.kernels.get(&kernel) else { continue };
                    let below = self.grid(kernel, &shape, params, false, report).map_err(|mut trap| {
                        trap.launched_by
                            .get_or_insert_with(|| format!("`{}` at {} (depth {depth})", by.kernel, by.place));
                        trap
                    })?;
                    open.push(Open { left: below.children.into_iter(), tail: Some(below.tail), slot: true });
                }
            }
        }
        Ok(())
    }

    /// Runs the blocks of one grid; what they have queued is left to be run.
    fn grid(
        &self,
        kernel: &Kernel,
        shape: &Shape,
        params: Vec<u8>,
        cooperative: bool,
        report: &mut LaunchReport,
    ) -> Result<Queue, Box<Trap>> {
        let (workspace, bytes) = self.workspace;
        // The workspace is an allocation of that size.
        let _ = self.memory.fill(workspace, bytes, 0);
        let blocks = shape.grid.iter().map(|&n| u64::from(n)).product();
        let launch = LaunchState {
            kernel,
            memory: self.memory,
            heap: self.heap,
            constants: kernel.constants(&params),
            params,
            grid: shape.grid,
            block: shape.block,
            cluster: kernel.cluster.unwrap_or([1; 3]),
            shared_bytes: shape.shared,
            sanitize: self.options.sanitize,
            shadow: GridShadow::new(self.options.sanitize, blocks, kernel.functions.iter().map(|f| f.lines.len())),
            sm_count: self.device.profile.sm_count,
            warp_rows: warp_rows(shape.block),
            local_limit: self.options.stack as usize,
            slice: 4096,
            watchdog: self.options.watchdog,
            deadline: self.deadline,
            runtime: GridRuntime::new(self.device),
        };
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = self.options.threads.unwrap_or_else(cores);
        let resident = resident(self.device.profile, kernel, shape).max(1);
        let done = grid::run(&launch, workers, resident, cooperative, workspace).map_err(|mut trap| {
            trap.printed.insert_str(0, &report.printed);
            trap
        })?;
        report.counters.add(&done.counters);
        report.printed.push_str(&done.printed);
        let notes = findings::verdict(&launch).map_err(|mut trap| {
            trap.printed.clone_from(&report.printed);
            trap
        })?;
        for text in notes {
            note(report, true, || text.clone());
        }
        note(report, done.independent, || {
            format!(
                "kernel `{}` relies on independent thread scheduling: lanes of a warp wait for each other",
                kernel.name
            )
        });
        note(report, done.fair, || {
            format!(
                "kernel `{}` has blocks that wait for later ones: it relies on how many blocks reside at once",
                kernel.name
            )
        });
        Ok(launch.runtime.take(self.memory))
    }

    fn transfer(&self, transfer: &Transfer, by: Origin) -> Result<(), Box<Trap>> {
        let Origin { kernel, place, block, thread } = by;
        transfer.run(self.memory).map_err(|error| {
            Box::new(Trap {
                kernel,
                place,
                block,
                thread: Some(thread),
                kind: TrapKind::OutOfBounds,
                message: format!("a transfer that the kernel queued: {error}"),
                launched_by: None,
                site: None,
                printed: String::new(),
            })
        })
    }
}

/// Adds a note that is not there yet.
fn note(report: &mut LaunchReport, applies: bool, text: impl Fn() -> String) {
    if applies {
        let text = text();
        if !report.notes.contains(&text) {
            report.notes.push(text);
        }
    }
}

/// Thread indices of every warp of a block.
fn warp_rows([x, y, z]: [u32; 3]) -> Vec<WarpRows> {
    (0..(x * y * z).div_ceil(32))
        .map(|warp| {
            let row = |of: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| of(warp * 32 + lane as u32)));
            WarpRows { tid: [row(&|t| t % x), row(&|t| t / x % y), row(&|t| t / x / y)], warp_id: Row([warp; 32]) }
        })
        .collect()
}
