//! `runner`: compares ways of writing a GPU kernel. Which is faster, by how much, why, and is it still right?
//!
//! Data flows one way: manifest → cases → jobs → events → records → summary → report. Imports go down only;
//! `docs/explanation/architecture.md` lists the modules from top to bottom. The lowest are in crates of their own, which
//! compile beside each other.

pub mod commands;

mod cluster;
pub mod profiler;

pub mod dispatch;
mod progress;

pub mod execute;

pub mod machine;

pub mod backend;

pub mod compile;
pub mod plan;
pub mod render;
mod stored;

pub mod analyse;
pub mod journal;

pub mod atomic;
pub mod host_lock;
pub mod programs;
pub mod revision;
pub mod stats;
mod stdout;

pub use runner_manifest as manifest;
use runner_model::{cpp, diagnostics, format, includes, npy, ptx, regular, safetensors};
pub use runner_model::{experiment, expr, model, project};
