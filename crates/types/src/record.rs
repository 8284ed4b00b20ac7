//! Committed results: one record per case and regime.
//!
//! Reports are rendered only from these, so they repeat what a reader needs from the manifest and the environment.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    BackendKind, Case, CaseHashes, Claim, ComparisonRules, CountedLine, Counters, Dim3, Energy, Environment, Estimate,
    Fingerprint, KernelResources, Note, Occupancy, Outcome, Regime, Unit, Verdict, WorkAmount,
};

/// All data that a report is rendered from.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    pub header: RunHeader,
    pub environment: Environment,
    pub cases: Vec<CaseRecord>,
}

impl Records {
    pub fn counter_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut before: Option<&Counters> = None;
        for counters in self.cases.iter().flat_map(|case| case.counters.iter().chain(&case.each_counters)) {
            // Most cases have the same counter names as the previous case.
            if before.is_none_or(|before| !before.0.keys().eq(counters.0.keys())) {
                names.extend(counters.0.keys().map(AsRef::<str>::as_ref));
                before = Some(counters);
            }
        }
        names
    }
}

/// Whether a string can name an experiment, and so its reports folder: letters, digits, `-` and `_`.
pub fn can_name_experiment(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Deserializes an experiment's name. Rejects invalid names, since the file may come from someone else.
pub fn experiment_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if can_name_experiment(&name) {
        return Ok(name);
    }
    Err(D::Error::custom(format!("`{name}` is not a valid experiment name: use only letters, digits, `-` and `_`")))
}

/// Metadata that precedes the cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    #[serde(deserialize_with = "experiment_name")]
    pub experiment: String,
    pub title: String,
    /// Question that the experiment answers: a paragraph of Markdown.
    pub question: Option<String>,
    pub backend: BackendKind,
    /// Shared axes in the manifest's order.
    pub axes: Vec<AxisColumn>,
    /// Names of the expanded variants in the manifest's order.
    pub variants: Vec<String>,
    /// Variant of the baseline, with its values for the compared axes.
    pub baseline: Option<(String, Vec<(String, super::Value)>)>,
    /// Whether each variant is a step from the previous one, which is the manifest's default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub steps: bool,
    /// Path of the manifest as the user gave it, for the command line in the report.
    pub manifest_path: String,
    pub manifest_text: String,
    /// SHA-256 of the manifest's text, hexadecimal.
    pub manifest_hash: String,
    /// Options that narrowed the run, if any.
    pub narrowed: Option<String>,
    /// False if the run was interrupted.
    pub complete: bool,
    /// Number of cases in the plan; set if some are missing from the merged journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Command that reproduces the records, if it is not a plain `runner run` of the manifest on the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Why requested counters are missing, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_missing: Option<String>,
    /// Why requested energy is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_missing: Option<String>,
    /// One entry per regime with an A/A control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseFloor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub comparison: ComparisonRules,
    /// User's template for `report.md`; `None` for the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PageTemplate>,
}

/// A user's template. Records contain its text, so that the report can be reproduced anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTemplate {
    pub path: String,
    pub text: String,
}

/// Value of [`RunHeader::narrowed`] for the cases chosen by a search.
pub const FINALISTS: &str = "the finalists of a search";

impl RunHeader {
    /// Whether each variant is compared with the previous one: no other axis is compared, there is a baseline, and
    /// variants are steps.
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
    /// Whether cases that differ in its value are compared with each other.
    pub compared: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CaseRecord {
    pub case: Case,
    /// `None` if the case was not run.
    pub fingerprint: Option<Fingerprint>,
    /// `None` if the case was not run.
    pub hashes: Option<CaseHashes>,
    pub outcome: Outcome,
    pub verdict: Verdict,
    /// Launches of the body with their actual configuration; empty if there were none.
    pub launches: Vec<LaunchRecord>,
    pub work: WorkAmount,
    /// `None` if nothing was measured.
    pub result: Option<RegimeResult>,
    /// Counters of the whole body; `None` if nothing was counted.
    pub counters: Option<Counters>,
    /// Counters of each launch of a sequence; empty if the body is a single launch.
    pub each_counters: Vec<Counters>,
    /// Counts by source line; empty if lines were not counted.
    pub lines: Vec<CountedLine>,
    /// Differences from the reference, if the manifest asks for them.
    pub error: Option<ResultError>,
    /// Energy per run of the body, if measured.
    pub energy: Option<Energy>,
    pub notes: Vec<Note>,
}

impl CaseRecord {
    /// Number of executed blocks and of all blocks, if the counts are estimated from a sample.
    pub fn sample(&self) -> Option<(u64, u64)> {
        self.notes.iter().find_map(|note| if let Note::Sampled { ran, of } = note { Some((*ran, *of)) } else { None })
    }

