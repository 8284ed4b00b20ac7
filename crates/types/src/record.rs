//! Committed results: one record per case and regime.
//!
//! Every report is made only from these, so they repeat what a reader needs of the manifest and the environment.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    BackendKind, Case, CaseHashes, Claim, ComparisonRules, CountedLine, Counters, Dim3, Energy, Environment, Estimate,
    Fingerprint, KernelResources, Note, Occupancy, Outcome, Regime, Unit, Verdict, WorkAmount,
};

/// Everything that a report is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// Facts that a reader needs before the first case.
    pub header: RunHeader,
    pub environment: Environment,
    pub cases: Vec<CaseRecord>,
}

impl Records {
    pub fn counter_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut before: Option<&Counters> = None;
        for counters in self.cases.iter().flat_map(|case| case.counters.iter().chain(&case.each_counters)) {
            // Most cases have the names of the case before.
            if before.is_none_or(|before| !before.0.keys().eq(counters.0.keys())) {
                names.extend(counters.0.keys().map(AsRef::<str>::as_ref));
                before = Some(counters);
            }
        }
        names
    }
}

/// Whether a text can name an experiment, and so its reports folder: letters, digits, `-` and `_`.
pub fn can_name_experiment(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Deserializes the name of an experiment. Others may have written the file, so the name is checked.
pub fn experiment_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if can_name_experiment(&name) {
        return Ok(name);
    }
    Err(D::Error::custom(format!("`{name}` cannot name an experiment: only letters, digits, `-` and `_` can")))
}

/// Facts that a reader needs before the first case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    #[serde(deserialize_with = "experiment_name")]
    pub experiment: String,
    pub title: String,
    /// Question that the experiment answers; a paragraph of Markdown.
    pub question: Option<String>,
    pub backend: BackendKind,
    /// Shared axes in the manifest's order.
    pub axes: Vec<AxisColumn>,
    /// Names of the expanded variants in the manifest's order.
    pub variants: Vec<String>,
    /// Variant of the baseline, with its values of the compared axes.
    pub baseline: Option<(String, Vec<(String, super::Value)>)>,
    /// Whether each variant is a step after the one before it, which is the manifest's default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub steps: bool,
    /// Path of the manifest as the user named it, for the command line in the report.
    pub manifest_path: String,
    pub manifest_text: String,
    /// SHA-256 of the manifest's text, hexadecimal.
    pub manifest_hash: String,
    /// Options that narrowed the run, if any.
    pub narrowed: Option<String>,
    /// False if the run was interrupted.
    pub complete: bool,
    /// Number of cases in the plan, if some are in none of the merged journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Command that reproduces the records, if it is not `runner run` of the manifest on the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Why there are no counters although they were requested, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_missing: Option<String>,
    /// Why there is no energy although it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_missing: Option<String>,
    /// One entry per regime with an A/A control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseFloor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub comparison: ComparisonRules,
    /// Template of `report.md`; `None` for the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PageTemplate>,
}

/// A template of the user. Records contain its text, so that they reproduce the report anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTemplate {
    pub path: String,
    pub text: String,
}

/// What [`RunHeader::narrowed`] says of the cases that a search has chosen.
pub const FINALISTS: &str = "the finalists of a search";

