//! The history as JSON. `docs/reference/history.md` describes the fields.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ReportHistory, words};
use crate::RenderError;
use runner_results::analyse::history::{Change, Series};
use runner_results::analyse::stale::Staleness;
use runner_types::{Commit, Regime, Value};

/// Format version, raised when an older reader would misread the new form.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Page<'a> {
    version: u32,
    reports: Vec<Report<'a>>,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(rename = "report")]
    place: &'a str,
    revisions: Vec<Revision<'a>>,
    series: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<NotRead<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<&'a Staleness>,
}

#[derive(Serialize)]
struct Revision<'a> {
    commit: &'a str,
    date: &'a str,
    subject: &'a str,
}

#[derive(Serialize)]
struct NotRead<'a> {
    commit: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    variant: &'a str,
    axes: BTreeMap<&'a str, &'a Value>,
    regime: Regime,
    points: Vec<Point>,
    breaks: Vec<Break>,
    changes: Vec<Step>,
}

#[derive(Serialize)]
struct Point {
    /// Index in the list of revisions.
    revision: usize,
    time_ns: f64,
    interval_ns: [f64; 2],
    error: f64,
}

#[derive(Serialize)]
struct Break {
    /// Index of the first revision after the break.
    revision: usize,
    what: Vec<&'static str>,
    reasons: String,
}

#[derive(Serialize)]
struct Step {
    revision: usize,
    ratio: f64,
    ratio_interval: [f64; 2],
    confidence: f64,
    p: f64,
    causes: String,
}

pub fn json(reports: &[ReportHistory<'_>]) -> Result<String, RenderError> {
    let page = Page { version: VERSION, reports: reports.iter().map(report).collect() };
    Ok(serde_json::to_string(&page)? + "\n")
}

fn report<'a>(report: &'a ReportHistory<'_>) -> Report<'a> {
    let revision = |commit: &'a Commit| Revision { commit: &commit.id, date: &commit.date, subject: &commit.subject };
    Report {
        place: report.place,
        revisions: report.commits.iter().map(revision).collect(),
        series: report.series.iter().map(row).collect(),
        unread: report.unread.iter().map(|unread| NotRead { commit: &unread.commit.id, why: &unread.why }).collect(),
        stale: report.stale.as_ref(),
    }
}

fn row<'a>(series: &'a Series<'_>) -> Row<'a> {
    let revision = |point: usize| series.points[point].revision;
    let points = series.points.iter().map(|point| Point {
        revision: point.revision,
        time_ns: point.time.point,
        interval_ns: [point.time.low, point.time.high],
        error: point.error,
    });
    let breaks = series.breaks.iter().map(|at| Break {
        revision: revision(at.point),
        what: words::names(at),
        reasons: words::reasons(at),
    });
    let step = |change: &Change| Step {
        revision: revision(change.point),
        ratio: change.ratio,
        ratio_interval: [change.interval.low, change.interval.high],
        confidence: change.interval.confidence,
        p: change.p,
        causes: words::causes(change),
    };
    Row {
        variant: &series.case.key.variant,
        axes: series.case.key.axes.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        regime: series.regime,
        points: points.collect(),
        breaks: breaks.collect(),
        changes: series.changes.iter().map(step).collect(),
    }
}
