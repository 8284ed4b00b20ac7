//! Creates one record for each case and regime.

mod paired;

use std::collections::HashMap;

use rayon::prelude::*;

use super::attempts::{self, Folded, Settled};
use super::bootstraps::Bootstraps;
use super::contender::{contender, is_baseline};
use super::ratios::{Side, control_noise, noise_beside, pooled, reproducible, speedup};
use super::roofline;
use super::times::{estimate, time_of};
use crate::journal::History;
use runner_types::{
    BodyCounters, CaseRecord, Environment, Event, FormedRatios, GroupKey, Measurement, NoiseFloor, Note, Outcome,
    Ratio, Records, Regime, RegimeResult, RunHeader, SmClock, Spread, Unchecked, Verdict,
};

pub use paired::{PairedRatio, paired_ratios};

/// Nominal confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Why records cannot be created from events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalyseError {
    /// The events do not include the start of a run.
    #[error("the journal has no run: it ends before the line that describes one")]
    NoRun,
}

/// Creates the records of the last run, including results of earlier runs that it kept.
///
/// Every planned case has at least one record; a case that never finished is `NotRun`. A case that is wrong or failed
/// has no result, even if it was measured before.
pub fn records(events: &[Event]) -> Result<Records, AnalyseError> {
    records_of(History::fold(events.iter().cloned()))
}

/// Creates the records of a history. Consumes it, so that a large journal is in memory only once.
pub fn records_of(history: History) -> Result<Records, AnalyseError> {
    records_and_ratios(history).map(|(records, _)| records)
}

/// Creates the records, and one event per group with newly computed ratios. If these events are stored, the records can
/// be recreated without computing the ratios again.
pub fn records_and_ratios(history: History) -> Result<(Records, Vec<Event>), AnalyseError> {
    attempts::fold(history).map(records_of_cases).ok_or(AnalyseError::NoRun)
}

/// Creates the records of a run whose groups were folded separately. `events` are all other events, including the start
/// of the run and its plan.
pub fn records_of_groups(
    events: impl IntoIterator<Item = Event>,
    groups: Vec<History>,
) -> Result<Records, AnalyseError> {
    let mut history = History::fold(events);
    for group in groups {
        history.extend(group);
    }
    records_of(history)
}

fn records_of_cases(folded: Folded) -> (Records, Vec<Event>) {
    let Folded { mut header, environment, mut cases, finished, mut ratios } = folded;
    cases.par_iter_mut().for_each(|case| suspect(case, &environment));
    let by_case: Vec<Vec<Row<'_>>> = cases.par_iter().map(rows_of).collect();
    let groups = by_group(&by_case);
    let has_clock = environment.device.capabilities.has_clock;
    let of_group = |row: &Row<'_>| groups.get(&row.settled.case.group).map_or(&[][..], Vec::as_slice);
    let (floors, of_controls) = noise(&by_case, &ratios);
    header.noise = floors;
    // Comparing with the control over all of its rounds needs the same ratio.
    ratios.extend(of_controls.iter().flatten().map(|(name, ratio)| (name.clone(), *ratio)));
    let of_rows = |rows: &Vec<Row<'_>>| {
        let bootstraps = Bootstraps::new(&ratios);
        let known = Known { header: &header, spread: environment.machine.spread.as_ref(), bootstraps: &bootstraps };
        let results = rows.iter().map(|row| result(known, row, of_group(row))).collect();
        (results, bootstraps.into_formed())
    };
    let (results, of_rows): (Vec<Vec<Option<RegimeResult>>>, Vec<FormedRatios>) =
        by_case.par_iter().map(of_rows).unzip();
    let formed = formed_by_group(&by_case, [of_controls, of_rows]);
    let records: Vec<CaseRecord> =
        cases.into_iter().zip(results).flat_map(|(settled, results)| of_case(settled, results, has_clock)).collect();
    header.complete = finished && !records.iter().any(|r| matches!(r.outcome, Outcome::NotRun { .. }));
    (Records { header, environment, cases: records }, formed)
}

/// Marks a case as suspect if it is faster than the device can do its work. Its timed launch did not do the work, so it
/// counts as not measured.
fn suspect(settled: &mut Settled, environment: &Environment) {
    if !matches!(settled.outcome, Some(Outcome::Measured | Outcome::Unstable { .. })) {
        return;
    }
    let found = settled.attempt.measurements.iter().find_map(|m| {
        let whole: Vec<f64> = m.rounds.iter().map(|r| r.whole).collect();
        roofline::suspect(m.regime, m.unit, &estimate(&whole, CONFIDENCE)?, &settled.work, environment)
    });
    if found.is_some() {
        settled.outcome = found;
    }
}

/// Facts about the run and the machine as a whole.
#[derive(Debug, Clone, Copy)]
struct Known<'a> {
    header: &'a RunHeader,
    /// Spread between processes on this machine.
    spread: Option<&'a Spread>,
    bootstraps: &'a Bootstraps<'a>,
}

/// A record under construction: a case with one of its measurements, if any.
struct Row<'a> {
    settled: &'a Settled,
    side: Option<Side<'a>>,
    each: Vec<runner_types::Estimate>,
}

