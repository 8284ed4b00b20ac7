//! Starts a block, with new storage or with that of a finished block of the launch.

use crate::counters::Counters;
use crate::exec::launch_state::{BlockRows, LaunchState};
use crate::exec::warp::Warp;
use crate::sanitize::BlockShadow;
use crate::schedule::barrier::Barrier;
use crate::schedule::block::{Block, Line};

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

impl Block {
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
}
