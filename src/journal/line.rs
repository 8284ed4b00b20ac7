//! A case's line in `records.jsonl`: values that the header has are left out, and values in a fixed order have no
//! names.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{
    Case, CaseHashes, CaseKey, CaseRecord, Counters, Dim3, Energy, Estimate, Fingerprint, GroupKey, KernelResources,
    LaunchRecord, Note, Occupancy, OccupancyLimiter, Outcome, Ratio, Records, Regime, RegimeResult, ResultError,
    RunHeader, SmClock, Unit, Value, Verdict, WorkAmount,
};

/// The coverage of an interval that is written without one.
const NOMINAL: f64 = 0.95;

/// The order of the values that have no names in the lines.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Columns {
    /// Every counter of any case, by name.
    pub counters: Vec<String>,
    /// For people: the program knows these.
    #[serde(default, skip_deserializing)]
    hashes: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    resources: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    occupancy: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    work: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    interval: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    reproducible: &'static [&'static str],
    #[serde(default, skip_deserializing)]
    sm_clock: &'static [&'static str],
}

impl Columns {
    pub fn of(records: &Records) -> Self {
        let counted = records.cases.iter().flat_map(|case| case.counters.iter().chain(&case.each_counters));
        let counters: BTreeSet<&String> = counted.flat_map(|counters| counters.0.keys()).collect();
        Self {
            counters: counters.into_iter().cloned().collect(),
            hashes: &["source", "options", "inputs", "check"],
            resources: &[
                "registers",
                "shared_static",
                "local",
                "spill_stores",
                "spill_loads",
                "max_threads",
                "cluster",
            ],
            occupancy: &["blocks_per_sm", "fraction", "limiter"],
            work: &["bytes", "flops"],
            interval: &["point", "low", "high", "confidence, where it is not 0.95"],
            reproducible: &["low", "high"],
            sm_clock: &["median", "least"],
        }
    }
}

/// One case in one regime.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CaseLine {
    ordinal: u64,
    /// If it is not the header's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    experiment: Option<String>,
    variant: String,
    /// Values of the header's axes.
    axes: Axes,
    /// If it differs from the axes that the header does not compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<GroupKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hashes: Option<[String; 4]>,
    /// Measured if absent.
    #[serde(default = "measured", skip_serializing_if = "is_measured")]
    outcome: Outcome,
    /// Passed if absent.
    #[serde(default = "passed", skip_serializing_if = "is_passed")]
    verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    launches: Vec<LaunchLine>,
    #[serde(default, skip_serializing_if = "is_unstated")]
    work: (Option<u64>, Option<f64>),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<ResultLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    each_counters: Vec<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ResultError>,
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

#[derive(Debug, Serialize, Deserialize)]
struct LaunchLine {
    label: String,
    grid: Extent,
    block: Extent,
    #[serde(default, skip_serializing_if = "is_zero")]
    shared: u32,
    resources: Resources,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occupancy: Option<(u32, f64, Option<OccupancyLimiter>)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    stream: u32,
}

/// Extents of 1 at the end are left out.
#[derive(Debug, Serialize, Deserialize)]
struct Extent(Vec<u32>);

/// Registers, static shared memory, local memory, spill stores and loads, most threads, and the cluster if the kernel
/// was compiled for one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Resources {
    Plain([Option<u32>; 6]),
    Clustered(Clustered),
}

type Fact = Option<u32>;
type Clustered = (Fact, Fact, Fact, Fact, Fact, Fact, [u32; 3]);

