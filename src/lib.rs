//! `runner`: compares ways of writing a GPU kernel. Which is faster, by how much, why, and is it still correct?
//!
//! Data flows one way: manifest → cases → jobs → events → records → summary → report. Imports only go down;
//! `docs/explanation/architecture.md` lists the modules from top to bottom. The stages are separate crates, which
//! compile in parallel.

pub mod cli;
pub mod commands;
pub mod console;
pub mod failure;
mod files;
mod session;
mod templates;
