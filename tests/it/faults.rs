//! Kernels that fail in every way, and runs that are cut short, end to end: the real binary on a real GPU.
//!
//! `RUNNER_BIN` overrides the binary that cargo built, and `RUNNER_FAULTS` the folder of the manifests, by default
//! `tests/it/faults` of the package. With both, this test binary runs on a machine without the sources.

pub mod bench;
mod controls;
pub mod left;
mod own;
mod plugins;
mod repeats;
mod stops;
mod survival;
