//! `runner`: compares ways of writing a GPU kernel. Which is faster, by how much, why, and is it still right?
//!
//! Data flows one way: manifest → cases → jobs → events → records → summary → report. Imports go down only;
//! `docs/explanation/architecture.md` lists the modules from top to bottom. The stages are crates of their own, which
//! compile in parallel.

pub mod commands;

pub use runner_backend as backend;
pub use runner_base::{atomic, programs, revision, sandbox, stats};
pub use runner_compile as compile;
pub use runner_dispatch::{dispatch, profiler};
pub use runner_execute::{execute, machine};
pub use runner_manifest as manifest;
pub use runner_model::{experiment, expr, model, project};
pub use runner_plan as plan;
pub use runner_report::render;
pub use runner_results::{analyse, journal};

use runner_cluster as cluster;
use runner_model::{cpp, diagnostics, file_names, format, npy, regular};
use runner_progress::{log, progress};
use runner_results::stored;
use runner_tune as tune;