#[derive(Debug, Serialize, Deserialize)]
struct ResultLine {
    regime: Regime,
    /// If it is not the regime's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<Unit>,
    time: Interval,
    samples: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    launches: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    sets: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    working_set: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sm_clock: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    discarded: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    each: Vec<Interval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    against_baseline: Option<RatioLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    against_previous: Option<RatioLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RatioLine {
    against: String,
    speedup: Interval,
    /// The ends of the wider interval around the same point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reproducible: Option<[f64; 2]>,
    /// In `against_previous` only if it differs from that of `against_baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Interval {
    Nominal([f64; 3]),
    Other([f64; 4]),
}

impl CaseLine {
    pub fn of(record: &CaseRecord, header: &RunHeader, columns: &Columns) -> Self {
        let CaseKey { experiment, variant, axes } = &record.case.key;
        let is_complete = axes.len() == header.axes.len() && axes.iter().zip(&header.axes).all(|(a, b)| a.0 == b.name);
        let values = || axes.iter().map(|(_, value)| value.clone()).collect();
        let counts = |counters: &Counters| columns.counters.iter().map(|name| counters.get(name)).collect();
        let of_case = |h: &CaseHashes| [h.source.clone(), h.options.clone(), h.inputs.clone(), h.check.clone()];
        Self {
            ordinal: record.case.ordinal,
            experiment: Some(experiment.clone()).filter(|name| *name != header.experiment),
            variant: variant.clone(),
            axes: if is_complete { Axes::Values(values()) } else { Axes::Named(axes.clone()) },
            group: Some(record.case.group.clone()).filter(|group| *group != group_of(axes, header)),
            fingerprint: record.fingerprint.clone(),
            hashes: record.hashes.as_ref().map(of_case),
            outcome: record.outcome.clone(),
            verdict: record.verdict.clone(),
            launches: record.launches.iter().map(LaunchLine::of).collect(),
            work: (record.work.bytes, record.work.flops),
            result: record.result.as_ref().map(ResultLine::of),
            counters: record.counters.as_ref().map(counts),
            each_counters: record.each_counters.iter().map(counts).collect(),
            error: record.error,
            energy: record.energy,
            notes: record.notes.clone(),
        }
    }

    pub fn record(self, header: &RunHeader, columns: &Columns) -> CaseRecord {
        let axes = match self.axes {
            Axes::Named(axes) => axes,
            Axes::Values(values) => header.axes.iter().map(|axis| axis.name.clone()).zip(values).collect(),
        };
        let counters = |counts: Vec<Option<f64>>| {
            let counted = columns.counters.iter().zip(counts).filter_map(|(name, count)| Some((name.clone(), count?)));
            Counters(counted.collect())
        };
        let group = self.group.unwrap_or_else(|| group_of(&axes, header));
        let experiment = self.experiment.unwrap_or_else(|| header.experiment.clone());
        let of_case = |[source, options, inputs, check]: [String; 4]| CaseHashes { source, options, inputs, check };
        CaseRecord {
            case: Case { ordinal: self.ordinal, key: CaseKey { experiment, variant: self.variant, axes }, group },
            fingerprint: self.fingerprint,
            hashes: self.hashes.map(of_case),
            outcome: self.outcome,
            verdict: self.verdict,
            launches: self.launches.into_iter().map(LaunchLine::launch).collect(),
            work: WorkAmount { bytes: self.work.0, flops: self.work.1 },
            result: self.result.map(ResultLine::result),
            counters: self.counters.map(counters),
            each_counters: self.each_counters.into_iter().map(counters).collect(),
            error: self.error,
            energy: self.energy,
            notes: self.notes,
        }
    }
}

fn group_of(axes: &[(String, Value)], header: &RunHeader) -> GroupKey {
    let compared = |name: &str| header.axes.iter().any(|axis| axis.compared && axis.name == name);
    GroupKey(axes.iter().filter(|(name, _)| !compared(name)).cloned().collect())
}

impl LaunchLine {
    fn of(launch: &LaunchRecord) -> Self {
        let r = &launch.resources;
        Self {
            label: launch.label.clone(),
            grid: Extent::of(launch.grid),
            block: Extent::of(launch.block),
            shared: launch.shared,
            resources: match r.cluster {
                None => Resources::Plain([
                    r.registers,
                    r.shared_static,
                    r.local,
                    r.spill_stores,
                    r.spill_loads,
                    r.max_threads,
                ]),
                Some(cluster) => Resources::Clustered((
                    r.registers,
                    r.shared_static,
                    r.local,
                    r.spill_stores,
                    r.spill_loads,
                    r.max_threads,
                    cluster,
                )),
            },
            occupancy: launch.occupancy.map(|o| (o.blocks_per_sm, o.fraction, o.limiter)),
            stream: launch.stream,
        }
    }