    /// Number of input sets checked and number of input sets in total, if not all were checked.
    pub fn input_sets(&self) -> Option<(u32, u32)> {
        let is_one = |note: &Note| matches!(note, Note::OneSet { .. });
        self.notes.iter().any(is_one).then_some((1, 2))
    }

    /// Whether a check of the case accepts wrong results.
    pub fn has_weak_check(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Weak(_)))
    }

    /// The launch that all others repeat, possibly in other streams, and the number of streams.
    pub fn repeated(&self) -> Option<(&LaunchRecord, usize)> {
        let (first, others) = self.launches.split_first().filter(|(_, others)| !others.is_empty())?;
        let alike = |other: &LaunchRecord| LaunchRecord { stream: first.stream, ..other.clone() } == *first;
        let streams: BTreeSet<u32> = self.launches.iter().map(|launch| launch.stream).collect();
        others.iter().all(alike).then_some((first, streams.len()))
    }
}

/// Difference of a correct result from its reference, over elements with a finite difference.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultError {
    /// Maximum absolute difference.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// Maximum relative difference. Excludes elements whose reference is 0.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// Mean relative difference.
    #[serde(with = "super::real")]
    pub mean_rel: f64,
    /// Maximum difference in units in the last place (ulp) of the result's type, at the reference.
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
    /// Median with its confidence interval.
    pub time: Estimate,
    /// Number of samples behind the median.
    pub samples: u32,
    /// Runs of the body per sample; the sample is their mean.
    pub launches: u32,
    /// Number of buffer sets that these runs rotate over.
    pub sets: u32,
    /// Size of the device buffers that a run uses, in bytes.
    pub working_set: Option<u64>,
    /// SM clock during the samples, if known.
    pub sm_clock: Option<SmClock>,
    /// Number of samples taken while the device was throttled, then discarded and taken again.
    pub discarded: u32,
    /// Variation between the processes that took the samples; `None` if there was only one.
    pub processes: Option<Processes>,
    /// Time of each launch of a sequence; empty if the body is a single launch.
    pub each: Vec<Estimate>,
    /// Speedup: the baseline's time divided by this one's.
    pub against_baseline: Option<Ratio>,
    /// Speedup over the previous variant of the manifest, if only the variant is compared.
    pub against_previous: Option<Ratio>,
}

/// SM clock over some samples, in MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmClock {
    pub median: u32,
    pub least: u32,
}

/// Variation between the processes that measured a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processes {
    pub count: u32,
    /// Standard deviation of the log medians.
    pub deviation: f64,
}

/// Noise floor, from comparing the baseline with itself. A speedup within it is not significant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    pub regime: Regime,
    /// Half-width as a fraction: a ratio within 1 ± `width` is noise.
    #[serde(with = "super::real")]
    pub width: f64,
    /// Number of groups with an A/A control.
    pub comparisons: u32,
}

/// A speedup over another case, with its confidence intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Name of the other case: its variant, followed by its values of compared axes.
    pub against: String,
    /// The speedup with an interval that covers repeatability within this run.
    pub speedup: Estimate,
    /// The speedup with an interval that also covers other processes on a device of the same model; `None` if the
    /// spread between processes is unknown.
    pub reproducible: Option<Estimate>,
    /// Noise that the speedup must exceed, as a fraction: the regime's noise floor or, if larger, the noise of the A/A
    /// control in the rounds of this comparison. `None` without a control.
    pub noise: Option<f64>,
}
