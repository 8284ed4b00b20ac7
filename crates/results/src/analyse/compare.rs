//! Compares a base with a new report: what became faster or slower, what is newly wrong, and why.
//!
//! All functions are pure. [`compare`] matches the cases of each pair of reports by key and regime and assigns a
//! [`Kind`] to each. Times are judged over all pairs together, since the confidence level depends on the number of
//! comparisons. `docs/explanation/comparing.md` explains the statistics.

mod accepted;
mod alignment;
mod causes;
mod claims;
mod clock_offset;
mod counts;
mod differences;
mod evidence;
mod fit;
mod instructions;
mod lines;
mod matching;
mod newcomers;
mod operations;
mod pace;
mod sources;
#[cfg(test)]
pub(super) mod tests;
mod time;
mod together;

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::Serialize;
use strum::VariantArray;

use super::Call;
use super::stale::Staleness;
use evidence::Evidence;
use matching::Matched;
use runner_types::{
    Acceptance, BackendKind, Case, CaseKey, CaseRecord, Dim3, ManifestChange, ManifestComparison, ManifestState,
    Outcome, Records, Regime, ResultError, RunHeader, Unit, Verdict,
};

pub use accepted::Excess;
pub use causes::{CauseKind, Code};
pub use claims::{ClaimChange, ClaimKind};
pub use clock_offset::ClockOffset;
pub use counts::{CountedBy, CounterChange, Undecided};
pub use differences::DifferenceKind;
pub use evidence::Interval;
pub use instructions::InstructionChange;
pub use lines::LineChange;
pub use newcomers::Newcomer;
pub use operations::OperationChange;
pub use pace::Pace;
pub use sources::{SourceChange, SourceFile, SourceLine, SourceState, Sources, compare_sources};
pub use time::{BETWEEN_GPUS, LEAST_THRESHOLD, LEVEL, TimeChange};
pub use together::{Together, compare_together};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Smallest change that matters, as a fraction; `None` for each row's default.
    pub threshold: Option<f64>,
    /// Differences to ignore: cases are compared despite them.
    pub allow: Vec<DifferenceKind>,
    /// Differences despite which cases are compared, but without failing a gate.
    pub inform: Vec<DifferenceKind>,
    /// Whether hardware counters can decide too.
    pub gate_counters: bool,
    /// Whether a gate also fails if less is proved: see [`Comparison::proves_less`].
    pub strict: bool,
}

/// Option of the recorded command that turns the simulator's sanitizer off.
const NO_SANITIZER: &str = "--no-sanitize";

/// Two reports of one experiment to compare.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Report from before the change.
    pub base: &'a Records,
    /// Report from after the change.
    pub new: &'a Records,
}

/// How a case changed, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Fails or is wrong only in the new report.
    NewlyWrong,
    Slower,
    /// More work according to the deciding counters.
    MoreWork,
    /// The two sides did not measure the same thing, or a record has no valid interval.
    Incomparable,
    /// The required precision is no longer reached, and the time allows no verdict.
    NewlyUnstable,
    Faster,
    /// Less work according to the deciding counters.
    LessWork,
    /// Failed or was wrong in the base, and is correct now.
    Fixed,
    /// Missing or not measured in the new report.
    Gone,
    /// Missing or not measured in the base.
    New,
    /// Correct now. The base is wrong, but on inputs that it did not have before.
    OtherValues,
    /// Some deciding counters rose and others fell.
    Mixed,
    /// A deciding counter is unknown for one side's machine code.
    Undecided,
    /// It is uncertain whether the time changed by more than the threshold.
    Ambiguous,
    /// Fails or is wrong in both reports.
    StillWrong,
    /// No change that matters.
    Same,
}

impl Kind {
    /// All kinds, in report order.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Comparison of each pair, in the order of the pairs.
    pub reports: Vec<ReportComparison>,
    /// Number of times tested.
    pub tests: usize,
    /// Whether a gate fails if less is proved.
    pub is_strict: bool,
    /// Base and new reports that are not known to be current.
    pub stale: [Vec<Staleness>; 2],
    /// Reports that only the base has, and that only the new side has.
    pub alone: [Vec<Alone>; 2],
    /// Manifests that differ, one per experiment.
    pub manifests: Vec<ManifestComparison>,
    /// Experiments that could not be run.
    pub failed: Vec<Failed>,
}

