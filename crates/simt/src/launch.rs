//! Runs a launch from the host, with all launches from its kernels.
//!
//! The blocks of a grid run first. The work that they queued follows, in call order, each launch with its own launches;
//! the tail stream comes last. CUDA allows this order, and it is the same in every run. A child grid never runs at the
//! same time as its parent, so a kernel that polls for a write of its child never ends here, and may not end on a GPU.

use std::vec::IntoIter;

use crate::counters::{Counters, LineCounts};
use crate::error::{SimError, Trap, TrapKind};
use crate::exec::counted::counting;
use crate::exec::findings;
use crate::exec::instruction_counts::GridCounts;
use crate::exec::launch_state::{Deadline, LaunchState, WarpRows};
use crate::image::Images;
use crate::memory::{ABSENT_WORKSPACE, Memory};
use crate::printed;
use crate::profile::DeviceProfile;
use crate::program::Kernel;
use crate::program::row::Row;
use crate::runtime::heap::Heap;
use crate::runtime::transfer::Transfer;
use crate::runtime::{ChildLaunch, Device, GridRuntime, Origin, Queue, Queued, Shape, Work};
use crate::sample;
use crate::sanitize::{GridShadow, Ignored};
use crate::schedule::grid;

/// How a machine runs kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether to detect races, uninitialised reads and misuse of barriers, in addition to out-of-bounds accesses.
    pub sanitize: bool,
    /// Classes of findings that are not reported.
    pub ignored: Ignored,
    /// Number of host threads; `None` for one per core.
    pub threads: Option<usize>,
    /// Maximum number of warp instructions per block. A launch that exceeds it counts as non-terminating.
    pub watchdog: u64,
    /// Size of the heap of device `malloc`, in bytes.
    pub heap: u64,
    /// Limit on the total size of all buffers and variables, in bytes; `None` for the memory of the profile. The host
    /// needs the same amount.
    pub memory: Option<u64>,
    /// Local memory per thread, in bytes, for all nested calls together.
    pub stack: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sanitize: true,
            ignored: Ignored::default(),
            threads: None,
            watchdog: 300_000_000,
            heap: 8 << 20,
            memory: None,
            stack: 256 << 10,
        }
    }
}

/// The result of a launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LaunchReport {
    /// Counts of all grids.
    pub counters: Counters,
    /// Output of `printf`, in block order.
    pub printed: String,
    /// Notes for the reader of a report, one per line.
    pub notes: Vec<String>,
    /// Counts of each executed PTX line, if requested.
    pub lines: Vec<LineCounts>,
    /// How many blocks ran, if not all did. The counts are then estimates.
    pub sampled: Option<Sampled>,
}

/// Size of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// Number of blocks that ran.
    pub ran: u64,
    /// Number of blocks in the grid.
    pub of: u64,
}

/// Why a launch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The launch was refused before any thread ran.
    #[error(transparent)]
    Refused(#[from] SimError),
    /// The kernel trapped. Memory keeps what was written until then.
    #[error("{0}")]
    Trap(Box<Trap>),
}

/// Returns how many blocks of a launch can reside on the device at once, given their threads and shared memory.
pub fn resident(profile: &DeviceProfile, kernel: &Kernel, shape: &Shape) -> u64 {
    let threads = shape.block.iter().product();
    let facts = profile.occupancy(threads, 0, kernel.shared_static + shape.shared);
    u64::from(profile.sm_count) * u64::from(facts.blocks_per_sm)
}

/// State that all grids of one host launch share.
#[derive(Debug)]
pub struct Tree<'m> {
    pub options: Options,
    pub memory: &'m Memory,
    pub heap: &'m Heap,
    pub images: &'m Images,
    /// Address and size of the grid workspace for cooperative groups.
    pub workspace: (u64, u64),
    pub device: &'m Device<'m>,
    pub deadline: Option<Deadline>,
    /// Whether only a sample of the blocks runs.
    pub sampling: bool,
    /// Whether to count per PTX line.
    pub counts_lines: bool,
}

/// A grid whose blocks have run, and its remaining work.
struct Open {
    left: IntoIter<Queued>,
    /// The tail stream, which runs after `left`; `None` once it has started.
    tail: Option<Vec<Queued>>,
    /// Whether the grid occupies a slot of pending launches.
    slot: bool,
}

