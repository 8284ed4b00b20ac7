//! Allocates registers: assigns rows of the frame to virtual registers.
//!
//! Two registers can share a row if no thread needs both at once. Liveness along the path of a single thread is enough,
//! because each lane has its own part of a row and an instruction writes only active lanes. A small frame keeps a
//! warp's registers in the host's L1 cache.

use crate::lower::flow::Graph;
use crate::mir::{Body, Class};

/// Locations of the registers.
#[derive(Debug)]
pub struct Placed {
    /// Offset of each register in the frame, in bytes.
    pub offsets: Vec<u32>,
    /// Size of the frame in bytes.
    pub frame: u32,
    /// Whether some path reads a register before writing it.
    pub reads_unwritten: bool,
}

pub fn place(body: &Body, graph: &Graph) -> Placed {
    let count = body.classes.len();
    let (intervals, reads_unwritten) = intervals(body, graph);
    let mut order: Vec<usize> = (0..count).filter(|&r| intervals[r].0 <= intervals[r].1).collect();
    order.sort_unstable_by_key(|&r| intervals[r]);
    let mut offsets = vec![0; count];
    // Freed offsets by class. Rows are reused only within a class, so that sizes match.
    let mut free: [Vec<u32>; 4] = Default::default();
    let mut busy: Vec<(usize, usize)> = Vec::new();
    let mut rows = 0_u32;
    let mut preds = Vec::new();
    let mut pred_count = 0_u32;
    for r in order {
        let (start, end) = intervals[r];
        busy.retain(|&(until, other)| {
            let over = until < start;
            if over {
                free[body.classes[other] as usize].push(offsets[other]);
            }
            !over
        });
        let class = body.classes[r];
        offsets[r] = free[class as usize].pop().unwrap_or_else(|| {
            if class == Class::Pred {
                pred_count += 1;
                return (pred_count - 1) * 4;
            }
            rows += class.bytes();
            rows - class.bytes()
        });
        if class == Class::Pred {
            preds.push(r);
        }
        busy.push((end, r));
    }
    // Predicates follow the rows. All unused registers share one spare row.
    for r in preds {
        offsets[r] += rows;
    }
    let spare = (rows + pred_count * 4).next_multiple_of(128);
    for r in 0..count {
        if intervals[r].0 > intervals[r].1 {
            offsets[r] = spare;
        }
    }
    Placed { offsets, frame: spare + 256, reads_unwritten }
}

/// Returns the first and the last instruction at which each register is live (an empty range if never), and whether any
/// register is live at the entry.
fn intervals(body: &Body, graph: &Graph) -> (Vec<(usize, usize)>, bool) {
    let words = body.classes.len().div_ceil(64);
    let nodes = graph.nodes.len();
    let (mut used, mut killed) = (vec![vec![0_u64; words]; nodes], vec![vec![0_u64; words]; nodes]);
    for (k, node) in graph.nodes.iter().enumerate() {
        for inst in &body.insts[node.start..node.end] {
            for r in Body::uses(inst) {
                let (w, bit) = (r.0 as usize / 64, 1_u64 << (r.0 % 64));
                used[k][w] |= bit & !killed[k][w];
            }
            for r in Body::defs(inst) {
                let (w, bit) = (r.0 as usize / 64, 1_u64 << (r.0 % 64));
                if inst.guard.is_none() {
                    killed[k][w] |= bit;
                } else {
                    used[k][w] |= bit & !killed[k][w];
                }
            }
        }
    }
    let mut live_in = used.clone();
    let mut live_out = vec![vec![0_u64; words]; nodes];
    let mut changed = true;
    while changed {
        changed = false;
        for k in (0..nodes).rev() {
            for w in 0..words {
                let out = graph.nodes[k].next.iter().fold(0, |m, &next| m | live_in[next][w]);
                let into = used[k][w] | (out & !killed[k][w]);
                changed |= into != live_in[k][w];
                live_out[k][w] = out;
                live_in[k][w] = into;
            }
        }
    }
    let mut ranges = vec![(usize::MAX, 0_usize); body.classes.len()];
    let mut touch = |r: usize, at: usize| {
        ranges[r].0 = ranges[r].0.min(at);
        ranges[r].1 = ranges[r].1.max(at);
    };
    for (k, node) in graph.nodes.iter().enumerate() {
        for (set, at) in [(&live_in[k], node.start), (&live_out[k], node.end)] {
            for (w, &bits) in set.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    touch(w * 64 + bits.trailing_zeros() as usize, at);
                    bits &= bits - 1;
                }
            }
        }
        for at in node.start..node.end {
            let inst = &body.insts[at];
            Body::uses(inst).chain(Body::defs(inst)).for_each(|r| touch(r.0 as usize, at));
        }
    }
    let unwritten = live_in.first().is_some_and(|set| set.iter().any(|&bits| bits != 0));
    (ranges, unwritten)
}