/// A report of one side only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alone {
    pub place: String,
    pub experiment: String,
    pub device: String,
    pub cases: usize,
    pub claims: usize,
}

impl Alone {
    pub fn new(place: &str, records: &Records) -> Self {
        let keys: HashSet<&CaseKey> = records.cases.iter().map(|record| &record.case.key).collect();
        Self {
            place: place.to_owned(),
            experiment: records.header.experiment.clone(),
            device: records.environment.device.name.clone(),
            cases: keys.len(),
            claims: records.header.claims.len(),
        }
    }
}

/// An experiment that is not compared because it could not be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub experiment: String,
    /// First line of the error.
    pub why: String,
}

/// Comparison of one experiment on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportComparison {
    /// Name from the manifest.
    pub experiment: String,
    /// Title from the manifest.
    pub title: String,
    /// Device of the new report.
    pub device: String,
    /// Backend of the new report.
    pub backend: BackendKind,
    /// Variant with which the new report compares the others, if any.
    pub baseline: Option<String>,
    /// Source files that differ; `None` if the sources of a side are unknown.
    pub sources: Option<Vec<SourceChange>>,
    /// Differences between the reports as a whole, which apply to every case.
    pub differences: Vec<Differs<DifferenceKind>>,
    /// Possible causes that affect every time or count.
    pub causes: Vec<Differs<CauseKind>>,
    /// Why each report may be incomplete.
    pub limits: [Limits; 2],
    /// Change of each case and regime, in the new report's order. Omits cases that neither report measured.
    pub changes: Vec<Change>,
    /// Claims of the new manifest, in its order, followed by removed ones.
    pub claims: Vec<ClaimChange>,
    /// Mean over all cases with compared times, if any.
    pub geomean: Option<Geomean>,
    /// Whether the times may come from two GPUs of one model: the reports say so, or do not identify the GPU.
    pub may_be_two_gpus: bool,
    /// Clock offsets that the ratios were corrected for, the run's own first.
    pub clock_offsets: Vec<ClockOffset>,
    /// Clock pace of the new run, if it differs.
    pub pace: Option<Pace>,
    /// Whether base and new were measured by one run, in the same rounds.
    pub is_paired: bool,
}

/// Why a report may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    pub is_incomplete: bool,
    /// Options that narrowed the run, if any.
    pub narrowed: Option<String>,
    /// Whether it was simulated without the sanitizer.
    pub is_unsanitized: bool,
    /// Number of measured cases without hashes.
    pub without_hashes: usize,
    /// Number of cases with a check that accepts wrong results.
    pub weak_checks: usize,
    /// Whether times were measured on a device whose spread between processes is unknown.
    pub lacks_spread: bool,
}

/// Change of a case in one regime.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The case in the new report or, if missing there, in the base.
    pub case: Case,
    /// `None` if nothing was timed.
    pub regime: Option<Regime>,
    pub kind: Kind,
    /// Outcome in base and new; `None` if the report lacks the case.
    pub outcomes: [Option<Outcome>; 2],
    /// Whether a check accepted the result, in base and new.
    pub passed: [bool; 2],
    /// Whether the base failed on inputs that it did not have before, so that its former result is unknown.
    pub is_base_unknown: bool,
    /// Differences of the new result from its reference, if they were measured.
    pub error: Option<ResultError>,
    /// Differences specific to this case; empty if it is compared without reservations.
    pub differences: Vec<Differs<DifferenceKind>>,
    /// `None` if times are not compared.
    pub time: Option<TimeChange>,
    /// Counters that differ, in the vocabulary's order.
    pub counters: Vec<CounterChange>,
    /// Source of the counts; `None` if counters are not compared.
    pub counted_by: Option<CountedBy>,
    /// Why deciding counts are unknown.
    pub undecided: Vec<Undecided>,
    /// Source lines that differ in text or counts; empty if either side has no counts per line.
    pub lines: Vec<LineChange>,
    /// Opcodes with a changed instruction count; empty if unknown on a side.
    pub operations: Vec<OperationChange>,
    /// Machine instructions that only one side has; empty if there are too many, or if a side does not list them.
    pub instructions: Vec<InstructionChange>,
    /// Possible causes of the change.
    pub causes: Vec<Differs<CauseKind>>,
    /// Whether gates ignore its time and counts, because the caller chose to ignore a difference.
    pub informs: bool,
    /// The manifest's acceptance of the slowdown, if any. The slowdown then fails no gate.
    pub accepted: Option<Acceptance>,
    /// Why acceptances for this case do not cover its slowdown.
    pub exceeds: Option<Excess>,
    /// Comparison of the machine code; `None` if unknown on a side.
    pub code: Option<Code>,
    /// Results of a new case.
    pub newcomer: Option<Newcomer>,
}

