//! The comparison as JSON. `docs/reference/compare.md` describes the fields.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Compared;
use crate::RenderError;
use crate::claims::detail;
use runner_results::analyse::JudgedClaim;
use runner_results::analyse::compare::{
    Alone, CauseKind, Change, ClaimChange, ClaimKind, ClockOffset, CountedBy, CounterChange, DifferenceKind, Differs,
    Failed, Gate, InstructionChange, Kind, LineChange, Newcomer, OperationChange, ReportComparison, SourceChange,
    TimeChange, Undecided,
};
use runner_results::analyse::stale::Staleness;
use runner_types::{Acceptance, BackendKind, ManifestComparison, Outcome, Regime, Unit, Value};

/// Format version, raised when an older reader would misread the new form.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Page<'a> {
    version: u32,
    verdict: Gate,
    counts: BTreeMap<&'static str, usize>,
    times_compared: usize,
    base: &'a str,
    new: &'a str,
    only_in_base: Vec<&'a str>,
    only_in_new: Vec<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    manifests: &'a [ManifestComparison],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    base_faults: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    base_stale: &'a [Staleness],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    new_stale: &'a [Staleness],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failed: &'a [Failed],
    reports: Vec<Report<'a>>,
}

#[derive(Serialize)]
struct Report<'a> {
    experiment: &'a str,
    title: &'a str,
    device: &'a str,
    backend: BackendKind,
    base: Side<'a>,
    new: Side<'a>,
    /// Whether the times may come from two GPUs of the same model.
    two_gpus: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clock_offsets: Vec<Offset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slower_pace: Option<f64>,
    differences: &'a [Differs<DifferenceKind>],
    causes: &'a [Differs<CauseKind>],
    /// The new report's times divided by the base report's.
    geometric_mean: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<Claim<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<&'a [SourceChange]>,
    changes: Vec<Row<'a>>,
}

/// Clock offset of the new report or of one group, in nanoseconds.
#[derive(Serialize)]
struct Offset {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    nanoseconds: f64,
    error: f64,
    rows: usize,
}

#[derive(Serialize)]
struct Claim<'a> {
    text: &'a str,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
    change: ClaimKind,
    fails: bool,
    base: Judged,
    new: Judged,
}

#[derive(Serialize)]
struct Judged {
    state: &'static str,
    detail: String,
    groups: usize,
    groups_in_state: usize,
}

#[derive(Serialize)]
struct Side<'a> {
    place: &'a str,
    complete: bool,
    narrowed: Option<&'a str>,
    without_hashes: usize,
    spread_known: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    variant: &'a str,
    axes: BTreeMap<&'a str, &'a Value>,
    regime: Option<Regime>,
    change: Kind,
    base_outcome: Option<&'static str>,
    new_outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_by: Option<CountedBy>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    counters: &'a [CounterChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    lines: &'a [LineChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    undecided: &'a [Undecided],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    operations: &'a [OperationChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    instructions: &'a [InstructionChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    differences: &'a [Differs<DifferenceKind>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    causes: &'a [Differs<CauseKind>],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    informs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a Acceptance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newcomer: Option<New<'a>>,
}

/// A case that only the new report has.
#[derive(Serialize)]
struct New<'a> {
    time_ns: Option<f64>,
    time_interval_ns: Option<[f64; 2]>,
    place: Option<usize>,
    places: Option<usize>,
    speedup: Option<f64>,
    counts: BTreeMap<&'a str, f64>,
}

#[derive(Serialize)]
struct Time {
    clock: &'static str,
    base_ns: f64,
    base_interval_ns: [f64; 2],
    new_ns: f64,
    new_interval_ns: [f64; 2],
    ratio: f64,
    ratio_interval: Option<[f64; 2]>,
    confidence: Option<f64>,
    threshold: Option<f64>,
}

pub fn json(compared: Compared<'_>) -> Result<String, RenderError> {
    let comparison = compared.comparison;
    let counts = comparison.counts();
    let page = Page {
        version: VERSION,
        verdict: comparison.gate(),
        counts: Kind::ALL.iter().map(|kind| (kind.name(), counts.get(kind).copied().unwrap_or(0))).collect(),
        times_compared: comparison.tests,
        base: &compared.labels[0],
        new: &compared.labels[1],
        only_in_base: places(&comparison.alone[0]),
        only_in_new: places(&comparison.alone[1]),
        manifests: &compared.comparison.manifests,
        failed: &compared.comparison.failed,
        base_faults: compared.faults,
        base_stale: &comparison.stale[0],
        new_stale: &comparison.stale[1],
        reports: comparison.reports.iter().zip(compared.places).map(|(r, places)| report(r, places)).collect(),
    };
    Ok(serde_json::to_string(&page)? + "\n")
}

fn places(reports: &[Alone]) -> Vec<&str> {
    reports.iter().map(|report| report.place.as_str()).collect()
}

fn report<'a>(report: &'a ReportComparison, [base, new]: &'a [String; 2]) -> Report<'a> {
    let side = |place: &'a str, side: usize| {
        let limits = &report.limits[side];
        Side {
            place,
            complete: !limits.is_incomplete,
            narrowed: limits.narrowed.as_deref(),
            without_hashes: limits.without_hashes,
            spread_known: !limits.lacks_spread,
        }
    };
    Report {
        experiment: &report.experiment,
        title: &report.title,
        device: &report.device,
        backend: report.backend,
        base: side(base, 0),
        new: side(new, 1),
        two_gpus: report.may_be_two_gpus,
        clock_offsets: report.clock_offsets.iter().map(offset).collect(),
        slower_pace: report.pace.map(|pace| pace.slower),
        differences: &report.differences,
        causes: &report.causes,
        geometric_mean: report.geomean.map(|geomean| geomean.ratio),
        claims: report.claims.iter().map(claim).collect(),
        sources: report.sources.as_deref(),
        changes: report.changes.iter().map(row).collect(),
    }
}