fn rows_of(settled: &Settled) -> Vec<Row<'_>> {
    let mut measurements: Vec<&Measurement> = settled.attempt.measurements.iter().collect();
    measurements.sort_by_key(|m| m.regime);
    let sound = matches!(settled.outcome, Some(Outcome::Measured | Outcome::Unstable { .. }))
        && !matches!(settled.attempt.verdict, Some(Verdict::Mismatch(_)));
    let mut rows: Vec<Row<'_>> = Vec::new();
    for measurement in measurements.into_iter().filter(|_| sound) {
        let Some((time, processes)) = time_of(measurement, CONFIDENCE) else { continue };
        let side = Some(Side { measurement, time, processes, session: settled.attempt.session });
        rows.push(Row { settled, side, each: each_launch(measurement) });
    }
    if rows.is_empty() {
        rows.push(Row { settled, side: None, each: Vec::new() });
    }
    rows
}

/// Estimate for each launch of a sequence; empty if the number of launches differs between rounds.
fn each_launch(measurement: &Measurement) -> Vec<runner_types::Estimate> {
    let launches = measurement.rounds.first().map_or(0, |r| r.each.len());
    if measurement.rounds.iter().any(|r| r.each.len() != launches) {
        return Vec::new();
    }
    let of_launch = |i: usize| measurement.rounds.iter().map(|r| r.each[i]).collect::<Vec<f64>>();
    (0..launches).map_while(|i| estimate(&of_launch(i), CONFIDENCE)).collect()
}

/// Noise floor of each regime, pooled over the groups with an A/A control, and the ratios computed for each case's
/// control.
fn noise(by_case: &[Vec<Row<'_>>], known: &FormedRatios) -> (Vec<NoiseFloor>, Vec<FormedRatios>) {
    let of_case = |rows: &Vec<Row<'_>>| {
        let bootstraps = Bootstraps::new(known);
        let noise = |measurement: &Measurement| control_noise(&bootstraps, measurement, CONFIDENCE);
        let of_side = |side: Side<'_>| Some((side.measurement.regime, noise(side.measurement)?));
        let noises: Vec<(Regime, f64)> = rows.iter().filter_map(|row| row.side).filter_map(of_side).collect();
        (noises, bootstraps.into_formed())
    };
    let (noises, formed): (Vec<Vec<(Regime, f64)>>, Vec<FormedRatios>) = by_case.par_iter().map(of_case).unzip();
    let pool = |regime: Regime| {
        let own = noises.iter().flatten().filter(|(other, _)| *other == regime);
        let noises: Vec<f64> = own.map(|(_, noise)| *noise).collect();
        let comparisons = noises.len() as u32;
        Some(NoiseFloor { regime, width: pooled(noises)?, comparisons })
    };
    (Regime::ALL.iter().copied().filter_map(pool).collect(), formed)
}

/// One event per group with the ratios computed for its cases.
fn formed_by_group(by_case: &[Vec<Row<'_>>], formed: [Vec<FormedRatios>; 2]) -> Vec<Event> {
    let mut places: HashMap<&GroupKey, usize> = HashMap::new();
    let mut groups: Vec<(&GroupKey, FormedRatios)> = Vec::new();
    let of_cases = formed.into_iter().flat_map(|formed| by_case.iter().zip(formed));
    for (rows, ratios) in of_cases.filter(|(_, ratios)| !ratios.is_empty()) {
        let Some(Row { settled, .. }) = rows.first() else { continue };
        let key = &settled.case.group;
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, FormedRatios::new()));
        }
        groups[place].1.extend(ratios);
    }
    groups.into_iter().map(|(key, ratios)| Event::RatiosFormed { key: key.clone(), ratios }).collect()
}

fn by_group<'r, 'a>(by_case: &'r [Vec<Row<'a>>]) -> HashMap<&'a GroupKey, Vec<&'r Row<'a>>> {
    let mut groups: HashMap<&GroupKey, Vec<&Row<'_>>> = HashMap::new();
    for row in by_case.iter().flatten() {
        groups.entry(&row.settled.case.group).or_default().push(row);
    }
    groups
}

