//! Kernels that do everything wrong, and runs that are cut short, end to end: the real binary on a real GPU.
//!
//! `RUNNER_BIN` names another binary than the one that cargo built, `RUNNER_FAULTS` the folder of the manifests where
//! that is not `tests/it/faults` of the package: with both, this test binary runs on a machine without the sources.

pub mod bench;
mod controls;
pub mod left;
mod own;
mod plugins;
mod repeats;
mod stops;
mod survival;
