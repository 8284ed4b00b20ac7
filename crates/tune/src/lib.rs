//! Searches the cases of a plan for the best configuration.
//!
//! A [`Problem`] is the cases of one group as a space of the crate `search`. [`run`] has a strategy propose points, has
//! their code compiled on all cores and gives those that are ready to the workers of one or more devices, which check and
//! measure them briefly. Each evaluation is a line of a [`Log`], from which a search goes on and from which its files are
//! written. Nothing here compiles, runs a case or reads the command line: who calls it brings a [`Compiler`] and pools of
//! workers.

mod candidates;
mod error;
mod evaluations;
mod finalists;
mod header;
mod html;
mod identity;
mod kinds;
mod log;
mod objective;
mod page;
mod prior;
mod problem;
mod search;
mod seat;
mod settings;
mod shards;
mod source;
mod table;
mod units;
mod values;

use runner_base::{atomic, stats};
use runner_dispatch::dispatch;
use runner_model::{experiment, format, model};
use runner_plan as plan;
use runner_report::render;
use runner_results::journal;

pub use candidates::Candidates;
pub use error::TuneError;
pub use finalists::Finalists;
pub use identity::{Identity, files_of, identify};
pub use log::Log;
pub use objective::Objective;
pub use page::write;
pub use prior::read_prior;
pub use problem::Problem;
pub use search::{Searched, run};
pub use seat::{Compiler, Seat, UnitResult};
pub use settings::Settings;
pub use shards::share_of;
pub use table::write_table;
pub use values::Values;
