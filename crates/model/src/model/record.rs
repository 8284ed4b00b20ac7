//! The committed results: one record per case and regime, from which every report is made.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    BackendKind, Case, CaseHashes, Claim, ComparisonRules, CountedLine, Counters, Dim3, Energy, Environment, Estimate,
    Fingerprint, KernelResources, Note, Occupancy, Outcome, Regime, Unit, Verdict, WorkAmount,
};

/// Everything that a report is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// What a reader needs to know before the first case.
    pub header: RunHeader,
    /// What the results depend on.
    pub environment: Environment,
    /// The records of each case and regime, in the manifest's order.
    pub cases: Vec<CaseRecord>,
}

impl Records {
    /// Returns the counters of any case or launch, by name.
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

/// Whether a text can name an experiment, which is also a folder of reports: letters, digits, `-` and `_`.
pub fn can_name_experiment(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns the name of an experiment in a file that others may have written.
///
/// # Errors
///
/// If the text cannot name an experiment.
pub fn experiment_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if can_name_experiment(&name) {
        return Ok(name);
    }
    Err(D::Error::custom(format!("`{name}` cannot name an experiment: only letters, digits, `-` and `_` can")))
}

/// What a reader needs to know before the first case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The experiment's name in the manifest.
    #[serde(deserialize_with = "experiment_name")]
    pub experiment: String,
    /// The heading of the report.
    pub title: String,
    /// The question that the experiment answers; a paragraph of Markdown.
    pub question: Option<String>,
    /// The backend that ran the kernels.
    pub backend: BackendKind,
    /// The shared axes in the manifest's order.
    pub axes: Vec<AxisColumn>,
    /// The names of the expanded variants in the manifest's order.
    pub variants: Vec<String>,
    /// The baseline's variant, with the values that it has on the compared axes.
    pub baseline: Option<(String, Vec<(String, super::Value)>)>,
    /// Whether each variant is a step after the one before it, which is the manifest's default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub steps: bool,
    /// The manifest's path as the user named it, for the command line that the report shows.
    pub manifest_path: String,
    /// The manifest as it was run.
    pub manifest_text: String,
    /// The SHA-256 of the manifest's text, hexadecimal.
    pub manifest_hash: String,
    /// False for a run that was narrowed, by which options.
    pub narrowed: Option<String>,
    /// False if the run was interrupted.
    pub complete: bool,
    /// How many cases the plan has, if some of them are in none of the journals that were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// The command that makes the records again, if it is not `runner run` of the manifest on the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Why there are no counters although they were asked for, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_missing: Option<String>,
    /// Why there is no energy although it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_missing: Option<String>,
    /// One per regime in which an A/A control was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseFloor>,
    /// The claims that the manifest makes of the results, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// What the manifest says about comparisons.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub comparison: ComparisonRules,
    /// The template of `report.md`; `None` for the one that `runner` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PageTemplate>,
}

/// A template of the user. Records hold its text, so that they make the report wherever they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTemplate {
    /// The path that messages name.
    pub path: String,
    /// The content of the template.
    pub text: String,
}

/// What [`RunHeader::narrowed`] says of the cases that a search has chosen.
pub const FINALISTS: &str = "the finalists of a search";

impl RunHeader {
    /// Whether a variant is compared with the one before it: if the variant alone is compared, with a baseline and
    /// along steps.
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

/// A shared axis with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisColumn {
    /// The axis in the manifest.
    pub name: String,
    /// Whether its values are compared with each other.
    pub compared: bool,
}

/// The record of a case in one regime.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRecord {
    /// The cell of the matrix.
    pub case: Case,
    /// Says whether the result still applies; `None` if the case was not run.
    pub fingerprint: Option<Fingerprint>,
    /// The hashes of source, options, inputs and check; `None` if the case was not run.
    pub hashes: Option<CaseHashes>,
    /// How the case ended.
    pub outcome: Outcome,
    /// What the check found.
    pub verdict: Verdict,
    /// The launches of its body as they were made; empty if none was.
    pub launches: Vec<LaunchRecord>,
    /// The least work, from which rates are computed.
    pub work: WorkAmount,
    /// The times; `None` if nothing was measured.
    pub result: Option<RegimeResult>,
    /// The counters of the whole body; `None` if nothing was counted.
    pub counters: Option<Counters>,
    /// The counters of each launch of a sequence; empty for a body of one.
    pub each_counters: Vec<Counters>,
    /// The counts by the lines of the sources; empty where lines were not counted.
    pub lines: Vec<CountedLine>,
    /// The differences from the reference; `None` if the manifest does not ask for them.
    pub error: Option<ResultError>,
    /// The energy of one run of the body; `None` if it was not measured.
    pub energy: Option<Energy>,
    /// Remarks for readers of the report.
    pub notes: Vec<Note>,
}

