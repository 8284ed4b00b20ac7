//! Special registers, the addresses of local variables, and clocks.

use std::mem::offset_of;

use super::Builder;
use crate::exec::context::{BlockRows, Context, WarpRows};
use crate::exec::row::{Area, Ins, LANES, Row, Slot};
use crate::exec::system;
use crate::lower::mir::Opnd;
use ptx_parser::ScalarType;

/// The row of a special register; clocks have none.
pub fn row(b: &mut Builder<'_, '_>, name: &str) -> Option<Opnd> {
    if name == "WARP_SZ" {
        return Some(b.parts.constants.uniform(LANES as u64, false));
    }
    let name = name.strip_prefix('%')?;
    let axis = |base: usize, axis: &str| {
        let k = ["x", "y", "z"].iter().position(|&a| a == axis)?;
        Some(base + k * size_of::<Row<u32>>())
    };
    let warp = |offset: usize| Some(Opnd::Fixed(Slot::new(Area::Warp, offset as u32)));
    let block = |offset: usize| Some(Opnd::Fixed(Slot::new(Area::Block, offset as u32)));
    if let Some((register, k)) = name.split_once('.') {
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
        "total_smem_size" | "aggr_smem_size" => block(offset_of!(BlockRows, total_shared)),
        "envreg1" => block(offset_of!(BlockRows, workspace)),
        "envreg2" => block(offset_of!(BlockRows, workspace) + size_of::<Row<u32>>()),
        // Shared memory reserved by the system starts after the block's window, which contains none of it. Performance
        // counters that are not configured do not count.
        "reserved_smem_offset_begin"
        | "reserved_smem_offset_end"
        | "reserved_smem_offset_cap"
        | "reserved_smem_offset_0"
        | "reserved_smem_offset_1"
        | "gridid"
        | "current_graph_exec"
        | "pm0"
        | "pm1"
        | "pm2"
        | "pm3"
        | "pm4"
        | "pm5"
        | "pm6"
        | "pm7" => Some(b.parts.constants.uniform(0, false)),
        "cluster_ctarank" => block(offset_of!(BlockRows, cluster_rank)),
        "cluster_nctarank" => block(offset_of!(BlockRows, cluster_blocks)),
        "is_explicit_cluster" => block(offset_of!(BlockRows, is_clustered)),
        "laneid" => Some(b.parts.constants.lanes("laneid", |k| k)),
        "lanemask_eq" => Some(b.parts.constants.lanes("eq", |k| 1 << k)),
        "lanemask_lt" => Some(b.parts.constants.lanes("lt", |k| (1 << k) - 1)),
        "lanemask_le" => Some(b.parts.constants.lanes("le", |k| u32::MAX >> (31 - k))),
        "lanemask_gt" => Some(b.parts.constants.lanes("gt", |k| !(u32::MAX >> (31 - k)))),
        "lanemask_ge" => Some(b.parts.constants.lanes("ge", |k| u32::MAX << k)),
        _ => None,
    }
}

/// Emits the read of a clock, if `name` is one.
pub fn clock(b: &mut Builder<'_, '_>, name: &str, to: Opnd, ty: ScalarType) -> bool {
    let wide = match name {
        "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => false,
        "%clock64" | "%globaltimer" => true,
        _ => return false,
    };
    if wide != (ty.size() == 8) {
        return false;
    }
    if name.ends_with("_hi") {
        let zero = b.parts.constants.uniform(0, false);
        let run = crate::exec::vector::unary(b.isa, |x: u32| x);
        b.emit(run, [to, zero], 1, 0, 0);
    } else {
        b.emit(system::clock, [to], 1, 0, u32::from(wide));
    }
    true
}

/// The address of a local variable in the local state space: slot 0 is a 64-bit row, `imm` the offset in the function's
/// locals. It does not count as an instruction; the `mov` after it does.
pub unsafe fn local_address(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    crate::exec::control::uncount(cx);
    let address = u64::from(cx.locals).wrapping_add(i.imm as u64);
    for k in 0..LANES {
        if cx.on(k) {
            // SAFETY: slot 0 is a 64-bit frame row.
            unsafe { cx.set_lane(i.o[0], k, address) };
        }
    }
    Context::next(i)
}