impl Tree<'_> {
    /// Runs a kernel and everything that it launches. The report covers all these grids.
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

    /// Runs a grid's queued work, each launch with its own launches, and then the tail stream. As on an H100, a grid
    /// launched by a kernel keeps its slot until all its queued work has ended, except the tail stream. So slots do not
    /// limit recursion in tail streams.
    fn descend(&self, queue: Queue, report: &mut LaunchReport) -> Result<(), Box<Trap>> {
        // The remaining work of each unfinished grid, from the host's launch down.
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
                    // The kernel number was checked when the launch was accepted.
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

    /// Runs the blocks of one grid and returns their queued work.
    fn grid(
        &self,
        kernel: &Kernel,
        shape: &Shape,
        params: Vec<u8>,
        cooperative: bool,
        report: &mut LaunchReport,
    ) -> Result<Queue, Box<Trap>> {
        let counted = self.counts_lines.then(|| counting(kernel));
        let kernel = counted.as_ref().unwrap_or(kernel);
        let (workspace, bytes) = self.workspace;
        // Cannot fail, because the workspace is an allocation of this size.
        let _ = self.memory.fill(workspace, bytes, 0);
        // An H100 gives every launch an address, so `is_valid` of the grid is always true. The barrier works only in a
        // cooperative launch.
        let workspace = if cooperative { workspace } else { ABSENT_WORKSPACE };
        let blocks = shape.grid.iter().map(|&n| u64::from(n)).product();
        let sample = if self.sampling { sample::choose_blocks(shape.grid) } else { None };
        report.sampled = sample.as_ref().map(|sample| Sampled { ran: sample.len() as u64, of: blocks });
        let mut launch = LaunchState {
            kernel,
            memory: self.memory,
            heap: self.heap,
            images: self.images,
            constants: kernel.constants(&params),
            params,
            grid: shape.grid,
            block: shape.block,
            cluster: shape.cluster.or(kernel.cluster).unwrap_or([1; 3]),
            is_clustered: shape.cluster.or(kernel.cluster).is_some(),
            shared_bytes: shape.shared,
            sanitize: self.options.sanitize,
            shadow: GridShadow::new(self.options.sanitize, blocks, kernel.functions.iter().map(|f| f.lines.len()))
                .ignoring(self.options.ignored),
            sm_count: self.device.profile.sm_count,
            warp_rows: warp_rows(shape.block),
            local_limit: self.options.stack as usize,
            slice: 4096,
            watchdog: self.options.watchdog,
            deadline: self.deadline,
            sample,
            per_instruction: self.counts_lines.then(GridCounts::default),
            runtime: GridRuntime::new(self.device),
        };
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = self.options.threads.unwrap_or_else(cores);
        let resident = resident(self.device.profile, kernel, shape).max(1);
        let done = grid::run(&launch, workers, resident, cooperative, workspace).map_err(|mut trap| {
            let mut all = report.printed.clone();
            printed::append(&mut all, &trap.printed);
            trap.printed = all;
            trap
        })?;
        report.counters.add(&done.counters);
        if let Some(counts) = launch.per_instruction.take() {
            counts.add_to(kernel, &mut report.lines, &mut report.counters);
        }
        printed::append(&mut report.printed, &done.printed);
        let notes = findings::races_and_notes(&launch).map_err(|mut trap| {
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
                cure: None,
                launched_by: None,
                site: None,
                printed: String::new(),
            })
        })
    }
}

/// Adds a note if it applies and the report does not have it yet.
fn note(report: &mut LaunchReport, applies: bool, text: impl Fn() -> String) {
    if applies {
        let text = text();
        if !report.notes.contains(&text) {
            report.notes.push(text);
        }
    }
}

/// Returns the thread indices of every warp of a block.
fn warp_rows([x, y, z]: [u32; 3]) -> Vec<WarpRows> {
    (0..(x * y * z).div_ceil(32))
        .map(|warp| {
            let row = |of: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| of(warp * 32 + lane as u32)));
            WarpRows { tid: [row(&|t| t % x), row(&|t| t / x % y), row(&|t| t / x / y)], warp_id: Row([warp; 32]) }
        })
        .collect()
}
