//! State that all blocks of a grid share, and the rows of special registers.

use std::time::{Duration, Instant};

use crate::exec::instruction_counts::GridCounts;
use crate::exec::window::rank_of;
use crate::image::Images;
use crate::memory::Memory;
use crate::program::Kernel;
use crate::program::row::Row;
use crate::runtime::GridRuntime;
use crate::runtime::heap::Heap;
use crate::sample::Chosen;
use crate::sanitize::GridShadow;

/// `%total_smem_size` is rounded up to a multiple of this many bytes; measured on an H200.
const TOTAL_SHARED_UNIT: u32 = 128;

/// State that all blocks of a grid share.
#[derive(Debug)]
pub struct LaunchState<'m> {
    pub kernel: &'m Kernel,
    pub memory: &'m Memory,
    pub heap: &'m Heap,
    /// The texture and surface objects of the machine.
    pub images: &'m Images,
    pub params: Vec<u8>,
    /// The kernel's constants, including its parameters.
    pub constants: Vec<Row<u32>>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks per cluster along each axis.
    pub cluster: [u32; 3],
    /// Whether the kernel was compiled for clusters or is launched with them.
    pub is_clustered: bool,
    pub shared_bytes: u32,
    pub sanitize: bool,
    /// The sanitizer's record of accesses to memory that other blocks can access.
    pub shadow: GridShadow,
    pub sm_count: u32,
    /// Thread indices of each warp of a block.
    pub warp_rows: Vec<WarpRows>,
    pub local_limit: usize,
    /// Back edges that a warp may take before the next warp runs.
    pub slice: u32,
    /// Largest number of warp instructions per block.
    pub watchdog: u64,
    /// Time limit of the launch, if any.
    pub deadline: Option<Deadline>,
    /// The clusters to run, in order, if only some run.
    pub sample: Option<Vec<Chosen>>,
    pub per_instruction: Option<GridCounts>,
    pub runtime: GridRuntime<'m>,
}

impl LaunchState<'_> {
    /// Returns the start of the shared memory that the kernel may access. It follows the system's reserved bytes,
    /// unless the kernel queries where these are.
    pub const fn shared_start(&self) -> u32 {
        if self.kernel.uses_reserved { 0 } else { self.kernel.shared_base }
    }

    /// Returns the end of a block's shared memory, whose first bytes are reserved by the system.
    pub const fn shared_end(&self) -> u32 {
        self.kernel.shared_base + self.kernel.shared_static + self.shared_bytes
    }

    /// Returns the cluster that runs at this position in the order, and how many clusters it represents.
    pub fn cluster_at(&self, place: u64) -> Chosen {
        self.sample.as_ref().map_or(Chosen { linear: place, weight: 1 }, |sample| sample[place as usize])
    }
}

/// Rows of [`Area::Warp`](crate::program::ins::Area::Warp) operands.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct WarpRows {
    pub tid: [Row<u32>; 3],
    pub warp_id: Row<u32>,
}

/// Rows of [`Area::Block`](crate::program::ins::Area::Block) operands.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct BlockRows {
    pub block_index: [Row<u32>; 3],
    pub block_size: [Row<u32>; 3],
    pub grid_size: [Row<u32>; 3],
    pub warps: Row<u32>,
    pub dynamic_shared: Row<u32>,
    pub sm_id: Row<u32>,
    pub sm_count: Row<u32>,
    pub total_shared: Row<u32>,
    /// Total size, including the system's reserved bytes.
    pub aggregate_shared: Row<u32>,
    pub workspace: [Row<u32>; 2],
    /// Position of the block in its cluster and of the cluster in the grid, along with the sizes of both.
    pub cluster_place: [Row<u32>; 3],
    pub cluster_index: [Row<u32>; 3],
    pub cluster_size: [Row<u32>; 3],
    pub clusters: [Row<u32>; 3],
    /// Rank of the block in its cluster, along with the number of blocks in a cluster.
    pub cluster_rank: Row<u32>,
    pub cluster_blocks: Row<u32>,
    /// All ones if the launch has clusters.
    pub is_clustered: Row<u32>,
}

impl BlockRows {
    /// Returns the rows for blocks with this number of warps; [`Self::move_to`] then selects the block.
    pub fn new(launch: &LaunchState<'_>, warps: u32, workspace: u64) -> Self {
        let clusters = std::array::from_fn(|axis| Row::splat(launch.grid[axis] / launch.cluster[axis]));
        Self {
            block_index: [Row::splat(0); 3],
            block_size: launch.block.map(Row::splat),
            grid_size: launch.grid.map(Row::splat),
            warps: Row::splat(warps),
            dynamic_shared: Row::splat(launch.shared_bytes),
            sm_id: Row::splat(0),
            sm_count: Row::splat(launch.sm_count),
            total_shared: Row::splat(
                (launch.kernel.shared_static + launch.shared_bytes).next_multiple_of(TOTAL_SHARED_UNIT),
            ),
            aggregate_shared: Row::splat(launch.shared_end()),
            workspace: [Row::splat((workspace >> 32) as u32), Row::splat(workspace as u32)],
            cluster_place: [Row::splat(0); 3],
            cluster_index: [Row::splat(0); 3],
            cluster_size: launch.cluster.map(Row::splat),
            clusters,
            cluster_rank: Row::splat(0),
            cluster_blocks: Row::splat(launch.cluster.iter().product()),
            is_clustered: Row::splat(if launch.is_clustered { u32::MAX } else { 0 }),
        }
    }

    /// Updates the rows to describe another block of the launch.
    pub fn move_to(&mut self, launch: &LaunchState<'_>, linear: u64, index: [u32; 3]) {
        let each = |of: &dyn Fn(usize) -> u32| std::array::from_fn(|axis| Row::splat(of(axis)));
        self.block_index = index.map(Row::splat);
        self.sm_id = Row::splat((linear % u64::from(launch.sm_count)) as u32);
        self.cluster_place = each(&|axis| index[axis] % launch.cluster[axis]);
        self.cluster_index = each(&|axis| index[axis] / launch.cluster[axis]);
        self.cluster_rank = Row::splat(rank_of(index, launch.cluster));
    }
}

/// Time limit of a launch, which includes all launches from its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    pub at: Instant,
    /// Time from setting the limit to `at`.
    pub span: Duration,
}

impl Deadline {
    pub fn has_passed(&self) -> bool {
        Instant::now() >= self.at
    }
}
