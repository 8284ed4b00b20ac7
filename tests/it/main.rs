//! All integration tests, in one program: `cargo test --test it cli::` runs a part of them.
//!
//! Tests that need a GPU are in the modules `gpu_*` and `faults`, and only run with `--ignored`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics to fail, and its output says what was skipped and measured"
)]

mod against;
mod any_kernel;
mod architecture;
mod cli;
mod compile;
mod compilers;
mod contributing;
mod controls;
mod damage;
mod defects;
mod experiments;
mod fault_kernels;
mod faults;
mod fingerprints;
mod fuzz;
mod gallery;
mod gpu;
mod gpu_accuracy;
mod gpu_agreement;
mod gpu_both;
mod gpu_checking;
mod gpu_device;
mod gpu_dynamic;
mod gpu_energy;
mod gpu_loops;
mod gpu_measure;
mod gpu_textures;
mod gpu_timing;
mod gpu_vectors;
mod guides;
mod kernels;
mod keys;
mod kills;
mod manual;
mod memory_kill;
mod own_kernels;
mod packages;
mod paired;
mod preparing;
mod profiler;
mod programs;
mod references;
mod report;
mod rewrites;
mod setup;
mod tutorial;
