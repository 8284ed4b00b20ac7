//! Runs the blocks of a grid: warps of a block, blocks of a cluster, clusters of the grid, over the host's cores.

mod barrier;
mod block;
mod cluster;
pub mod grid;
mod hang_report;
mod splits;
