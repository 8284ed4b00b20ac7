//! What several stages of `runner` need but no stage owns: atomic files, the cache folder, program lookup, the sandbox,
//! redirected output, statistics and git revisions.
//!
//! Imports no stage and none of the shared types.

pub mod atomic;
pub mod cache_folder;
pub mod programs;
pub mod revision;
pub mod sandbox;
pub mod stats;
pub mod stdout;
