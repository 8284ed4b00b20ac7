//! Events of a run. Workers, the dispatcher and the commands emit them; the journal writes them and the progress
//! display draws them.
//!
//! No emitter knows its receivers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Case, CaseHashes, CompileUnit, CountedLine, Counters, Dim3, Energy, Environment, Fingerprint, FormedRatios,
    GroupKey, LaunchRecord, Measurement, Note, Outcome, ResultError, RunContext, RunHeader, Verdict,
};

/// Step of a case that a worker is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Makes and uploads inputs, and computes references.
    Preparing,
    /// Loads the module and checks the first launch.
    Checking,
    /// Warm-up launches and samples, with the passes for energy and counters.
    Measuring,
    /// Checks of later launches: the second one, and timed ones.
    Rechecking,
}

/// Part of a run's wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Expanding the matrix and ordering its cases.
    Plan,
    /// Waiting for compiled kernels.
    Compile,
    /// Making, uploading and downloading inputs.
    Transfer,
    /// Launches that are checked, references and comparisons.
    Check,
    Measure,
}

/// A launch as a profiler names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedLaunch {
    pub kernel: String,
    pub grid: Dim3,
    pub block: Dim3,
}

/// Compiled code of a kernel, which maps each machine instruction to a source line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelCode {
    /// Sources and options that the code was compiled from.
    pub unit: CompileUnit,
    pub path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A command began to execute a plan.
    RunStarted {
        /// Facts that a reader of the records needs first.
        header: Box<RunHeader>,
        /// What results depend on: device, driver, toolkit.
        environment: Box<Environment>,
        /// Where, when and how the run was started.
        context: RunContext,
        cases: u64,
        groups: u32,
    },
    /// Cells of the plan, once per run and before any of them is settled. A cell that is never settled is shown as not
    /// run, so that a truncated journal misses none.
    CasesPlanned {
        /// Cases to be run, or settled without running (excluded, unresolved). Results of an earlier run no longer
        /// apply.
        todo: Vec<Case>,
        /// Cases that are not run again. Their last result in the continued journal still applies.
        held: Vec<Case>,
    },
    CompileStarted {
        units: u32,
    },
    UnitCompiled {
        /// The unit's [`CompileKey`](super::CompileKey); empty if it failed.
        key: String,
        /// The unit's kernels, as comma-separated C++ name expressions.
        label: String,
        #[serde(with = "super::real")]
        seconds: f64,
        cached: bool,
        failed: bool,
    },
    /// No unit is left to compile. Groups may have run at the same time.
    CompileFinished {
        /// Wall time since `CompileStarted`.
        #[serde(with = "super::real")]
        seconds: f64,
    },
    GroupStarted {
        ordinal: u32,
        key: GroupKey,
        /// Number of cases to run.
        cases: u32,
    },
    /// A step of the case starts now and must end within `limit` seconds. A heartbeat, which the journal does not keep.
    CaseActive {
        case: Case,
        activity: Activity,
        /// Seconds from now that the step may take.
        #[serde(with = "super::real")]
        limit: f64,
    },
    /// The first check is done. Written at once, so that a later crash does not lose it.
    CaseChecked {
        case: Case,
        /// Fingerprint of the case; `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        /// Hashes of its parts; `None` if the code is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hashes: Option<CaseHashes>,
        verdict: Verdict,
        /// Launches of the body as they were made.
        launches: Vec<LaunchRecord>,
    },
    /// The samples of a case in one regime were taken.
    CaseMeasured {
        case: Case,
        measurement: Measurement,
    },
    CaseCounted {
        case: Case,
        counters: Counters,
        /// Counters of each launch of a sequence; empty for a body of one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        each: Vec<Counters>,
        /// Counts by source line; empty if lines were not counted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<CountedLine>,
    },
    /// The process is about to make these launches between marks for an external profiler. Not kept in the journal,
    /// unlike the profiler's counts, which follow as `CaseCounted`.
    LaunchesMarked {
        case: Case,
        /// Process id of the worker.
        process: u32,
        launches: Vec<MarkedLaunch>,
        /// Whether only the counters of the whole body are wanted.
        #[serde(default)]
        whole_only: bool,
        /// Code of the kernels by mangled name, if counts by source line are wanted.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        code: BTreeMap<String, KernelCode>,
    },
    /// The first process that measures a group took its share of the samples, since others are to follow. For the
    /// dispatcher alone, and not kept in the journal.
    SamplesShared {
        /// All processes, this one included.
        processes: u32,
    },
    /// Counters were requested, but there are none.
    CountersMissing {
        /// The reason and what to do, in sentences.
        why: String,
    },
    CaseMetered {
        case: Case,
        energy: Energy,
    },
    /// Energy was requested, but the device does not measure it.
    EnergyMissing {
        why: String,
    },
    /// Error of correct results relative to the reference, if the manifest asks for it.
    CaseErred {
        case: Case,
        error: ResultError,
    },
    /// The checked launch printed something on the device.
    CasePrinted {
        case: Case,
        /// All lines, as they were printed.
        text: String,
    },
    CaseNote {
        case: Case,
        note: Note,
    },
    /// The case finished.
    CaseSettled {
        case: Case,
        /// Fingerprint of the case; `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        outcome: Outcome,
        work: super::WorkAmount,
    },
    /// Every case of a group has its outcome.
    GroupFinished {
        ordinal: u32,
        key: GroupKey,
    },
    /// Ratios of a group's samples. Bootstrapping them takes long, so it is done once, in the process that measured.
    RatiosFormed {
        key: GroupKey,
        #[serde(with = "super::real")]
        ratios: FormedRatios,
    },
    /// A phase of the run took this long.
    PhaseSpent {
        phase: Phase,
        /// Wall time, to be added to the same phase's in other groups.
        #[serde(with = "super::real")]
        seconds: f64,
    },
    /// The run ended. Always the last event.
    RunFinished {
        /// Whether every planned case was run; false after an interruption.
        complete: bool,
        #[serde(with = "super::real")]
        wall_seconds: f64,
    },
}

impl Event {
    /// The case that the event is about; `None` for events of a group or a run.
    pub fn case(&self) -> Option<&Case> {
        match self {
            Self::CaseActive { case, .. }
            | Self::CaseChecked { case, .. }
            | Self::CaseMeasured { case, .. }
            | Self::CaseCounted { case, .. }
            | Self::LaunchesMarked { case, .. }
            | Self::CaseMetered { case, .. }
            | Self::CaseErred { case, .. }
            | Self::CasePrinted { case, .. }
            | Self::CaseNote { case, .. }
            | Self::CaseSettled { case, .. } => Some(case),
            _ => None,
        }
    }
}
