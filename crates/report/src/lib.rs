//! Turns the journal of a run into its report: events to records to a summary to text.

pub mod analyse;
pub mod journal;
pub mod render;
pub mod stored;

use runner_base::{atomic, programs, revision, stats};
use runner_model::{expr, format, model, regular};
