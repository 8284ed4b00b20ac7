//! A block as one of a cluster: its arrivals at the cluster's barrier, and what others may reach of it.

use super::super::cluster;
use super::super::context::{Fiber, FiberState, LaunchState, Peer};
use super::super::fibers::rejoin;
use super::super::monitor::Monitor;
use super::Block;
use crate::sanitize::RemoteThread;

impl Block {
    /// Whether all threads that have not ended have arrived at the barrier of the cluster.
    pub fn has_arrived(&self) -> bool {
        self.warps.iter().all(|warp| warp.born & !warp.exited & !warp.arrived == 0)
    }

    /// Lets go whoever has arrived at the barrier of the cluster.
    pub(super) fn let_go(&mut self) {
        self.in_cluster = false;
        for warp in &mut self.warps {
            let waiting = |f: &&Fiber| f.state == FiberState::Barrier { id: cluster::BARRIER };
            let waited = warp.fibers.iter().filter(waiting).fold(0, |m, f| m | f.mask);
            (warp.released, warp.arrived) = ((warp.released | warp.arrived) & !waited, 0);
            if waited != 0 {
                rejoin(warp, cluster::BARRIER);
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
        let monitor = if runs { Monitor::default() } else { std::mem::take(&mut self.monitor) };
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
