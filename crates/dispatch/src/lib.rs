//! Worker processes, also inside a profiler, and the groups of cases that they run.

pub mod dispatch;
pub mod profiler;

use runner_backend as backend;
use runner_base::{programs, stdout};
use runner_execute::machine;
use runner_model::{model, source_lines};
use runner_plan as plan;
use runner_progress::log;
use runner_results::journal;
