//! The times of each case over revisions: where they changed, and where they cannot be compared.
//!
//! A series breaks wherever the thing measured is no longer the same (device, driver, toolkit, timing, work, check,
//! inputs). Such a break is never a change. Between breaks, a search for change points runs on the log times; each time
//! has an error from its interval and the spread between processes. `docs/explanation/history.md` explains the
//! statistics.

use std::collections::HashMap;

use super::compare::{self, CauseKind, DifferenceKind, Differs, Interval, Pair};
use super::times::deviation_between_runs;
use runner_stats::Reading;
use runner_types::{Case, CaseKey, CaseRecord, Estimate, Records, Regime, RegimeResult, Unit};

/// Probability of reporting a change in any series of a report in which nothing changed.
pub const LEVEL: f64 = 0.05;

/// Maximum significance level for a single series, so that a report with few cases is judged as strictly as a large
/// one.
pub const MOST_LEVEL: f64 = 0.01;

/// Default for the smallest reported shift, as a fraction.
pub const LEAST_SHIFT: f64 = 0.005;

/// Times of a case in one regime over revisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<'a> {
    /// The case in the newest revision that timed it.
    pub case: &'a Case,
    pub regime: Regime,
    /// Measurements, oldest first.
    pub points: Vec<Point>,
    /// Points at which times stop being comparable with earlier ones.
    pub breaks: Vec<Break>,
    /// Points at which the times changed.
    pub changes: Vec<Change>,
}

/// Time measured for a revision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub revision: usize,
    /// Nanoseconds, with the interval within its process.
    pub time: Estimate,
    /// Standard error of the log time; includes the spread between processes if known.
    pub error: f64,
}

/// A point at which the series stops being comparable with earlier points.
#[derive(Debug, Clone, PartialEq)]
pub struct Break {
    /// Index of the first point after the break.
    pub point: usize,
    /// Differences of the report and of the case.
    pub differences: Vec<Differs<DifferenceKind>>,
    pub toolkit: Option<Differs<CauseKind>>,
}

/// A point at which the times of a series change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first point after the change.
    pub point: usize,
    /// Time after the change divided by the time before.
    pub ratio: f64,
    /// 95 % confidence interval of the ratio.
    pub interval: Interval,
    /// Upper bound of the p-value: the probability of such a change if nothing changed.
    pub p: f64,
    /// What else changed at that point, as far as the records show.
    pub causes: Vec<Differs<CauseKind>>,
}

impl Series<'_> {
    /// Ranges of points between breaks and changes.
    pub fn levels(&self) -> Vec<(usize, usize)> {
        let inner = self.breaks.iter().map(|at| at.point).chain(self.changes.iter().map(|at| at.point));
        let mut ends: Vec<usize> = inner.chain([0, self.points.len()]).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// Maximum number of points between two breaks.
    pub fn longest_stretch(&self) -> usize {
        stretches(&self.breaks, self.points.len()).into_iter().map(|(start, end)| end - start).max().unwrap_or(0)
    }
}

/// The series of all timed cases for which `is_wanted` is true, the newest revision's cases first. Revisions must be in
/// chronological order; `least` is the smallest shift to report, as a fraction.
pub fn history<'a>(revisions: &[&'a Records], is_wanted: impl Fn(&CaseKey) -> bool, least: f64) -> Vec<Series<'a>> {
    let mut places: HashMap<(&CaseKey, Regime), usize> = HashMap::new();
    let mut timed: Vec<Vec<Timed<'a>>> = Vec::new();
    for (revision, records) in revisions.iter().enumerate() {
        for case in records.cases.iter().filter(|case| is_wanted(&case.case.key)) {
            let Some(result) = case.result.as_ref().filter(|result| result.time.low > 0.0) else { continue };
            let place = *places.entry((&case.case.key, result.regime)).or_insert(timed.len());
            if place == timed.len() {
                timed.push(Vec::new());
            }
            timed[place].push(Timed { revision, records, case, result });
        }
    }
    timed.sort_by_key(|rows| rows.last().map(|row| (revisions.len() - row.revision, row.case.case.ordinal)));
    let level = (LEVEL / timed.len().max(1) as f64).min(MOST_LEVEL);
    timed.iter().filter_map(|rows| series(rows, level, least.ln_1p())).collect()
}

