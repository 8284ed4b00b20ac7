//! Turns the summary of a run into its report: Markdown, CSV, SVG and HTML.

pub mod render;

use runner_base::{atomic, stats};
use runner_model::{file_names, format, model, regular};
use runner_results::{analyse, journal, stored};
