//! One HTML file for one or several reports that works offline: the view of `report.md` with its charts, and a table of
//! all cases to sort and filter.
//!
//! The numbers are embedded once, as JSON. The script inserts them only as text, so that no name can become markup.

pub(crate) mod changes;
mod data;
mod facts;
mod pool;
pub(crate) mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use super::findings::{Finding, main_finding};
use super::report::{Report, report};
use super::{RenderError, Templates};
use runner_types::Records;

pub use changes::Samples;

pub(crate) const STYLE: &str = include_str!("templates/page.css");

/// Script of every page, in parts: the filter, the time plots, and the tables that use both.
const SCRIPT: [&str; 3] =
    [include_str!("templates/filter.js"), include_str!("templates/times.js"), include_str!("templates/page.js")];

/// Data from files next to a report's records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Companions {
    /// Samples from the journal, if it belongs to the same run.
    pub samples: Samples,
    /// Source files of a case's launches, by their hash in the records.
    pub sources: BTreeMap<String, Vec<SourceFile>>,
    /// Paths of pages with a case's source lines, by case ordinal.
    pub pages: BTreeMap<u64, String>,
}

/// A file that kernels were compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Name in the manifest or in an `#include`.
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Page<'a> {
    pub place: &'a str,
    pub records: &'a Records,
    pub beside: &'a Companions,
}

/// Input of the page's template.
#[derive(Debug, Serialize)]
pub(super) struct View {
    title: String,
    reports: Vec<Section>,
    style: &'static str,
    script: String,
}

#[derive(Debug, Serialize)]
struct Section {
    index: usize,
    place: String,
    device: String,
    /// Main result, shown in the index.
    found: Finding,
    view: Report,
    /// Charts, the most informative first.
    charts: Vec<Figure>,
    /// JSON, escaped so that it cannot end its `script` element.
    data: String,
}

#[derive(Debug, Serialize)]
struct Figure {
    /// Whether the chart is initially open.
    is_open: bool,
    svg: String,
}

/// Renders the HTML file: a single report under its own title, or several with an index.
pub fn html(pages: &[Page<'_>]) -> Result<String, RenderError> {
    let templates = Templates::new()?;
    let sections = pages.iter().enumerate().map(|(index, page)| section(index, *page, &templates));
    let reports = sections.collect::<Result<Vec<Section>, RenderError>>()?;
    let title = match reports.as_slice() {
        [only] => only.view.title.clone(),
        several => format!("{} reports", several.len()),
    };
    templates.page(&View { title, reports, style: STYLE, script: SCRIPT.concat() })
}

fn section(index: usize, page: Page<'_>, templates: &Templates) -> Result<Section, RenderError> {
    let view = report(page.records);
    let charts = view.plots.iter().enumerate().map(|(i, plot)| {
        let mut drawing = plot.chart.draw();
        drawing.prefix = format!("r{index}c{i}-");
        drawing.is_part = true;
        Ok(Figure { is_open: plot.is_open, svg: templates.chart(&drawing)? })
    });
    Ok(Section {
        index,
        place: page.place.to_owned(),
        device: page.records.environment.device.name.clone(),
        found: main_finding(page.records),
        charts: charts.collect::<Result<Vec<Figure>, RenderError>>()?,
        data: embedded(&data::data(page.records, page.beside))?,
        view,
    })
}

/// Serialises JSON for a `script` element, escaping `<`, which could end the element or start a comment.
fn embedded(data: &impl Serialize) -> Result<String, RenderError> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::embedded;

    #[test]
    fn no_text_can_end_the_element_that_data_is_in() -> Result<(), super::RenderError> {
        let hostile = "</script><!--<script>";
        let json = embedded(&hostile)?;
        assert!(!json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json)?, hostile);
        Ok(())
    }
}
