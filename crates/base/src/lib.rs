//! Provides what several stages of `runner` use: atomic files, the place of the cache, program lookup, the sandbox of
//! compilers and references, redirected output, statistics, and the revision of a checkout. Imports no stage.

pub mod atomic;
pub mod cache_folder;
pub mod programs;
pub mod revision;
pub mod sandbox;
pub mod stats;
pub mod stdout;

use runner_model::{model, regular};
