//! Tests of the simulated machine through its public API, on PTX that NVRTC compiled from the sources in
//! `tests/ptx/kernels`.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod absent;
mod addresses;
mod bench;
mod commit_order;
mod copies;
mod coverage;
mod device_launch;
mod exited_threads;
mod faults;
mod features;
mod hostile;
mod ladder;
mod lines;
mod linked;
mod listing;
mod memory_model;
mod mixed;
mod ops;
mod patterns;
mod printed;
mod properties;
mod reserved;
mod rounds;
mod sampling;
mod sanitizer;
mod stores;
mod system;
mod textures;
mod undefined;
mod vectors_on_simulator;
