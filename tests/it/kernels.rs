//! Kernels that were not written for the simulator: building blocks of real programs, CUB, cooperative groups, short
//! floats. Each is compiled by the pinned NVRTC, run with the sanitizer on one thread and on four, and checked against
//! the host. Counters and results must be the same for both.

mod bulk;
mod classic;
mod clusters;
mod cub;
mod groups;
mod halves;
mod lab;
mod quads;
mod sending;
