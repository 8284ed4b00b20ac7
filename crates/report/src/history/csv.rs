//! The history as CSV in full precision: one row per case, regime and revision.

use super::{ReportHistory, words};
use crate::RenderError;
use crate::columns::full;
use crate::comparison::csv::axes;
use crate::csv::table;
use runner_results::analyse::history::{Change, Point, Series};
use runner_types::Commit;

/// A time in the history of a report.
struct Row<'a> {
    report: &'a str,
    commit: &'a Commit,
    series: &'a Series<'a>,
    /// Index among the case's points.
    place: usize,
    point: &'a Point,
}

impl Row<'_> {
    /// The change that starts at this point.
    fn change(&self) -> Option<&Change> {
        self.series.changes.iter().find(|change| change.point == self.place)
    }

    /// Why the time is not comparable with earlier ones.
    fn breaks(&self) -> String {
        self.series.breaks.iter().find(|at| at.point == self.place).map(words::reasons).unwrap_or_default()
    }
}

type Cell = fn(&Row<'_>) -> String;

const COLUMNS: [(&str, Cell); 15] = [
    ("report", |row| row.report.to_owned()),
    ("variant", |row| row.series.case.key.variant.clone()),
    ("axes", |row| axes(&row.series.case.key.axes)),
    ("regime", |row| row.series.regime.name().to_owned()),
    ("commit", |row| row.commit.id.clone()),
    ("date", |row| row.commit.date.clone()),
    ("subject", |row| row.commit.subject.clone()),
    ("time_ns", |row| full(Some(row.point.time.point))),
    ("time_low_ns", |row| full(Some(row.point.time.low))),
    ("time_high_ns", |row| full(Some(row.point.time.high))),
    ("error", |row| full(Some(row.point.error))),
    ("break", |row| row.breaks()),
    ("change", |row| full(row.change().map(|change| change.ratio))),
    ("change_low", |row| full(row.change().map(|change| change.interval.low))),
    ("change_high", |row| full(row.change().map(|change| change.interval.high))),
];

/// CSV per RFC 4180, formatted like `results.csv`.
pub fn csv(reports: &[ReportHistory<'_>]) -> Result<String, RenderError> {
    let all = reports.iter().flat_map(|report| report.series.iter().map(move |series| (report, series)));
    let rows = all.flat_map(|(report, series)| {
        series.points.iter().enumerate().map(move |(place, point)| {
            let commit = &report.commits[point.revision];
            let row = Row { report: report.place, commit, series, place, point };
            COLUMNS.map(|(_, cell)| cell(&row))
        })
    });
    table(std::iter::once(COLUMNS.map(|(name, _)| name.to_owned())).chain(rows))
}
