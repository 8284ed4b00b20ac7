//! What runs came to: journals, the records made of them, and their analysis. Reports are made of the analysis.

pub mod analyse;
pub mod journal;
pub mod stored;

use runner_base::{atomic, programs, revision, stats};
use runner_model::{expr, file_names, model, regular};
