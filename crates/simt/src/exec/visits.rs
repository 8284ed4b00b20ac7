//! What the sanitizer is told of accesses to the shared memory of other blocks of the cluster.

use super::access::{Region, form};
use super::cluster::rank_at;
use super::context::Context;
use super::findings;
use super::monitor::Monitor;
use super::row::{Ins, LANES, Row};
use crate::error::{Site, TrapKind};
use crate::sanitize::{Bulk, Clash, Fault, Op, Visitor, Way};

/// The monitor of the block whose shared memory a region is.
pub fn owner<'c>(cx: &'c mut Context<'_>, r: &Region) -> &'c mut Monitor {
    let rank = rank(cx, r);
    match cx.peers.get_mut(rank) {
        Some(peer) if r.space == form::REMOTE => &mut peer.monitor,
        _ => &mut cx.monitor,
    }
}

/// The rank of the block whose shared memory a region is.
pub fn rank(cx: &Context<'_>, r: &Region) -> usize {
    if r.space == form::REMOTE { rank_at(r.origin) } else { cx.cluster_rank() as usize }
}

/// A lane as other blocks see it.
fn visitor(cx: &Context<'_>, i: &Ins, lane: usize) -> Visitor {
    let thread = cx.warp.index * 32 + lane as u32;
    Visitor { block: cx.block_index, thread, line: cx.launch.board.line(cx.function, i.line) }
}

/// Notes an access by a lane that races with nothing.
pub fn note(cx: &mut Context<'_>, i: &Ins, lane: usize, r: &Region) {
    let by = visitor(cx, i, lane);
    owner(cx, r).visit_quietly(by);
}

/// Checks and records a request to another block's shared memory; `Some` is what the handler returns on a fault.
pub fn check(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, r: &Region, bytes: u64, op: Op) -> Option<*const Ins> {
    let strong = op != Op::Change && i.aux & (form::STRONG | form::VOLATILE) != 0;
    let (active, heard) = (cx.mask, cx.monitor.cluster_heard());
    for k in (0..LANES).filter(|&k| active >> k & 1 == 1) {
        let by = visitor(cx, i, k);
        let offset = a.0[k] - r.origin;
        let owner = owner(cx, r);
        if strong {
            owner.visit_quietly(by);
            if op == Op::Store {
                owner.shared_written(offset, bytes as u32);
            }
            continue;
        }
        if let Err(clash) = owner.visit(op, offset, bytes as u32, (by, heard)) {
            return Some(refuse(cx, i, k, r, op, &clash));
        }
    }
    None
}

/// Checks and records what a lane sends to another block's shared memory: which bytes, which barrier object is told of
/// them, and how they come. `Some` is what the handler returns on a fault.
pub fn receive(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    r: &Region,
    (side, object, way): (Bulk, u64, Way),
) -> Option<*const Ins> {
    let (by, heard, sender) = (visitor(cx, i, lane), cx.monitor.cluster_heard(), super::monitor::sender(cx, i, lane));
    let clash = owner(cx, r).sent_from_afar((by, heard), sender, side, object, way).err()?;
    Some(refuse(cx, i, lane, r, way.op(), &clash))
}

/// Ends the launch since a lane may not do what it does to another block's shared memory.
#[cold]
fn refuse(cx: &mut Context<'_>, i: &Ins, lane: usize, r: &Region, op: Op, clash: &Clash) -> *const Ins {
    let index = cx.peers.get(rank(cx, r)).map_or([0; 3], |peer| peer.index);
    let kind = if clash.fault == Fault::Unwritten { TrapKind::Uninitialised } else { TrapKind::Race };
    let message = findings::visit(cx.launch, index, op, clash);
    let stopped = cx.trap(i, kind, 1 << lane, message);
    let offset = clash.offset as i64;
    let site = Site { address: clash.offset, allocation: "shared memory".to_owned(), offset };
    cx.locate_trap(site);
    stopped
}

/// What strong accesses to shared memory, its own or another block's, say to and hear of the cluster.
pub fn order(cx: &mut Context<'_>, i: &Ins, reads: bool) {
    if cx.peers.is_empty() || i.aux & form::STRONG == 0 {
        return;
    }
    if i.aux & form::RELEASE != 0 {
        super::monitor::fence(cx, true);
    }
    if reads {
        hear(cx);
    }
}

/// The block hears of what others of its cluster did.
pub fn hear(cx: &mut Context<'_>) {
    if cx.launch.sanitize && !cx.peers.is_empty() {
        cx.monitor.hear_cluster(&cx.launch.board);
    }
}
