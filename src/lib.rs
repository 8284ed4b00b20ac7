//! `runner`: compares ways of writing a GPU kernel. Which is faster, by how much, why, and is it still right?
//!
//! Data flows one way: manifest → cases → jobs → events → records → summary → report. Imports go down only;
//! `docs/explanation/architecture.md` lists the modules from top to bottom.

pub mod commands;

pub mod profiler;

pub mod dispatch;
pub mod progress;

pub mod execute;

pub mod machine;

pub mod backend;

pub mod compile;
pub mod manifest;
pub mod plan;
pub mod render;

pub mod analyse;
pub mod journal;

pub mod atomic;
pub mod diagnostics;
pub mod experiment;
pub mod expr;
pub mod format;
pub mod includes;
pub mod model;
pub mod npy;
pub mod programs;
pub mod revision;
pub mod stats;
mod stdout;
