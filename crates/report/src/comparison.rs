//! A comparison for people and programs: terminal, Markdown, HTML, JSON, CSV and `JUnit` XML.

mod claims;
pub(super) mod csv;
mod headline;
mod html;
mod json;
mod junit;
mod lines;
mod machine_code;
mod manifests;
mod markdown;
mod notation;
mod rollup;
mod sources;
mod summary;
mod terminal;
mod view;
pub(super) mod words;

use runner_results::analyse::compare::Comparison;

pub use csv::csv;
pub use headline::headline;
pub use html::html;
pub use json::json;
pub(super) use junit::Suites;
pub use junit::junit;
pub use markdown::{MOST_CHARACTERS, markdown};
pub use terminal::terminal;
pub(super) use view::View;

/// A comparison, and where its reports came from.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// Comparison of every pair of reports.
    pub comparison: &'a Comparison,
    /// Base and new, as the user named them.
    pub names: &'a [String; 2],
    /// Base and new as shown to readers: a commit, or a name.
    pub labels: &'a [String; 2],
    /// Where the reports of each pair were read from.
    pub places: &'a [[String; 2]],
    /// Sentences about the parts of the base that could not be run.
    pub faults: &'a [String],
}
