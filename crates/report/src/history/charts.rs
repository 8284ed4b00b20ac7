//! Charts of a history: one per series, largest changes first.

use std::path::Path;

use serde::Serialize;

use super::{ReportHistory, timeline};
use crate::{RenderError, Templates, wording};
use runner_files::file_names::FileNames;
use runner_results::analyse::history::Series;

/// Maximum number of charts; nobody would look at more.
const MOST_CHARTS: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// Case and regime, with the report if there are several.
    pub title: String,
    /// File name in the chart folder.
    pub file: String,
    pub svg: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Alternative text of the image.
    pub title: String,
    pub target: String,
}

type Found<'a> = (&'a ReportHistory<'a>, &'a Series<'a>);

/// Charts of the series that changed most, then of those with breaks, then of the first remaining ones.
pub fn charts(reports: &[ReportHistory<'_>]) -> Result<Vec<Chart>, RenderError> {
    let templates = Templates::new()?;
    let all = ordered(reports);
    let titles: Vec<String> = all.iter().map(|found| title(reports, found)).collect();
    let names = FileNames::for_all(titles.iter().map(|title| (title.as_str(), title.as_str())));
    let chart = |((report, series), (title, name)): (Found<'_>, (String, String))| {
        let svg = templates.chart(&timeline::draw(&title, series, &report.commits))?;
        Ok(Chart { file: format!("{name}.svg"), title, svg })
    };
    all.into_iter().zip(titles.into_iter().zip(names)).map(chart).collect()
}

/// The charts of [`charts`] as SVG elements for embedding in a page.
pub fn drawn(reports: &[ReportHistory<'_>]) -> Result<Vec<String>, RenderError> {
    let templates = Templates::new()?;
    let draw = |(i, found): (usize, Found<'_>)| {
        let mut drawing = timeline::draw(&title(reports, &found), found.1, &found.0.commits);
        drawing.prefix = format!("c{i}-");
        drawing.is_part = true;
        templates.chart(&drawing)
    };
    ordered(reports).into_iter().enumerate().map(draw).collect()
}

fn ordered<'a>(reports: &'a [ReportHistory<'a>]) -> Vec<Found<'a>> {
    let mut all: Vec<Found<'a>> =
        reports.iter().flat_map(|report| report.series.iter().map(move |series| (report, series))).collect();
    let size = |series: &Series<'_>| series.changes.iter().map(|change| change.ratio.ln().abs()).fold(0.0, f64::max);
    let rank = |series: &Series<'_>| (size(series), series.breaks.len() as f64);
    all.sort_by(|(_, a), (_, b)| {
        let ((a, x), (b, y)) = (rank(a), rank(b));
        b.total_cmp(&a).then(y.total_cmp(&x))
    });
    all.truncate(MOST_CHARTS);
    all
}

fn title(reports: &[ReportHistory<'_>], (report, series): &Found<'_>) -> String {
    let name = format!("{}, {}", wording::case_name(series.case), series.regime.name());
    if reports.len() == 1 { name } else { format!("{}: {name}", report.place) }
}

/// Links from a page to the charts in a folder, relative to the page's folder if the charts are below it.
pub fn links(charts: &[Chart], dir: &Path, page: Option<&Path>) -> Vec<Link> {
    let beside = page.and_then(Path::parent).and_then(|parent| dir.strip_prefix(parent).ok());
    let dir = beside.unwrap_or(dir);
    let link = |chart: &Chart| Link { title: chart.title.clone(), target: dir.join(&chart.file).display().to_string() };
    charts.iter().map(link).collect()
}