impl Change {
    /// A change with only its kind known.
    pub const fn new(case: Case, kind: Kind) -> Self {
        Self {
            case,
            regime: None,
            kind,
            outcomes: [None, None],
            passed: [false, false],
            is_base_unknown: false,
            error: None,
            differences: Vec::new(),
            time: None,
            counters: Vec::new(),
            counted_by: None,
            undecided: Vec::new(),
            lines: Vec::new(),
            operations: Vec::new(),
            instructions: Vec::new(),
            causes: Vec::new(),
            informs: false,
            accepted: None,
            exceeds: None,
            code: None,
            newcomer: None,
        }
    }

    /// Occupancy of both sides if it fell by half or more and no time shows what that costs.
    pub fn halved_occupancy(&self) -> Option<[f64; 2]> {
        let fell = self.causes.iter().filter(|cause| cause.what == CauseKind::Occupancy);
        let mut sides = fell.filter_map(|cause| match (&cause.base, &cause.new) {
            (Fact::Number(base), Fact::Number(new)) => Some([*base, *new]),
            _ => None,
        });
        sides.find(|[base, new]| 2.0 * new <= *base).filter(|_| self.time.is_none())
    }

    /// Whether gates ignore its time and counts.
    pub fn is_excused(&self) -> bool {
        self.informs || self.accepted.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differs<T> {
    pub what: T,
    pub base: Fact,
    pub new: Fact,
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Fact {
    /// The report does not contain it.
    Absent,
    /// A number in the unit of the difference.
    Number(f64),
    Text(String),
    /// Hash of something too long to show.
    Hash(String),
    /// Blocks per grid or threads per block.
    Extent(Dim3),
}

impl<T: Into<f64>> From<Option<T>> for Fact {
    fn from(number: Option<T>) -> Self {
        number.map_or(Self::Absent, |number| Self::Number(number.into()))
    }
}

/// Geometric mean of the time ratios measured by the device's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geomean {
    /// New time divided by the base's.
    pub ratio: f64,
    /// Number of ratios in the mean.
    pub rows: usize,
}

/// Verdict of a gate on a comparison: the first one that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// A case fails or is wrong that was not before.
    NewlyWrong,
    /// A claim of a new report is broken.
    BrokenClaim,
    /// A case is slower or does more work.
    Regression,
    /// A case cannot be compared or, if the gate is strict, less is proved.
    Incomparable,
    Pass,
}

impl Comparison {
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.reports.iter().flat_map(|report| &report.changes)
    }

