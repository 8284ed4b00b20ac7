//! Schedules the blocks of a cluster together: in order of rank, each up to its next visible effect.
//!
//! A block without a cluster is a cluster of one, and runs as it would without this module. A block can access the
//! shared memory of another until that one ends.

use crate::counters::Counters;
use crate::exec::context::{Commits, Peer};
use crate::exec::findings;
use crate::exec::launch_state::LaunchState;
use crate::printed;
use crate::sample::Chosen;
use crate::sanitize::Fault;
use crate::schedule::block::{Block, Pause};

/// A cluster whose blocks have started.
#[derive(Debug)]
pub struct Cluster {
    /// Position of the cluster in the order of execution, which is its number in the grid unless only a sample runs.
    pub linear: u64,
    /// Number of clusters that this one represents.
    pub weight: u64,
    blocks: Vec<Block>,
    /// Storage for what blocks can access of each other.
    peers: Vec<Peer>,
}

fn index_of(launch: &LaunchState<'_>, cluster: u64, rank: u32) -> [u32; 3] {
    let size = launch.cluster;
    let [x, y, _]: [u64; 3] = std::array::from_fn(|axis| u64::from(launch.grid[axis] / size[axis]));
    let at = [cluster % x, cluster / x % y, cluster / x / y];
    let place = [rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]];
    std::array::from_fn(|axis| at[axis] as u32 * size[axis] + place[axis])
}

impl Cluster {
    /// Returns cluster number `linear` of the launch order, ready to run its first instructions. Reuses the storage of `old`.
    pub fn start(launch: &LaunchState<'_>, linear: u64, old: Option<Self>, workspace: u64) -> Self {
        let count: u32 = launch.cluster.iter().product();
        let Chosen { linear: number, weight } = launch.cluster_at(linear);
        let (mut used, peers) = old.map_or_else(Default::default, |old| (old.blocks, old.peers));
        let blocks = (0..count)
            .map(|rank| Block::start(launch, (index_of(launch, number, rank), weight), used.pop(), workspace))
            .collect();
        Self { linear, weight, blocks, peers }
    }

    /// Runs until all blocks have ended or the cluster must wait.
    pub fn run<'m>(&mut self, launch: &'m LaunchState<'m>, commits: Commits) -> Pause {
        if let [block] = &mut self.blocks[..] {
            return block.run(launch, commits);
        }
        for rank in 0..self.blocks.len() {
            if self.blocks[rank].ended {
                continue;
            }
            self.share_peers(rank);
            let pause = self.blocks[rank].run(launch, commits);
            self.return_peers(rank);
            match pause {
                Pause::Done => {
                    self.blocks[rank].ended = true;
                    let remote = self.blocks[rank].remote_thread();
                    let remote = remote.filter(|_| launch.shadow.ignored().reports(Fault::Race));
                    if let Some(trap) = remote.map(|by| {
                        findings::unfinished_remote_access(launch, by, index_of(launch, self.linear, rank as u32))
                    }) {
                        return Pause::Trap(Box::new(trap));
                    }
                }
                Pause::Trap(trap) => return Pause::Trap(trap),
                Pause::Commit | Pause::Stuck => {}
            }
        }
        if self.blocks.iter().all(|block| block.ended) {
            return Pause::Done;
        }
        if self.blocks.iter().all(Block::has_arrived) {
            self.blocks.iter_mut().filter(|block| !block.ended).for_each(|block| block.pass_cluster_barrier(launch));
        }
        Pause::Commit
    }

    /// Gives the block that runs next access to the others.
    fn share_peers(&mut self, rank: usize) {
        let mut peers = std::mem::take(&mut self.peers);
        peers.clear();
        peers.extend(self.blocks.iter_mut().enumerate().map(|(at, block)| block.as_peer(at == rank)));
        self.blocks[rank].peers = peers;
    }

    fn return_peers(&mut self, rank: usize) {
        self.peers = std::mem::take(&mut self.blocks[rank].peers);
        for (at, (block, peer)) in self.blocks.iter_mut().zip(&mut self.peers).enumerate() {
            if at != rank {
                block.take_back(peer);
            }
        }
    }

    /// Makes the blocks check the time after their next instructions.
    pub fn check_time_soon(&mut self) {
        self.blocks.iter_mut().for_each(Block::check_time_soon);
    }

    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.blocks.iter().for_each(|block| sum.add(&block.counters));
        sum
    }

    /// Returns what the blocks have printed since the last call, in order of rank.
    pub fn printed(&mut self) -> String {
        let mut all = String::new();
        self.blocks.iter_mut().for_each(|block| printed::append(&mut all, &std::mem::take(&mut block.printed)));
        all
    }

    /// Whether lanes of any block had to be scheduled independently for it to continue.
    pub fn is_independent(&self) -> bool {
        self.blocks.iter().any(|block| block.independent)
    }
}