fn offset(offset: &ClockOffset) -> Offset {
    let ClockOffset { group, nanoseconds, error, rows } = offset;
    Offset { group: group.as_ref().map(ToString::to_string), nanoseconds: *nanoseconds, error: *error, rows: *rows }
}

fn claim(change: &ClaimChange) -> Claim<'_> {
    let ClaimChange { kind, base, new, .. } = change;
    let judged = |judged: &JudgedClaim| Judged {
        state: judged.state.name(),
        detail: detail(judged),
        groups: judged.groups.len(),
        groups_in_state: judged.count(),
    };
    Claim {
        text: &new.claim.text,
        condition: new.claim.condition.as_deref(),
        change: *kind,
        fails: change.fails(),
        base: judged(base),
        new: judged(new),
    }
}

fn row(change: &Change) -> Row<'_> {
    let [base, new] = change.outcomes.each_ref().map(|outcome| outcome.as_ref().map(Outcome::name));
    Row {
        variant: &change.case.key.variant,
        axes: change.case.key.axes.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        regime: change.regime,
        change: change.kind,
        base_outcome: base,
        new_outcome: new,
        time: change.time.as_ref().map(time),
        counted_by: change.counted_by,
        counters: &change.counters,
        lines: &change.lines,
        undecided: &change.undecided,
        operations: &change.operations,
        instructions: &change.instructions,
        differences: &change.differences,
        causes: &change.causes,
        informs: change.informs,
        accepted: change.accepted.as_ref(),
        newcomer: change.newcomer.as_ref().map(newcomer),
    }
}

fn newcomer(new: &Newcomer) -> New<'_> {
    New {
        time_ns: new.time.map(|time| time.point),
        time_interval_ns: new.time.map(|time| [time.low, time.high]),
        place: new.place.map(|(place, _)| place),
        places: new.place.map(|(_, places)| places),
        speedup: new.speedup,
        counts: new.counts.iter().map(|(name, count, _)| (name.as_str(), *count)).collect(),
    }
}

fn time(time: &TimeChange) -> Time {
    Time {
        clock: match time.unit {
            Unit::DeviceNanoseconds => "device",
            Unit::HostNanoseconds => "host",
        },
        base_ns: time.base.point,
        base_interval_ns: [time.base.low, time.base.high],
        new_ns: time.new.point,
        new_interval_ns: [time.new.low, time.new.high],
        ratio: time.ratio,
        ratio_interval: time.interval.map(|interval| [interval.low, interval.high]),
        confidence: time.interval.map(|interval| interval.confidence),
        threshold: time.threshold,
    }
}
