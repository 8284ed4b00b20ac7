//! The comparison as CSV in full precision: one row per case and regime.

use super::{Compared, words};
use crate::RenderError;
use crate::columns::full;
use crate::csv::table;
use runner_results::analyse::compare::{Change, Interval, ReportComparison};
use runner_types::Value;

type Cell = fn(&ReportComparison, &Change) -> String;

const COLUMNS: [(&str, Cell); 16] = [
    ("experiment", |report, _| report.experiment.clone()),
    ("device", |report, _| report.device.clone()),
    ("variant", |_, change| change.case.key.variant.clone()),
    ("axes", |_, change| axes(&change.case.key.axes)),
    ("regime", |_, change| change.regime.map(|regime| regime.name().to_owned()).unwrap_or_default()),
    ("change", |_, change| change.kind.name().to_owned()),
    ("base_outcome", |_, change| outcome(change, 0)),
    ("new_outcome", |_, change| outcome(change, 1)),
    ("base_ns", |_, change| full(change.time.as_ref().map(|time| time.base.point))),
    ("new_ns", |_, change| full(new_time(change))),
    ("ratio", |_, change| full(change.time.as_ref().map(|time| time.ratio))),
    ("ratio_low", |_, change| full(interval(change).map(|interval| interval.low))),
    ("ratio_high", |_, change| full(interval(change).map(|interval| interval.high))),
    ("confidence", |_, change| full(interval(change).map(|interval| interval.confidence))),
    ("threshold", |_, change| full(change.time.as_ref().and_then(|time| time.threshold))),
    ("why", |report, change| words::why(change, report)),
];

/// CSV per RFC 4180, formatted like `results.csv`.
pub fn csv(compared: Compared<'_>) -> Result<String, RenderError> {
    let reports = compared.comparison.reports.iter();
    let rows = reports.flat_map(|report| report.changes.iter().map(move |change| (report, change)));
    let rows = rows.map(|(report, change)| COLUMNS.map(|(_, cell)| cell(report, change)));
    table(std::iter::once(COLUMNS.map(|(name, _)| name.to_owned())).chain(rows))
}

/// Lists axes in one cell: `n=1024; type=i32`.
pub fn axes(axes: &[(String, Value)]) -> String {
    axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
}

fn outcome(change: &Change, side: usize) -> String {
    change.outcomes[side].as_ref().map(|outcome| outcome.name().to_owned()).unwrap_or_default()
}

fn new_time(change: &Change) -> Option<f64> {
    let newcomer = || change.newcomer.as_ref()?.time;
    change.time.as_ref().map(|time| time.new).or_else(newcomer).map(|time| time.point)
}

fn interval(change: &Change) -> Option<Interval> {
    change.time.as_ref()?.interval
}
