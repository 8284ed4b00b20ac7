//! The charts of a history: one per series, those that changed most first.

use std::path::Path;

use serde::Serialize;

use super::{ReportHistory, timeline};
use crate::analyse::history::Series;
use crate::file_names::FileNames;
use crate::render::{RenderError, Templates, wording};

/// More charts would not be looked at.
const MOST_CHARTS: usize = 24;

/// A chart to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The case and its regime, with the report if there are several.
    pub title: String,
    /// The name of the chart's file in the folder of charts.
    pub file: String,
    /// The drawing, which is SVG.
    pub svg: String,
}

/// A chart as a page links to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The text in place of the picture.
    pub title: String,
    /// The path that the link leads to.
    pub target: String,
}

/// Returns the charts of the series that changed most, then of those with breaks, then of the first others.
pub fn charts(reports: &[ReportHistory<'_>]) -> Result<Vec<Chart>, RenderError> {
    let templates = Templates::new()?;
    let mut all: Vec<(&ReportHistory<'_>, &Series<'_>)> =
        reports.iter().flat_map(|report| report.series.iter().map(move |series| (report, series))).collect();
    let size = |series: &Series<'_>| series.changes.iter().map(|change| change.ratio.ln().abs()).fold(0.0, f64::max);
    let rank = |series: &Series<'_>| (size(series), series.breaks.len() as f64);
    all.sort_by(|(_, a), (_, b)| {
        let ((a, x), (b, y)) = (rank(a), rank(b));
        b.total_cmp(&a).then(y.total_cmp(&x))
    });
    all.truncate(MOST_CHARTS);
    let title = |(report, series): &(&ReportHistory<'_>, &Series<'_>)| {
        let name = format!("{}, {}", wording::case_name(series.case), series.regime.name());
        if reports.len() == 1 { name } else { format!("{}: {name}", report.place) }
    };
    let titles: Vec<String> = all.iter().map(title).collect();
    let names = FileNames::for_all(titles.iter().map(|title| (title.as_str(), title.as_str())));
    let chart = |((report, series), (title, name)): ((&ReportHistory<'_>, &Series<'_>), (String, String))| {
        let svg = templates.chart(&timeline::draw(&title, series, &report.commits))?;
        Ok(Chart { file: format!("{name}.svg"), title, svg })
    };
    all.into_iter().zip(titles.into_iter().zip(names)).map(chart).collect()
}

/// Links from a page to the charts in a folder, relative to the page's folder if the charts are in it.
pub fn links(charts: &[Chart], dir: &Path, page: Option<&Path>) -> Vec<Link> {
    let beside = page.and_then(Path::parent).and_then(|parent| dir.strip_prefix(parent).ok());
    let dir = beside.unwrap_or(dir);
    let link = |chart: &Chart| Link { title: chart.title.clone(), target: dir.join(&chart.file).display().to_string() };
    charts.iter().map(link).collect()
}
