//! Runs the blocks of a grid: schedules the warps of a block, the blocks of a cluster, and the clusters of the grid
//! over the host's cores.

mod block;
mod cluster;
pub mod grid;
mod hang_report;
mod splits;
