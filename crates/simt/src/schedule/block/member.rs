//! A block as part of a cluster: its arrivals at the cluster barrier, and what other blocks can access of it.

use crate::exec::context::Peer;
use crate::exec::launch_state::LaunchState;
use crate::exec::warp::{CLUSTER_BARRIER, Split, SplitState};
use crate::sanitize::{BlockShadow, RemoteThread};
use crate::schedule::block::Block;
use crate::schedule::splits::rejoin;

impl Block {
    /// Whether all threads that have not exited have arrived at the cluster barrier.
    pub fn has_arrived(&self) -> bool {
        self.warps.iter().all(|warp| warp.existing & !warp.exited & !warp.arrived == 0)
    }

    /// Releases the lanes that have arrived at the cluster barrier.
    pub(super) fn open_cluster_barrier(&mut self) {
        self.in_cluster = false;
        for warp in &mut self.warps {
            let waiting = |f: &&Split| f.state == SplitState::Barrier { id: CLUSTER_BARRIER };
            let waited = warp.splits.iter().filter(waiting).fold(0, |m, f| m | f.mask);
            (warp.released, warp.arrived) = ((warp.released | warp.arrived) & !waited, 0);
            if waited != 0 {
                rejoin(warp, CLUSTER_BARRIER);
            }
        }
    }

    /// Passes the cluster barrier, at which all blocks of the cluster have arrived.
    pub fn pass_cluster_barrier(&mut self, launch: &LaunchState<'_>) {
        self.shadow.barrier();
        self.shadow.acquire_from_cluster(&launch.shadow);
        self.open_cluster_barrier();
    }

    /// Returns what other blocks of the cluster can access of this block. If the block is the one that `runs`, it keeps
    /// its shadow state.
    pub fn as_peer(&mut self, runs: bool) -> Peer {
        let shadow = if runs { BlockShadow::default() } else { std::mem::take(&mut self.shadow) };
        Peer { shared: self.shared.as_mut_ptr().cast(), ended: self.ended, index: self.index, shadow }
    }

    /// Takes back what [`Self::as_peer`] has lent.
    pub fn take_back(&mut self, peer: &mut Peer) {
        std::mem::swap(&mut self.shadow, &mut peer.shadow);
    }

    /// Returns the thread of another block that last accessed the block's shared memory since the cluster barrier.
    pub fn remote_thread(&self) -> Option<RemoteThread> {
        self.shadow.remote_thread()
    }
}
