//! A case's line in `records.jsonl`. Omits values that equal the header's, stores values in a fixed order without
//! names, and refers to strings shared by many lines by their index in the header.

mod columns;
mod launch;
mod number;
mod result;

use serde::{Deserialize, Serialize};

use columns::Listed;
pub(super) use columns::{Columns, Numbers};
use launch::LaunchLine;
use number::{Interval, Number};
use result::{RatioLine, ResultLine};
use runner_types::{
    BackendKind, Case, CaseHashes, CaseKey, CaseRecord, Counters, Energy, Estimate, Fingerprint, GroupKey, Note,
    Outcome, Processes, RegimeResult, ResultError, RunHeader, SmClock, Unit, Value, Verdict, WorkAmount, counter_name,
    is_default,
};

/// Line of `records.jsonl` for one case in one regime.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CaseLine {
    ordinal: u64,
    /// Present if it differs from the header's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    experiment: Option<String>,
    variant: String,
    /// Values of the axes that the header names.
    axes: Axes,
    /// Present if it differs from the axes that the header marks as not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<GroupKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hashes: Option<[Listed; 4]>,
    /// Hash of the machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Listed>,
    /// Opcode counts of the machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operations: Option<Listed>,
    /// Omitted for a measured case.
    #[serde(default, skip_serializing_if = "is_default")]
    outcome: Outcome,
    /// Omitted for a case that passed.
    #[serde(default, skip_serializing_if = "is_default")]
    verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    launches: Vec<LaunchLine>,
    #[serde(default, skip_serializing_if = "is_default")]
    work: (Option<u64>, Option<Number>),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<ResultLine>,
    /// The clock's unit, if it is not the regime's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<Unit>,
    /// Number of processes that measured it, and the variation between their medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processes: Option<(u32, Number)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    each: Vec<Interval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    against_baseline: Option<RatioLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    against_previous: Option<RatioLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<Option<Number>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    each_counters: Vec<Vec<Option<Number>>>,
    /// For each counted line, its index in the header's list and its counts (0 if it has none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<(usize, Vec<Number>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<[Number; 4]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    energy: Option<Energy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Axes {
    Values(Vec<Value>),
    Named(Vec<(String, Value)>),
}

impl CaseLine {
    pub fn new(record: &CaseRecord, header: &RunHeader, numbers: &Numbers<'_>) -> Self {
        let CaseKey { experiment, variant, axes } = &record.case.key;
        let is_complete = axes.len() == header.axes.len() && axes.iter().zip(&header.axes).all(|(a, b)| a.0 == b.name);
        let values = || axes.iter().map(|(_, value)| value.clone()).collect();
        let names = &numbers.columns.counters;
        let counts = |counters: &Counters| names.iter().map(|name| counters.get(name).map(Number)).collect();
        let hashes = |h: &CaseHashes| [&h.source, &h.options, &h.inputs, &h.check].map(|hash| numbers.digest(hash));
        let digest = |of: fn(&CaseHashes) -> Option<&String>| {
            record.hashes.as_ref().and_then(of).map(|text| numbers.digest(text))
        };
        let error = |e: ResultError| [e.abs, e.rel, e.mean_rel, e.ulp].map(Number);
        let measured = record.result.as_ref();
        let baseline = measured.and_then(|result| result.against_baseline.as_ref());
        let previous = measured.and_then(|result| result.against_previous.as_ref());
        let noise = baseline.and_then(|ratio| ratio.noise);
        Self {
            ordinal: record.case.ordinal,
            experiment: Some(experiment.clone()).filter(|name| *name != header.experiment),
            variant: variant.clone(),
            axes: if is_complete { Axes::Values(values()) } else { Axes::Named(axes.clone()) },
            group: Some(record.case.group.clone()).filter(|group| *group != group_of(axes, header)),
            fingerprint: record.fingerprint.clone(),
            hashes: record.hashes.as_ref().map(hashes),
            code: digest(|hashes| hashes.code.as_ref()),
            operations: digest(|hashes| hashes.operations.as_ref()),
            outcome: record.outcome.clone(),
            verdict: record.verdict.clone(),
            launches: record.launches.iter().map(LaunchLine::new).collect(),
            work: (record.work.bytes, record.work.flops.map(Number)),
            result: measured.map(ResultLine::new),
            unit: measured.map(|result| result.unit).filter(|unit| measured.is_some_and(|r| *unit != r.regime.unit())),
            processes: measured.and_then(|result| result.processes).map(|all| (all.count, Number(all.deviation))),
            each: measured.into_iter().flat_map(|result| &result.each).copied().map(Interval).collect(),
            against_baseline: baseline.map(|ratio| RatioLine::new(ratio, None, numbers)),
            against_previous: previous.map(|ratio| RatioLine::new(ratio, noise, numbers)),
            counters: record.counters.as_ref().map(counts),
            each_counters: record.each_counters.iter().map(counts).collect(),
            lines: record.lines.iter().filter_map(|line| numbers.line(line)).collect(),
            error: record.error.map(error),
            energy: record.energy,
            notes: record.notes.clone(),
        }
    }