impl RunHeader {
    /// Whether each variant is compared with the one before it: only the variant is compared, with a baseline and along
    /// steps.
    pub fn has_steps(&self) -> bool {
        self.steps && self.baseline.is_some() && !self.axes.iter().any(|axis| axis.compared)
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde wants")]
const fn is_yes(value: &bool) -> bool {
    *value
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisColumn {
    pub name: String,
    /// Whether its values are compared with each other.
    pub compared: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CaseRecord {
    pub case: Case,
    /// `None` if the case was not run.
    pub fingerprint: Option<Fingerprint>,
    /// Hashes of source, options, inputs and check; `None` if the case was not run.
    pub hashes: Option<CaseHashes>,
    pub outcome: Outcome,
    pub verdict: Verdict,
    /// Launches of the body as they were made; empty if there was none.
    pub launches: Vec<LaunchRecord>,
    pub work: WorkAmount,
    /// Times; `None` if nothing was measured.
    pub result: Option<RegimeResult>,
    /// Counters of the whole body; `None` if nothing was counted.
    pub counters: Option<Counters>,
    /// Counters of each launch of a sequence; empty for a body of one.
    pub each_counters: Vec<Counters>,
    /// Counts by source line; empty if lines were not counted.
    pub lines: Vec<CountedLine>,
    /// Differences from the reference; `None` if the manifest does not ask for them.
    pub error: Option<ResultError>,
    /// Energy per run of the body; `None` if not measured.
    pub energy: Option<Energy>,
    pub notes: Vec<Note>,
}

impl CaseRecord {
    /// Numbers of executed blocks and of all blocks, if the counts are estimates from a sample.
    pub fn sample(&self) -> Option<(u64, u64)> {
        self.notes.iter().find_map(|note| if let Note::Sampled { ran, of } = note { Some((*ran, *of)) } else { None })
    }

    /// Number of input sets that the case was checked on, and how many it has, if that is more.
    pub fn input_sets(&self) -> Option<(u32, u32)> {
        let is_one = |note: &Note| matches!(note, Note::OneSet { .. });
        self.notes.iter().any(is_one).then_some((1, 2))
    }

    /// Whether a check of the case accepts wrong results.
    pub fn has_weak_check(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Weak(_)))
    }

    /// The launch that all others repeat, perhaps in other streams, and the number of streams.
    pub fn repeated(&self) -> Option<(&LaunchRecord, usize)> {
        let (first, others) = self.launches.split_first().filter(|(_, others)| !others.is_empty())?;
        let alike = |other: &LaunchRecord| LaunchRecord { stream: first.stream, ..other.clone() } == *first;
        let streams: BTreeSet<u32> = self.launches.iter().map(|launch| launch.stream).collect();
        others.iter().all(alike).then_some((first, streams.len()))
    }
}

/// Difference of a correct result from its reference, over the elements whose difference is finite.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultError {
    /// Greatest absolute difference of any element.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// Greatest difference as a fraction of the reference. Elements whose reference is 0 are left out.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// Mean of the differences as fractions of the reference.
    #[serde(with = "super::real")]
    pub mean_rel: f64,
    /// Greatest difference in units in the last place of the result's type, at the reference.
    #[serde(with = "super::real")]
    pub ulp: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    pub label: String,
    pub grid: Dim3,
    pub block: Dim3,
    /// Dynamic shared memory per block, in bytes.
    pub shared: u32,
    pub resources: KernelResources,
    /// Theoretical occupancy; `None` if unknown.
    pub occupancy: Option<Occupancy>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub stream: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RegimeResult {
    pub regime: Regime,
    pub unit: Unit,
    /// Median time with its interval.
    pub time: Estimate,
    /// Number of samples behind the median.
    pub samples: u32,
    /// Runs of the body in each sample, which is their mean.
    pub launches: u32,
    /// Sets of buffers over which these runs rotate.
    pub sets: u32,
    /// Bytes of the buffers that a run uses, on the device.
    pub working_set: Option<u64>,
    /// SM clock during the samples, if known.
    pub sm_clock: Option<SmClock>,
    /// Samples taken while the device was throttled, discarded and taken again.
    pub discarded: u32,
    /// How the processes that took the samples differ; `None` if there was only one.
    pub processes: Option<Processes>,
    /// Times of each launch of a sequence; empty for a body of one.
    pub each: Vec<Estimate>,
    /// Speedup: the baseline's time divided by this one's.
    pub against_baseline: Option<Ratio>,
    /// Speedup over the variant before it in the manifest, if only the variant is compared.
    pub against_previous: Option<Ratio>,
}

/// SM clock over some samples, in MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmClock {
    pub median: u32,
    pub least: u32,
}

/// How the processes that measured a case differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processes {
    pub count: u32,
    /// Standard deviation of the logarithms of their medians.
    pub deviation: f64,
}

/// Noise floor: what comparisons of the baseline with itself show. A speedup within it counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    pub regime: Regime,
    /// Half-width as a fraction: a ratio of 1 ± this much is noise.
    #[serde(with = "super::real")]
    pub width: f64,
    /// Number of groups with an A/A control.
    pub comparisons: u32,
}

/// A speedup over another case, with its intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The case that it is compared with: the variant, followed by the values of compared axes.
    pub against: String,
    /// The speedup, whose interval says how well it repeats within the run.
    pub speedup: Estimate,
    /// The speedup with an interval that also covers other processes on a device of the same model; `None` if the
    /// differences between processes are unknown.
    pub reproducible: Option<Estimate>,
    /// Noise that the speedup must exceed, as a fraction: the regime's noise floor, or what the A/A control shows in
    /// the rounds of this comparison if that is more; `None` without a control.
    pub noise: Option<f64>,
}
