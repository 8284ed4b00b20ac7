//! Writes the times for programs, in full precision: one row per case, regime and revision.

use super::{ReportHistory, words};
use crate::render::comparison::csv::{axes, full};
use crate::render::{RenderError, escape};

const COLUMNS: [&str; 15] = [
    "report",
    "variant",
    "axes",
    "regime",
    "commit",
    "date",
    "subject",
    "time_ns",
    "time_low_ns",
    "time_high_ns",
    "error",
    "break",
    "change",
    "change_low",
    "change_high",
];

/// Returns the text, by RFC 4180 as `results.csv`.
pub fn csv(reports: &[ReportHistory<'_>]) -> Result<String, RenderError> {
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for report in reports {
        for series in &report.series {
            for (i, point) in series.points.iter().enumerate() {
                let commit = &report.commits[point.revision];
                let key = &series.case.key;
                let at = series.breaks.iter().find(|at| at.point == i);
                let change = series.changes.iter().find(|change| change.point == i);
                let row = [
                    report.place.to_owned(),
                    key.variant.clone(),
                    axes(&key.axes),
                    series.regime.name().to_owned(),
                    commit.id.clone(),
                    commit.date.clone(),
                    commit.subject.clone(),
                    full(Some(point.time.point)),
                    full(Some(point.time.low)),
                    full(Some(point.time.high)),
                    full(Some(point.error)),
                    at.map(words::reasons).unwrap_or_default(),
                    full(change.map(|change| change.ratio)),
                    full(change.map(|change| change.interval.low)),
                    full(change.map(|change| change.interval.high)),
                ];
                writer.write_record(row.map(|text| escape::cell(&text).into_owned()))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| RenderError::Csv(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