    /// Converts the line to a record. Fails if it refers to something that the header lacks.
    pub fn record(self, header: &RunHeader, columns: &Columns) -> Result<CaseRecord, String> {
        let axes = match self.axes {
            Axes::Named(axes) => axes,
            Axes::Values(values) => header.axes.iter().map(|axis| axis.name.clone()).zip(values).collect(),
        };
        let counters = |counts: Vec<Option<Number>>| {
            let counted =
                columns.counters.iter().zip(counts).filter_map(|(name, count)| Some((counter_name(name), count?.0)));
            let counters = Counters(counted.collect());
            if header.backend == BackendKind::Sim { counters.of_simulator() } else { counters }
        };
        let group = self.group.unwrap_or_else(|| group_of(&axes, header));
        let experiment = self.experiment.unwrap_or_else(|| header.experiment.clone());
        let hashes = |[source, options, inputs, check]: [Listed; 4]| -> Result<CaseHashes, String> {
            let digest = |listed: Listed| listed.text(&columns.digests, "digests");
            let (source, options, inputs, check) = (digest(source)?, digest(options)?, digest(inputs)?, digest(check)?);
            let code = self.code.map(digest).transpose()?;
            let operations = self.operations.map(digest).transpose()?;
            Ok(CaseHashes { source, options, inputs, check, code, operations })
        };
        let error = |error: [Number; 4]| {
            let [abs, rel, mean_rel, ulp] = error.map(|number| number.0);
            ResultError { abs, rel, mean_rel, ulp }
        };
        let against_baseline = self.against_baseline.map(|line| line.ratio(None, columns)).transpose()?;
        let noise = against_baseline.as_ref().and_then(|ratio| ratio.noise);
        let against_previous = self.against_previous.map(|line| line.ratio(noise, columns)).transpose()?;
        let each: Vec<Estimate> = self.each.into_iter().map(|interval| interval.0).collect();
        let result = |ResultLine(regime, time, samples, launches, sets, working_set, clock, discarded)| RegimeResult {
            regime,
            unit: self.unit.unwrap_or(regime.unit()),
            time: time.0,
            samples,
            launches,
            sets,
            working_set,
            sm_clock: clock.map(|(median, least)| SmClock { median, least }),
            discarded,
            processes: self.processes.map(|(count, deviation)| Processes { count, deviation: deviation.0 }),
            each,
            against_baseline,
            against_previous,
        };
        Ok(CaseRecord {
            case: Case { ordinal: self.ordinal, key: CaseKey { experiment, variant: self.variant, axes }, group },
            fingerprint: self.fingerprint,
            hashes: self.hashes.map(hashes).transpose()?,
            outcome: self.outcome,
            verdict: self.verdict,
            launches: self.launches.into_iter().map(LaunchLine::launch).collect(),
            work: WorkAmount { bytes: self.work.0, flops: self.work.1.map(|flops| flops.0) },
            result: self.result.map(result),
            counters: self.counters.map(counters),
            each_counters: self.each_counters.into_iter().map(counters).collect(),
            lines: self.lines.into_iter().map(|line| columns.line(line)).collect::<Result<_, _>>()?,
            error: self.error.map(error),
            energy: self.energy,
            notes: self.notes,
        })
    }
}

fn group_of(axes: &[(String, Value)], header: &RunHeader) -> GroupKey {
    let compared = |name: &str| header.axes.iter().any(|axis| axis.compared && axis.name == name);
    GroupKey(axes.iter().filter(|(name, _)| !compared(name)).cloned().collect())
}
