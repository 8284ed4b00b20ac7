//! Events of a run. Workers, the dispatcher and the commands emit them; the journal writes them and the progress
//! display draws them.
//!
//! Emitters do not know who receives their events.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Case, CaseHashes, CompileUnit, CountedLine, Counters, Dim3, Energy, Environment, Fingerprint, FormedRatios,
    GroupKey, LaunchRecord, Measurement, Note, Outcome, ResultError, RunContext, RunHeader, Verdict,
};

/// Step of a case that a worker is executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Creates and uploads inputs, and computes references.
    Preparing,
    /// Loads the module and checks the first launch.
    Checking,
    /// Runs warm-up launches, samples, and passes for energy and counters.
    Measuring,
    /// Checks the second launch and timed launches.
    Rechecking,
}

/// A share of a run's wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Expanding the matrix and ordering its cases.
    Plan,
    /// Waiting for compiled kernels.
    Compile,
    /// Creating, uploading and downloading inputs.
    Transfer,
    /// Checked launches, references and comparisons.
    Check,
    Measure,
}

/// A launch as the profiler identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedLaunch {
    pub kernel: String,
    pub grid: Dim3,
    pub block: Dim3,
}

/// Code of a kernel, for mapping its machine instructions to source lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelCode {
    /// Sources and options of the code.
    pub unit: CompileUnit,
    pub path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A command started executing a plan.
    RunStarted {
        header: Box<RunHeader>,
        /// Device, driver, toolkit: everything that results depend on.
        environment: Box<Environment>,
        /// Where, when and how the run was started.
        context: RunContext,
        cases: u64,
        groups: u32,
    },
    /// Cells of the plan, listed once per run before any of them finishes. A cell that never finishes is shown as not
    /// run, so a truncated journal still lists every cell.
    CasesPlanned {
        /// Cases that will run, or finish without running (excluded, unresolved). Results of earlier runs are void.
        todo: Vec<Case>,
        /// Cases that are not run again. Their last result in the continued journal stays valid.
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
    /// All units are compiled. Groups may have run in the meantime.
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
    /// A step of the case starts now and must end within `limit` seconds. This heartbeat is not written to the journal.
    CaseActive {
        case: Case,
        activity: Activity,
        /// Time limit of the step, in seconds from now.
        #[serde(with = "super::real")]
        limit: f64,
    },
    /// The first check is done. Written immediately, so that a later crash does not lose it.
    CaseChecked {
        case: Case,
        /// `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        /// `None` if the code is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hashes: Option<CaseHashes>,
        verdict: Verdict,
        /// Launches of the body with their actual configuration.
        launches: Vec<LaunchRecord>,
    },
    /// A case was sampled in one regime.
    CaseMeasured {
        case: Case,
        measurement: Measurement,
    },
    CaseCounted {
        case: Case,
        counters: Counters,
        /// Counters of each launch of a sequence; empty if the body is a single launch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        each: Vec<Counters>,
        /// Counts by source line; empty if lines were not counted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<CountedLine>,
    },
    /// The process is about to make these launches between marks for an external profiler. Not written to the journal;
    /// the profiler's counts follow as `CaseCounted`.
    LaunchesMarked {
        case: Case,
        /// Process id of the worker.
        process: u32,
        launches: Vec<MarkedLaunch>,
        /// Whether to collect counters only for the body as a whole.
        #[serde(default)]
        whole_only: bool,
        /// Code of the kernels by mangled name, if counts by source line are requested.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        code: BTreeMap<String, KernelCode>,
    },
    /// The first process that measures a group took only its share of the samples; others follow. Only for the
    /// dispatcher, and not written to the journal.
    SamplesShared {
        /// Total number of processes, including this one.
        processes: u32,
    },
    /// Counters were requested, but none are available.
    CountersMissing {
        /// The reason and what to do, in full sentences.
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
    /// Error of a correct result relative to the reference, if the manifest asks for it.
    CaseErred {
        case: Case,
        error: ResultError,
    },
    /// The checked launch called `printf` on the device.
    CasePrinted {
        case: Case,
        /// All printed lines, verbatim.
        text: String,
    },
    CaseNote {
        case: Case,
        note: Note,
    },
    /// The case finished.
    CaseSettled {
        case: Case,
        /// `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        outcome: Outcome,
        work: super::WorkAmount,
    },
    /// Every case of a group is finished.
    GroupFinished {
        ordinal: u32,
        key: GroupKey,
    },
    /// Ratios of a group's samples. Bootstrapping them is slow, so it is done once, in the measuring process.
    RatiosFormed {
        key: GroupKey,
        #[serde(with = "super::real")]
        ratios: FormedRatios,
    },
    /// Time that a group spent in a phase of the run.
    PhaseSpent {
        phase: Phase,
        /// Wall time; the times of all groups are added up.
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
    /// The case that the event is about; `None` for events about a group or a run.
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