#[derive(Clone, Copy)]
struct Timed<'a> {
    revision: usize,
    records: &'a Records,
    case: &'a CaseRecord,
    result: &'a RegimeResult,
}

fn series<'a>(rows: &[Timed<'a>], level: f64, least: f64) -> Option<Series<'a>> {
    let newest = rows.last()?;
    let (measured, breaks) = measured(rows);
    let points: Vec<Point> = measured.iter().map(point).collect();
    let readings: Vec<Reading> =
        points.iter().map(|point| Reading { value: point.time.point.ln(), error: point.error }).collect();
    let mut changes = Vec::new();
    for (start, end) in stretches(&breaks, points.len()) {
        let found = runner_stats::change_points(&readings[start..end], level, least);
        changes.extend(found.iter().map(|found| change(found, start, &measured)));
    }
    Some(Series { case: &newest.case.case, regime: newest.result.regime, points, breaks, changes })
}

/// The measurements, and where they are not comparable with earlier ones. Records whose estimates are identical come
/// from the same measurement: they were converted, or kept by a resumed run.
fn measured<'a>(rows: &[Timed<'a>]) -> (Vec<Timed<'a>>, Vec<Break>) {
    let (mut kept, mut breaks): (Vec<Timed<'a>>, Vec<Break>) = (Vec::new(), Vec::new());
    let mut before: Option<&Timed<'a>> = None;
    for row in rows {
        if let Some(before) = before {
            let pair = Pair { base: before.records, new: row.records };
            let differences = compare::differences(pair, [before.case, row.case]);
            let toolkit = compare::toolkit_change(pair);
            if !(differences.is_empty() && toolkit.is_none()) {
                breaks.push(Break { point: kept.len(), differences, toolkit });
            } else if before.result.time == row.result.time {
                continue;
            }
        }
        kept.push(*row);
        before = Some(row);
    }
    (kept, breaks)
}

fn point(row: &Timed<'_>) -> Point {
    let time = row.result.time;
    let within = (time.high / time.low).ln() / 2.0 / runner_stats::normal_two_sided(1.0 - time.confidence);
    let spread = row.records.environment.machine.spread.as_ref();
    let spread = spread.filter(|_| row.result.unit == Unit::DeviceNanoseconds);
    let processes = spread.map_or(0.0, |spread| deviation_between_runs(spread, row.result));
    let within = if within.is_finite() { within } else { 0.0 };
    Point { revision: row.revision, time, error: within.hypot(processes) }
}

/// Ranges of points between breaks.
fn stretches(breaks: &[Break], points: usize) -> Vec<(usize, usize)> {
    let ends: Vec<usize> = std::iter::once(0).chain(breaks.iter().map(|at| at.point)).chain([points]).collect();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn change(found: &runner_stats::ChangePoint, start: usize, measured: &[Timed<'_>]) -> Change {
    let point = start + found.index;
    let (before, after) = (&measured[point - 1], &measured[point]);
    let pair = Pair { base: before.records, new: after.records };
    let end = |sign: f64| (found.shift + sign * found.half_width).exp();
    Change {
        point,
        ratio: found.shift.exp(),
        interval: Interval { low: end(-1.0), high: end(1.0), confidence: 0.95 },
        p: found.p,
        causes: compare::causes(pair, [before.case, after.case]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Point, Records, history};
    use crate::analyse::compare::tests::fixture::{SPREAD, records, timed};

    /// The half-width of 2 % of a 2 µs median is 1.96 standard errors. Processes vary by 50 ns, which is 2.5 %, and by
    /// 0.1 %.
    #[test]
    fn the_error_of_a_point_is_that_of_its_samples_and_of_its_process() {
        let error = |records: &Records| match &history(&[records], |_| true, 0.0)[..] {
            [series] => series.points.iter().map(|Point { error, .. }| *error).sum::<f64>(),
            other => panic!("{other:?}"),
        };
        let mut report = records(vec![timed(1, 2000.0, 0.02)]);
        let of_samples = 0.02 / 1.959_963_984_540_054;
        let expected = f64::hypot(of_samples, (SPREAD.nanoseconds / 2000.0).hypot(SPREAD.relative));
        assert!((error(&report) / expected - 1.0).abs() < 1e-9, "{} instead of {expected}", error(&report));
        report.environment.machine.spread = None;
        assert!((error(&report) / of_samples - 1.0).abs() < 1e-9, "{} instead of {of_samples}", error(&report));
    }
}
