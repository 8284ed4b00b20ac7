//! Reports accesses to other blocks' shared memory in the cluster to the sanitizer.

use crate::error::TrapKind;
use crate::exec::access::Region;
use crate::exec::context::Context;
use crate::exec::findings;
use crate::exec::window::rank_at;
use crate::program::aux::{Access, StateSpace};
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};
use crate::sanitize::{BlockShadow, Bulk, Fault, Op, RemoteConflict, RemoteThread, Sender, Space, Way};

/// Returns the shadow state of the block that owns a region of shared memory.
pub fn owner<'c>(cx: &'c mut Context<'_>, r: &Region) -> &'c mut BlockShadow {
    let rank = rank(cx, r);
    match cx.peers.get_mut(rank) {
        Some(peer) if r.space == StateSpace::REMOTE => &mut peer.shadow,
        _ => &mut cx.shadow,
    }
}

/// Returns the rank of the block that owns a region of shared memory.
pub fn rank(cx: &Context<'_>, r: &Region) -> usize {
    if r.space == StateSpace::REMOTE { rank_at(r.origin) } else { cx.cluster_rank() as usize }
}

/// Identifies a lane to other blocks.
fn remote_thread(cx: &Context<'_>, i: &Ins, lane: usize) -> RemoteThread {
    let thread = cx.warp.index * 32 + lane as u32;
    RemoteThread { block: cx.block_index, thread, line: cx.launch.shadow.line(cx.function, i.line) }
}

/// Records a lane's access, which cannot race.
pub fn note(cx: &mut Context<'_>, i: &Ins, lane: usize, r: &Region) {
    let by = remote_thread(cx, i, lane);
    owner(cx, r).note_remote(by);
}

/// Checks and records a request to another block's shared memory. `Some` is the handler's return value after a fault.
pub fn check(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, r: &Region, bytes: u64, op: Op) -> Option<*const Ins> {
    let strong = op != Op::Change && i.has(Access::STRONG | Access::VOLATILE);
    let (active, acquired) = (cx.mask, cx.shadow.cluster_acquired());
    for k in (0..LANES).filter(|&k| active >> k & 1 == 1) {
        let by = remote_thread(cx, i, k);
        let offset = a.0[k] - r.origin;
        let owner = owner(cx, r);
        if strong {
            owner.note_remote(by);
            if op == Op::Store {
                owner.shared_written(offset, bytes as u32);
            }
            continue;
        }
        if let Err(conflict) = owner.remote_access(op, offset, bytes as u32, (by, acquired))
            && cx.launch.shadow.ignored().reports(conflict.fault)
        {
            return Some(refuse(cx, i, k, r, op, &conflict));
        }
    }
    None
}

/// Checks and records a lane's write to another block's shared memory, given its bytes, the mbarrier object on which it
/// completes, and its kind. `Some` is the handler's return value after a fault.
pub fn receive(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    r: &Region,
    (sender, side, object, way): (Sender, Bulk, u64, Way),
) -> Option<*const Ins> {
    let (by, acquired) = (remote_thread(cx, i, lane), cx.shadow.cluster_acquired());
    let conflict = owner(cx, r).receive_remote((by, acquired), sender, side, object, way).err()?;
    if !cx.launch.shadow.ignored().reports(conflict.fault) {
        return None;
    }
    Some(refuse(cx, i, lane, r, way.op(), &conflict))
}

/// Ends the launch because a lane's access to another block's shared memory is a fault.
#[cold]
fn refuse(cx: &mut Context<'_>, i: &Ins, lane: usize, r: &Region, op: Op, conflict: &RemoteConflict) -> *const Ins {
    let index = cx.peers.get(rank(cx, r)).map_or([0; 3], |peer| peer.index);
    let kind = if conflict.fault == Fault::Unwritten { TrapKind::Uninitialised } else { TrapKind::Race };
    let message = findings::remote_conflict(cx.launch, index, op, conflict);
    let stopped = cx.trap(i, kind, 1 << lane, message);
    cx.locate_trap(findings::site(cx.launch, Space::Shared, conflict.offset));
    if conflict.fault == Fault::Race {
        let before = cx.launch.shadow.line(cx.function, i.line);
        cx.cure_trap(findings::cure_of_cluster(&findings::place(cx.launch, before)));
    }
    stopped
}

/// Makes the block acquire what the other blocks of its cluster have released.
pub fn acquire(cx: &mut Context<'_>) {
    if cx.launch.sanitize && !cx.peers.is_empty() {
        cx.shadow.acquire_from_cluster(&cx.launch.shadow);
    }
}
