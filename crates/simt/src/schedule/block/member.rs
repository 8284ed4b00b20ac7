//! A block as one of a cluster: its arrivals at the cluster's barrier, and what others may reach of it.

use crate::exec::context::Peer;
use crate::exec::launch_state::LaunchState;
use crate::exec::warp::{CLUSTER_BARRIER, Fiber, FiberState};
use crate::sanitize::{BlockShadow, RemoteThread};
use crate::schedule::block::Block;
use crate::schedule::splits::rejoin;

impl Block {
    /// Whether all threads that have not ended have arrived at the barrier of the cluster.
    pub fn has_arrived(&self) -> bool {
        self.warps.iter().all(|warp| warp.born & !warp.exited & !warp.arrived == 0)
    }

    /// Lets go whoever has arrived at the barrier of the cluster.
    pub(super) fn let_go(&mut self) {
        self.in_cluster = false;
        for warp in &mut self.warps {
            let waiting = |f: &&Fiber| f.state == FiberState::Barrier { id: CLUSTER_BARRIER };
            let waited = warp.fibers.iter().filter(waiting).fold(0, |m, f| m | f.mask);
            (warp.released, warp.arrived) = ((warp.released | warp.arrived) & !waited, 0);
            if waited != 0 {
                rejoin(warp, CLUSTER_BARRIER);
            }
        }
    }

    /// All blocks of the cluster have arrived at its barrier.
    pub fn meet(&mut self, launch: &LaunchState<'_>) {
        self.monitor.barrier();
        self.monitor.meet(&launch.shadow);
        self.let_go();
    }

    /// What others of the cluster may reach of the block; of the one that `runs`, its monitor stays.
    pub fn as_peer(&mut self, runs: bool) -> Peer {
        let monitor = if runs { BlockShadow::default() } else { std::mem::take(&mut self.monitor) };
        Peer { shared: self.shared.as_mut_ptr().cast(), ended: self.ended, index: self.index, monitor }
    }

    /// Takes back what [`Self::as_peer`] gave.
    pub fn take_back(&mut self, peer: &mut Peer) {
        std::mem::swap(&mut self.monitor, &mut peer.monitor);
    }

    /// Who of another block has reached the block's shared memory since the cluster met.
    pub fn remote_thread(&self) -> Option<RemoteThread> {
        self.monitor.remote_thread()
    }
}