    fn launch(self) -> LaunchRecord {
        let (plain, cluster) = match self.resources {
            Resources::Plain(plain) => (plain, None),
            Resources::Clustered((registers, shared, local, stores, loads, threads, cluster)) => {
                ([registers, shared, local, stores, loads, threads], Some(cluster))
            }
        };
        let [registers, shared_static, local, spill_stores, spill_loads, max_threads] = plain;
        let occupancy =
            |(blocks_per_sm, fraction, limiter): (u32, f64, _)| Occupancy { blocks_per_sm, fraction, limiter };
        LaunchRecord {
            label: self.label,
            grid: self.grid.dim(),
            block: self.block.dim(),
            shared: self.shared,
            resources: KernelResources {
                registers,
                shared_static,
                local,
                spill_stores,
                spill_loads,
                max_threads,
                cluster,
            },
            occupancy: self.occupancy.map(occupancy),
            stream: self.stream,
        }
    }
}

impl Extent {
    fn of(dim: Dim3) -> Self {
        let mut extents = vec![dim.x, dim.y, dim.z];
        while extents.len() > 1 && extents.last() == Some(&1) {
            extents.pop();
        }
        Self(extents)
    }

    fn dim(&self) -> Dim3 {
        let at = |i: usize| self.0.get(i).copied().unwrap_or(1);
        Dim3::new(at(0), at(1), at(2))
    }
}

impl ResultLine {
    fn of(result: &RegimeResult) -> Self {
        let noise = result.against_baseline.as_ref().and_then(|ratio| ratio.noise);
        let previous = |ratio: &Ratio| {
            let line = RatioLine::of(ratio);
            RatioLine { noise: line.noise.filter(|own| Some(*own) != noise), ..line }
        };
        Self {
            regime: result.regime,
            unit: Some(result.unit).filter(|unit| *unit != result.regime.unit()),
            time: Interval::of(result.time),
            samples: result.samples,
            launches: result.launches,
            sets: result.sets,
            working_set: result.working_set,
            sm_clock: result.sm_clock.map(|clock| (clock.median, clock.least)),
            discarded: result.discarded,
            each: result.each.iter().copied().map(Interval::of).collect(),
            against_baseline: result.against_baseline.as_ref().map(RatioLine::of),
            against_previous: result.against_previous.as_ref().map(previous),
        }
    }

    fn result(self) -> RegimeResult {
        let against_baseline = self.against_baseline.map(|line| line.ratio(None));
        let noise = against_baseline.as_ref().and_then(|ratio| ratio.noise);
        RegimeResult {
            regime: self.regime,
            unit: self.unit.unwrap_or(self.regime.unit()),
            time: self.time.estimate(),
            samples: self.samples,
            launches: self.launches,
            sets: self.sets,
            working_set: self.working_set,
            sm_clock: self.sm_clock.map(|(median, least)| SmClock { median, least }),
            discarded: self.discarded,
            each: self.each.into_iter().map(Interval::estimate).collect(),
            against_baseline,
            against_previous: self.against_previous.map(|line| line.ratio(noise)),
        }
    }
}

impl RatioLine {
    fn of(ratio: &Ratio) -> Self {
        Self {
            against: ratio.against.clone(),
            speedup: Interval::of(ratio.speedup),
            reproducible: ratio.reproducible.map(|wider| [wider.low, wider.high]),
            noise: ratio.noise,
        }
    }

    fn ratio(self, noise: Option<f64>) -> Ratio {
        let speedup = self.speedup.estimate();
        Ratio {
            against: self.against,
            speedup,
            reproducible: self.reproducible.map(|[low, high]| Estimate { low, high, ..speedup }),
            noise: self.noise.or(noise),
        }
    }
}

impl Interval {
    fn of(estimate: Estimate) -> Self {
        let Estimate { point, low, high, confidence } = estimate;
        if confidence.to_bits() == NOMINAL.to_bits() {
            Self::Nominal([point, low, high])
        } else {
            Self::Other([point, low, high, confidence])
        }
    }

    fn estimate(self) -> Estimate {
        let (Self::Nominal([point, low, high]) | Self::Other([point, low, high, _])) = self;
        let confidence = if let Self::Other([.., confidence]) = self { confidence } else { NOMINAL };
        Estimate { point, low, high, confidence }
    }
}

const fn measured() -> Outcome {
    Outcome::Measured
}

const fn is_measured(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Measured)
}

const fn passed() -> Verdict {
    Verdict::Pass
}

const fn is_passed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Pass)
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

const fn is_unstated(work: &(Option<u64>, Option<f64>)) -> bool {
    matches!(work, (None, None))
}
