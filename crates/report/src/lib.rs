//! Turns records into Markdown, CSV, charts, HTML and text for the terminal.
//!
//! Everything here is a pure function of the records: it reads no clock, no host state and no file, and the same
//! records yield the same bytes. Numbers are formatted only here. Only [`write_all`] writes files; [`deviations`]
//! compares them with those on disk.

mod bound;
mod chart;
mod claims;
mod column;
mod columns;
pub mod comparison;
pub mod configurations;
mod counters;
mod csv;
mod device;
mod escape;
pub mod events;
mod fidelity;
mod files;
mod findings;
mod grid;
pub mod history;
pub mod html;
mod ladder;
mod limits;
mod lines;
mod markdown;
mod method;
mod number;
mod overview;
mod page;
mod plots;
mod prose;
mod quantities;
mod reasons;
mod report;
mod row;
mod rows;
mod sarif;
mod section;
pub mod source_view;
pub mod stale;
mod table;
mod terminal;
mod units;
mod verdict;
#[cfg(test)]
mod view_model;
mod why;
mod wording;

pub use csv::described_columns;
pub use device::device;
pub use fidelity::fidelity;
pub use files::{Deviation, PREVIOUS_SEARCH_JOURNAL, deviations, files, write_all, write_search_sums};
pub use files::{REPORT_FILE, RESULTS_FILE, SOURCE_DIR};
pub use findings::counts_of as counts;
pub use markdown::{SHIPPED, Templates};
pub use prose::{prose, prose_after};
pub use report::incomplete;
pub use terminal::{Screen, open_claims, terminal};
pub use units::axis_value;
pub use verdict::{Answer, between, verdict};
pub use wording::{case_name, machine, reason};

#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template does not match its view model: a bug in this program.
    #[error("a report template failed: {0}")]
    Template(#[from] tera::Error),
    /// The user's template has an error.
    #[error(
        "{place}: {message}: docs/reference/templates.md lists what a template can use, `runner templates export` \
             writes the shipped one"
    )]
    OfUser {
        /// File, with line and column if known.
        place: String,
        message: String,
    },
    /// A row of a table could not be written.
    #[error("the table of results cannot be written: {0}")]
    Csv(#[from] ::csv::Error),
    /// A value cannot be represented in JSON.
    #[error("the records cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Write(#[from] runner_files::atomic::WriteError),
}
