//! Renders a report's page within its size limit.

use super::RenderError;
use super::limits::{LARGEST_PAGE, Limits};
use super::markdown::Templates;
use super::report::{Report, report_within};
use runner_results::analyse;
use runner_types::Records;

/// Builds the report and its page, with narrower limits until the page is small enough.
pub fn page(records: &Records, templates: &Templates) -> Result<(Report, String), RenderError> {
    let summary = analyse::summary(records);
    let [widest, narrower @ ..] = Limits::LEVELS;
    let build = |limits: &Limits| {
        let view = report_within(records, &summary, limits);
        templates.report(&view).map(|text| (view, text))
    };
    let mut page = build(&widest)?;
    for limits in &narrower {
        if page.1.len() < LARGEST_PAGE {
            break;
        }
        page = build(limits)?;
    }
    Ok(page)
}
