//! Kernels that were not written with the simulator in mind: what programs are made of, CUB, cooperative groups, short
//! floats. Each is compiled by the pinned NVRTC, runs with the sanitizer on one thread and on four, and is checked
//! against the host; counters and results are the same for both.

mod bulk;
mod classic;
mod clusters;
mod cub;
mod groups;
mod halves;
mod lab;
mod quads;
mod sending;
