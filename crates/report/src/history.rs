//! Times over revisions for people and programs: terminal, Markdown, HTML, JSON, CSV and charts.

mod charts;
mod csv;
mod html;
mod json;
mod timeline;
mod view;
mod words;

use runner_results::analyse::history::Series;
use runner_results::analyse::stale::Staleness;
use runner_results::stored::Unread;
use runner_types::Commit;

pub use charts::{Chart, Link, charts, links};
pub use csv::csv;
pub use html::html;
pub use json::json;
pub(super) use view::View;
pub use view::{markdown, terminal};

/// History of a report, with the revisions of its points.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportHistory<'a> {
    pub place: &'a str,
    /// Commits that changed the report, oldest first.
    pub commits: Vec<Commit>,
    /// Series in table order.
    pub series: Vec<Series<'a>>,
    /// Revisions whose records cannot be read, and why.
    pub unread: &'a [Unread],
    /// Why the newest records may not be current; `None` if they are.
    pub stale: Option<Staleness>,
}
