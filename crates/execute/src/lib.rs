//! Runs the cases of a group on a device, and measures devices themselves.

pub mod execute;
pub mod machine;

use runner_backend as backend;
use runner_base::{atomic, cache_folder, programs, sandbox, stats};
use runner_model::{cpp, expr, format, model, npy, regular, source_lines};