impl CaseRecord {
    /// Returns the blocks that ran and all blocks of its launch, if its counts are estimates from a sample of the
    /// blocks.
    pub fn sample(&self) -> Option<(u64, u64)> {
        self.notes.iter().find_map(|note| if let Note::Sampled { ran, of } = note { Some((*ran, *of)) } else { None })
    }

    /// Returns the one launch that all others repeat, perhaps in other streams, and the number of streams.
    pub fn repeated(&self) -> Option<(&LaunchRecord, usize)> {
        let (first, others) = self.launches.split_first().filter(|(_, others)| !others.is_empty())?;
        let alike = |other: &LaunchRecord| LaunchRecord { stream: first.stream, ..other.clone() } == *first;
        let streams: BTreeSet<u32> = self.launches.iter().map(|launch| launch.stream).collect();
        others.iter().all(alike).then_some((first, streams.len()))
    }
}

/// How far a right result is from its reference, over the elements whose difference is a finite number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultError {
    /// The greatest difference of any element.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// The greatest as a fraction of the reference; elements whose reference is 0 have none.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// The mean of the differences as fractions of the reference.
    #[serde(with = "super::real")]
    pub mean_rel: f64,
    /// The greatest in units in the last place of the result's type, at the reference.
    #[serde(with = "super::real")]
    pub ulp: f64,
}

/// The configuration of one launch as it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// The launch's name in the report.
    pub label: String,
    /// The number of blocks that the grid has.
    pub grid: Dim3,
    /// The number of threads that each block has.
    pub block: Dim3,
    /// The bytes of dynamic shared memory that each block has.
    pub shared: u32,
    /// The registers and the memory that the kernel takes.
    pub resources: KernelResources,
    /// Theoretical occupancy; `None` if it is unknown.
    pub occupancy: Option<Occupancy>,
    /// The stream that it was launched in.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub stream: u32,
}

/// What was measured in one regime.
#[derive(Debug, Clone, PartialEq)]
pub struct RegimeResult {
    /// The state of the caches.
    pub regime: Regime,
    /// The clock that took the samples.
    pub unit: Unit,
    /// The median of the times, with the interval around it.
    pub time: Estimate,
    /// Samples that the median is of.
    pub samples: u32,
    /// Runs of the body in each sample, which is their mean.
    pub launches: u32,
    /// Sets of buffers over which these runs rotate.
    pub sets: u32,
    /// Bytes of the buffers that a run uses, on the device.
    pub working_set: Option<u64>,
    /// The SM clock during the samples, if it is known.
    pub sm_clock: Option<SmClock>,
    /// Samples taken while the device was throttled, discarded and taken again.
    pub discarded: u32,
    /// How the processes differed that took the samples; `None` if one process took all.
    pub processes: Option<Processes>,
    /// The times of each launch of a sequence; empty for a body of one.
    pub each: Vec<Estimate>,
    /// The speedup: the baseline's time over this one's.
    pub against_baseline: Option<Ratio>,
    /// Speedup against the variant before it in the manifest; only where the variant alone is compared.
    pub against_previous: Option<Ratio>,
}

/// The SM clock over some samples, MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmClock {
    /// The median over the samples.
    pub median: u32,
    /// The lowest of the samples.
    pub least: u32,
}

/// How the processes differed that measured a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processes {
    /// The number of processes.
    pub count: u32,
    /// The standard deviation of the logarithms of their medians.
    pub deviation: f64,
}

/// The noise floor: what comparisons of the baseline with itself show. A speedup within it is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The regime that was compared.
    pub regime: Regime,
    /// The width as a fraction: a ratio of 1 ± this much is noise.
    #[serde(with = "super::real")]
    pub width: f64,
    /// Groups with an A/A control.
    pub comparisons: u32,
}

/// A speedup with the intervals around it, and the case it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The case that it is compared with: the variant, followed by the values of compared axes.
    pub against: String,
    /// The speedup, whose interval says how well it repeats within the run.
    pub speedup: Estimate,
    /// The speedup with an interval that also covers other processes on a device of the same model. `None` if the
    /// differences between processes are unknown.
    pub reproducible: Option<Estimate>,
    /// The noise that the speedup must exceed, as a fraction: the regime's noise floor, or what the A/A control shows
    /// in the rounds of this comparison if that is more. The noise is `None` without a control.
    pub noise: Option<f64>,
}
