//! Rows of special registers.

use std::mem::offset_of;

use crate::exec::launch_state::{BlockRows, WarpRows};
use crate::mir::Opnd;
use crate::mir::constants::Constants;
use crate::program::ins::{Area, Slot};
use crate::program::row::Row;

/// Number of reserved shared-memory bytes in use, from the start: `multi_warp_scratch` of cooperative groups, for the
/// barriers of tiles with more than 32 threads.
const GROUPS: u32 = 288;

/// Value of a special register about the `reserved` bytes at the start of each block's shared memory (PTX ISA, special
/// registers, `%reserved_smem_offset_begin`). An H200 reads 0, 288, 1024, 0 and 0.
pub fn reserved_shared(name: &str, reserved: u32) -> Option<u32> {
    match name.strip_prefix("%reserved_smem_offset_")? {
        "begin" | "0" | "1" => Some(0),
        "end" => Some(reserved.min(GROUPS)),
        "cap" => Some(reserved),
        _ => None,
    }
}

/// Returns the row of a special register; clocks have none.
pub fn row(constants: &mut Constants, name: &str) -> Option<Opnd> {
    let name = name.strip_prefix('%')?;
    let axis = |base: usize, axis: &str| {
        let k = ["x", "y", "z"].iter().position(|&a| a == axis)?;
        Some(base + k * size_of::<Row<u32>>())
    };
    let warp = |offset: usize| Some(Opnd::Fixed(Slot::new(Area::Warp, offset as u32)));
    let block = |offset: usize| Some(Opnd::Fixed(Slot::new(Area::Block, offset as u32)));
    if let Some((register, k)) = name.split_once('.') {
        if k == "w" && matches!(register, "tid" | "ntid" | "ctaid" | "nctaid") {
            return Some(constants.uniform(0, false));
        }
        return match register {
            "tid" => warp(axis(offset_of!(WarpRows, tid), k)?),
            "ntid" => block(axis(offset_of!(BlockRows, block_size), k)?),
            "ctaid" => block(axis(offset_of!(BlockRows, block_index), k)?),
            "nctaid" => block(axis(offset_of!(BlockRows, grid_size), k)?),
            "cluster_ctaid" => block(axis(offset_of!(BlockRows, cluster_place), k)?),
            "clusterid" => block(axis(offset_of!(BlockRows, cluster_index), k)?),
            "cluster_nctaid" => block(axis(offset_of!(BlockRows, cluster_size), k)?),
            "nclusterid" => block(axis(offset_of!(BlockRows, clusters), k)?),
            _ => None,
        };
    }
    match name {
        "warpid" => warp(offset_of!(WarpRows, warp_id)),
        "nwarpid" => block(offset_of!(BlockRows, warps)),
        "smid" => block(offset_of!(BlockRows, sm_id)),
        "nsmid" => block(offset_of!(BlockRows, sm_count)),
        "dynamic_smem_size" => block(offset_of!(BlockRows, dynamic_shared)),
        "total_smem_size" => block(offset_of!(BlockRows, total_shared)),
        "aggr_smem_size" => block(offset_of!(BlockRows, aggregate_shared)),
        "envreg1" => block(offset_of!(BlockRows, workspace)),
        "envreg2" => block(offset_of!(BlockRows, workspace) + size_of::<Row<u32>>()),
        // Unconfigured performance counters do not count.
        "gridid" | "current_graph_exec" | "pm0" | "pm1" | "pm2" | "pm3" | "pm4" | "pm5" | "pm6" | "pm7" => {
            Some(constants.uniform(0, false))
        }
        "cluster_ctarank" => block(offset_of!(BlockRows, cluster_rank)),
        "cluster_nctarank" => block(offset_of!(BlockRows, cluster_blocks)),
        "is_explicit_cluster" => block(offset_of!(BlockRows, is_clustered)),
        "laneid" => Some(constants.lanes("laneid", |k| k)),
        "lanemask_eq" => Some(constants.lanes("eq", |k| 1 << k)),
        "lanemask_lt" => Some(constants.lanes("lt", |k| (1 << k) - 1)),
        "lanemask_le" => Some(constants.lanes("le", |k| u32::MAX >> (31 - k))),
        "lanemask_gt" => Some(constants.lanes("gt", |k| !(u32::MAX >> (31 - k)))),
        "lanemask_ge" => Some(constants.lanes("ge", |k| u32::MAX << k)),
        _ => None,
    }
}