/// Result of a row; `None` if it has no times.
fn result(known: Known<'_>, row: &Row<'_>, group: &[&Row<'_>]) -> Option<RegimeResult> {
    row.side.map(|side| RegimeResult {
        regime: side.measurement.regime,
        unit: side.measurement.unit,
        time: side.time,
        samples: side.measurement.rounds.len() as u32,
        launches: side.measurement.launches,
        sets: side.measurement.sets,
        working_set: Some(side.measurement.working_set).filter(|bytes| *bytes > 0),
        sm_clock: sm_clock(side.measurement),
        discarded: side.measurement.discarded.len() as u32,
        processes: side.processes,
        each: row.each.clone(),
        against_baseline: against_baseline(known, row, side, group),
        against_previous: against_previous(known, row, side, group),
    })
}

/// The records of a case, one per result; the first has its counters and notes.
fn of_case(settled: Settled, results: Vec<Option<RegimeResult>>, has_clock: bool) -> Vec<CaseRecord> {
    let Settled { case, outcome, work, attempt } = settled;
    let outcome = outcome.unwrap_or_else(|| {
        Outcome::not_run(if attempt.launches.is_empty() {
            "the run ended before this case"
        } else {
            "the run ended while it was measured"
        })
    });
    let verdict = match &outcome {
        Outcome::Wrong { mismatch } => Verdict::Mismatch(mismatch.clone()),
        Outcome::FailedAsExpected { end } if let Outcome::Wrong { mismatch } = &**end => {
            Verdict::Mismatch(mismatch.clone())
        }
        _ => attempt.verdict.unwrap_or(Verdict::Unchecked(Unchecked::NotRun)),
    };
    let mut notes = attempt.notes;
    if attempt.printed_lines > 0 {
        notes.push(Note::Printed { lines: attempt.printed_lines as u64 });
    }
    let measured = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
    let has_times = results.iter().any(Option::is_some);
    if measured && !has_times && attempt.counters.is_none() && has_clock {
        notes.push(Note::NoSamples);
    }
    let (counters, each_counters, lines) = match attempt.counters {
        Some(BodyCounters { whole, each, lines }) => (Some(whole), each, lines),
        None => (None, Vec::new(), Vec::new()),
    };
    let mut results = results.into_iter();
    let first = CaseRecord {
        case,
        fingerprint: attempt.fingerprint,
        hashes: attempt.hashes,
        verdict,
        launches: attempt.launches,
        work,
        result: results.next().flatten(),
        counters,
        each_counters,
        lines,
        error: attempt.error,
        energy: attempt.energy.filter(|_| has_times),
        notes,
        outcome,
    };
    let mut records = Vec::with_capacity(1 + results.len());
    records.extend(results.map(|result| CaseRecord {
        result,
        counters: None,
        each_counters: Vec::new(),
        lines: Vec::new(),
        error: None,
        energy: None,
        notes: Vec::new(),
        ..first.clone()
    }));
    records.insert(0, first);
    records
}

fn sm_clock(measurement: &Measurement) -> Option<SmClock> {
    let mut clocks = measurement.sm_clocks();
    clocks.sort_unstable();
    Some(SmClock { median: *clocks.get(clocks.len() / 2)?, least: *clocks.first()? })
}

fn against_baseline(known: Known<'_>, row: &Row<'_>, side: Side<'_>, group: &[&Row<'_>]) -> Option<Ratio> {
    let header = known.header;
    if is_baseline(header, &row.settled.case) {
        return None;
    }
    let base = group.iter().filter(|other| is_baseline(header, &other.settled.case));
    ratio(known, base.copied(), side, group)
}

/// Compares a row with the nearest earlier variant on the same clock, since a `cpu` variant is not a step.
fn against_previous(known: Known<'_>, row: &Row<'_>, side: Side<'_>, group: &[&Row<'_>]) -> Option<Ratio> {
    let header = known.header;
    if !header.has_steps() {
        return None;
    }
    let place = |r: &Row<'_>| header.variants.iter().position(|v| *v == r.settled.case.key.variant);
    let here = place(row)?;
    let same_clock = |r: &Row<'_>| r.side.is_some_and(|s| s.measurement.unit == side.measurement.unit);
    let before = group.iter().filter(|r| place(r).is_some_and(|p| p < here) && same_clock(r));
    let nearest = before.clone().map(|r| place(r)).max()?;
    ratio(known, before.copied().filter(|r| place(r) == nearest), side, group)
}

/// Speedup of `side` over the result of `bases` that was measured in the same regime.
fn ratio<'r, 'a: 'r>(
    known: Known<'_>,
    mut bases: impl Iterator<Item = &'r Row<'a>>,
    side: Side<'_>,
    group: &[&Row<'_>],
) -> Option<Ratio> {
    let base = bases.find(|b| b.side.is_some_and(|s| s.measurement.regime == side.measurement.regime))?;
    let sides = [base.side?, side];
    let speedup = speedup(known.bootstraps, sides[0], side, CONFIDENCE)?;
    let reproducible = known.spread.and_then(|spread| reproducible(speedup, sides, spread));
    let noise = comparison_noise(known, side, group);
    Some(Ratio { against: contender(known.header, &base.settled.case), speedup, reproducible, noise })
}

/// Noise that a ratio of `side` must exceed to be a difference: the regime's noise floor or, if larger, the A/A
/// control's noise in the same rounds. `None` without a control.
fn comparison_noise(Known { header, bootstraps, .. }: Known<'_>, side: Side<'_>, group: &[&Row<'_>]) -> Option<f64> {
    let regime = side.measurement.regime;
    let floor = header.noise.iter().find(|floor| floor.regime == regime).map(|floor| floor.width);
    let baseline = group.iter().filter(|row| is_baseline(header, &row.settled.case)).filter_map(|row| row.side);
    let beside = baseline.filter(|base| base.measurement.regime == regime);
    floor.into_iter().chain(beside.filter_map(|base| noise_beside(bootstraps, base, side, CONFIDENCE))).reduce(f64::max)
}