    /// Number of cases of each kind.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for change in self.changes() {
            *counts.entry(change.kind).or_default() += 1;
        }
        counts
    }

    pub fn claims(&self) -> impl Iterator<Item = &ClaimChange> {
        self.reports.iter().flat_map(|report| &report.claims)
    }

    /// Number of cases with a changed expected result or tolerance.
    pub fn changed_checks(&self) -> usize {
        let is_checked_otherwise =
            |change: &&Change| change.differences.iter().any(|difference| difference.what == DifferenceKind::Check);
        self.changes().filter(is_checked_otherwise).count()
    }

    /// Number of cases in the new reports with a check that accepts wrong results.
    pub fn weak_checks(&self) -> usize {
        self.reports.iter().map(|report| report.limits[1].weak_checks).sum()
    }

    /// Whether less may be proved than before: a claim, a case or a report was removed, checks, inputs or the selection of
    /// cases changed and are not provably as strict, a check accepts wrong results, or a new report is stale.
    pub fn proves_less(&self) -> bool {
        let manifests = || self.manifests.iter();
        self.changes().any(|change| change.kind == Kind::Gone && !change.is_excused())
            || self.claims().any(|claim| claim.kind == ClaimKind::Removed)
            || !self.alone[0].is_empty()
            || manifests().any(|manifest| manifest.state == ManifestState::Deleted)
            || manifests().flat_map(ManifestComparison::changes).any(ManifestChange::may_prove_less)
            || self.weak_checks() > 0
            || self.stale[1].iter().any(Staleness::is_stale)
    }

    /// The first verdict that applies to any change or claim.
    pub fn gate(&self) -> Gate {
        let has = |kind: Kind| self.changes().any(|change| change.kind == kind && !change.is_excused());
        let order = [
            (self.changes().any(|change| change.kind == Kind::NewlyWrong), Gate::NewlyWrong),
            (self.claims().any(ClaimChange::fails), Gate::BrokenClaim),
            (has(Kind::Slower) || has(Kind::MoreWork), Gate::Regression),
            (has(Kind::Incomparable) || (self.is_strict && self.proves_less()), Gate::Incomparable),
        ];
        order.into_iter().find(|(applies, _)| *applies).map_or(Gate::Pass, |(_, gate)| gate)
    }
}

