//! Searches the cases of a plan for the best configuration.
//!
//! [`Sizes`] turns the cases of each group into a space of the crate `search`. A strategy proposes points, and their
//! code is compiled on all cores. Compiled ones go to the workers of one or more devices, which check and measure them
//! briefly. Each evaluation is a line of a log, from which a search resumes and writes its files. This crate does not
//! compile, run cases or read the command line: the caller provides a [`Compiler`] and pools of workers.

mod candidates;
mod error;
mod evaluations;
mod header;
mod html;
mod identity;
mod kinds;
mod late;
mod log;
mod objective;
mod page;
mod prior;
mod problem;
mod ranking;
mod search;
mod search_context;
mod settings;
mod shards;
mod sizes;
mod source;
mod table;
mod values;

pub use candidates::{Candidates, Finalists};
pub use error::TuneError;
pub use header::Resume;
pub use identity::{Identity, files_of, identify};
pub use late::read_late;
pub use objective::Objective;
pub use prior::read_prior;
pub use search_context::{Compiler, UnitResult};
pub use settings::{Settings, strategy_of, unknown_strategy};
pub use sizes::{Found, Sizes};
pub use table::write_table;
pub use values::Values;