/// Compares each pair. The more times are compared overall, the higher the confidence required for each.
pub fn compare(pairs: &[Pair<'_>], options: &Options) -> Comparison {
    decide(pairs, pairs.iter().map(|pair| rows(*pair, None, options)).collect(), options)
}

/// Judges all times together.
fn decide(pairs: &[Pair<'_>], mut all: Vec<Vec<Row>>, options: &Options) -> Comparison {
    let offsets: Vec<Vec<ClockOffset>> = all.iter_mut().map(|rows| clock_offset::correct(rows)).collect();
    let paces = pace::correct(&mut all);
    let mut tested: Vec<(&mut Change, Evidence)> =
        all.iter_mut().flatten().filter_map(|row| Some((&mut row.change, row.evidence?))).collect();
    fit::fit(&mut tested.iter_mut().map(|(_, evidence)| evidence).collect::<Vec<_>>());
    let p: Vec<f64> = tested.iter().map(|(_, evidence)| evidence.p()).collect();
    let level = runner_stats::benjamini_hochberg_level(&p, LEVEL);
    for ((change, evidence), p) in tested.iter_mut().zip(p) {
        if let Some(time) = &mut change.time {
            time.threshold = Some(evidence.threshold());
        }
        if p.is_nan() {
            refuse(change);
        } else if has_equal_times(change) {
            settle(change, (Call::Same, evidence.judge(level).1));
        } else {
            settle(change, evidence.judge(level));
        }
    }
    let tests = tested.len();
    let mut reports: Vec<ReportComparison> =
        pairs.iter().zip(all).map(|(pair, rows)| report(*pair, rows, options)).collect();
    for (report, (offsets, pace)) in reports.iter_mut().zip(offsets.into_iter().zip(paces)) {
        report.clock_offsets = offsets;
        report.pace = pace;
    }
    counts::join(&mut reports);
    Comparison { reports, tests, is_strict: options.strict, ..Comparison::default() }
}

/// Differences that make the records of a case in two reports incomparable.
pub(super) fn differences(pair: Pair<'_>, sides: [&CaseRecord; 2]) -> Vec<Differs<DifferenceKind>> {
    differences::of_reports(pair).into_iter().chain(differences::of_case(sides)).collect()
}

/// Toolkit versions of two reports, if they differ.
pub(super) fn toolkit_change(pair: Pair<'_>) -> Option<Differs<CauseKind>> {
    causes::of_reports(pair).into_iter().find(|cause| cause.what == CauseKind::Toolkit)
}

/// Possible causes of differences between the records of a case in two reports.
pub(super) fn causes(pair: Pair<'_>, [base, new]: [&CaseRecord; 2]) -> Vec<Differs<CauseKind>> {
    causes::find_causes(base, new).into_iter().chain(causes::of_reports(pair)).collect()
}

/// A change with the evidence about its time, which is judged once the number of comparisons is known.
struct Row {
    change: Change,
    evidence: Option<Evidence>,
}

fn rows(pair: Pair<'_>, together: Option<&Together>, options: &Options) -> Vec<Row> {
    let threshold = options.threshold.or(pair.new.header.comparison.threshold);
    let options = &Options { threshold, ..options.clone() };
    let of_reports = differences::of_reports(pair);
    let is_same_program = causes::of_reports(pair).is_empty();
    let mut rows: Vec<Row> = matching::matched(pair)
        .into_par_iter()
        .filter_map(|matched| {
            let kind = matching::by_outcome(&matched)?;
            let mut row = Row { change: blank(&matched, kind), evidence: None };
            if let (Kind::Same, Some(base), Some(new)) = (kind, matched.base, matched.new) {
                judge(&mut row, pair, [base, new], (&of_reports, is_same_program), (together, options));
            }
            Some(row)
        })
        .collect();
    newcomers::describe(pair.new, &mut rows);
    rows
}

/// The change of a case with only its outcome known.
fn blank(matched: &Matched<'_>, kind: Kind) -> Change {
    let regime = |record: &CaseRecord| record.result.as_ref().map(|result| result.regime);
    let mut change = Change::new(matched.record().case.clone(), kind);
    change.regime = matched.new.and_then(regime).or_else(|| matched.base.and_then(regime));
    change.outcomes = [matched.base, matched.new].map(|record| record.map(|record| record.outcome.clone()));
    let passed = |record: &CaseRecord| record.verdict == Verdict::Pass && !record.outcome.is_failure();
    change.passed = [matched.base, matched.new].map(|record| record.is_some_and(passed));
    change.error = matched.new.and_then(|record| record.error);
    if let (Some(base), Some(new)) = (matched.base, matched.new) {
        change.operations = operations::compare_operations([base, new]);
        change.instructions = instructions::compare_instructions([base, new]);
        change.causes = causes::find_causes(base, new);
        change.code = causes::compare_code(base, new);
    }
    change
}

/// Judges a case that is correct in both reports by its time or, if it has none, by its counts.
fn judge(
    row: &mut Row,
    pair: Pair<'_>,
    sides: [&CaseRecord; 2],
    (of_reports, is_same_program): (&[Differs<DifferenceKind>], bool),
    (together, options): (Option<&Together>, &Options),
) {
    let change = &mut row.change;
    change.differences = differences::of_case(sides);
    if together.is_some() {
        together::allow_arguments(change);
    }
    let differing: Vec<DifferenceKind> = of_reports.iter().chain(&change.differences).map(|found| found.what).collect();
    change.informs = differing.iter().any(|what| options.inform.contains(what));
    let refused = || differing.iter().filter(|what| !options.allow.contains(what) && !options.inform.contains(what));
    if refused().next().is_some() {
        change.kind = Kind::Incomparable;
        // With a different driver, the same thing was measured: the times are shown, but not judged.
        if refused().all(|what| *what == DifferenceKind::Driver) {
            change.time = time::compare_times(pair, sides, options).map(|(time, _)| time);
        }
        return;
    }
    let is_same = causes::is_same_code(sides, &change.causes) && is_same_program;
    let counts = counts::compare_counts(pair, sides, (options, is_same));
    change.counted_by = counts.by;
    change.counters = counts.changes;
    change.undecided = counts.undecided;
    change.lines = lines::compare_lines(sides);
    if let Some(counted) = counts.kind {
        change.kind = counted;
    }
    let timed =
        together.map_or_else(|| time::compare_times(pair, sides, options), |together| together.time(sides, options));
    let is_decided_later = timed.as_ref().is_some_and(|(_, evidence)| evidence.is_some());
    if let Some((time, evidence)) = timed {
        change.time = Some(time);
        let is_control = causes::is_same_code(sides, &change.causes) && of_reports.is_empty();
        row.evidence = evidence.map(|evidence| evidence.of_control(is_control && is_same_program));
    }
    if change.regime.is_some() && !is_decided_later {
        settle(change, (if has_equal_times(change) { Call::Same } else { Call::Ambiguous }, None));
    }
}

/// Whether both sides have exactly the same time, as a report and its copy do.
fn has_equal_times(change: &Change) -> bool {
    change.time.as_ref().is_some_and(|time| time.base == time.new)
}

/// Marks a time as undecidable because a record has no valid interval: "same" or "ambiguous" would let the comparison
/// pass.
fn refuse(change: &mut Change) {
    if !matches!(change.kind, Kind::Slower | Kind::MoreWork) {
        change.kind = Kind::Incomparable;
    }
}

/// Applies a verdict on the time. A regression in the counts takes precedence.
fn settle(change: &mut Change, (call, interval): (Call, Option<Interval>)) {
    if let Some(time) = &mut change.time {
        time.interval = interval.or(time.interval);
    }
    let is_newly_unstable = {
        let unstable = |outcome: &Option<Outcome>| matches!(outcome, Some(Outcome::Unstable { .. }));
        !unstable(&change.outcomes[0]) && unstable(&change.outcomes[1])
    };
    change.kind = match call {
        Call::Slower => Kind::Slower,
        _ if matches!(change.kind, Kind::Slower | Kind::MoreWork) => change.kind,
        Call::Faster => Kind::Faster,
        Call::Same | Call::Ambiguous if is_newly_unstable => Kind::NewlyUnstable,
        Call::Same => Kind::Same,
        Call::Ambiguous => Kind::Ambiguous,
    };
}

fn report(pair: Pair<'_>, rows: Vec<Row>, options: &Options) -> ReportComparison {
    let mut changes: Vec<Change> = rows.into_iter().map(|row| row.change).collect();
    accepted::accept(pair, changes.iter_mut());
    let mut differences = differences::of_reports(pair);
    differences.sort_by_key(|difference| options.allow.contains(&difference.what));
    let header: &RunHeader = &pair.new.header;
    ReportComparison {
        experiment: header.experiment.clone(),
        title: header.title.clone(),
        device: pair.new.environment.device.name.clone(),
        backend: pair.new.environment.device.backend,
        baseline: header.baseline.as_ref().map(|(variant, _)| variant.clone()),
        sources: None,
        differences,
        causes: causes::of_reports(pair),
        limits: [pair.base, pair.new].map(limits),
        claims: claims::compare_claims(pair),
        geomean: geomean(&changes),
        may_be_two_gpus: time::may_be_two_gpus(pair),
        clock_offsets: Vec::new(),
        pace: None,
        is_paired: false,
        changes,
    }
}

fn limits(records: &Records) -> Limits {
    let measured = records.cases.iter().filter(|record| record.result.is_some() || record.counters.is_some());
    Limits {
        is_incomplete: !records.header.complete,
        narrowed: records.header.narrowed.clone(),
        is_unsanitized: records.header.command.as_ref().is_some_and(|command| command.contains(NO_SANITIZER)),
        lacks_spread: records.environment.timing_method.is_some() && records.environment.machine.spread.is_none(),
        without_hashes: measured.filter(|record| record.hashes.is_none()).count(),
        weak_checks: records.cases.iter().filter(|record| record.has_weak_check()).count(),
    }
}

fn geomean(changes: &[Change]) -> Option<Geomean> {
    let times = changes.iter().filter_map(|change| change.time.as_ref());
    let ratios: Vec<f64> = times.filter(|time| time.unit == Unit::DeviceNanoseconds).map(|time| time.ratio).collect();
    Some(Geomean { ratio: runner_stats::geometric_mean(&ratios)?, rows: ratios.len() })
}
