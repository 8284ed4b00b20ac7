//! What happens during a run. Workers, the dispatcher and the commands emit events; the journal writes them and the
//! progress display draws them. No emitter knows its receivers.

use serde::{Deserialize, Serialize};

use super::{
    Case, CaseHashes, Counters, Dim3, Energy, Environment, Fingerprint, GroupKey, LaunchRecord, Measurement, Note,
    Outcome, ResultError, RunContext, RunHeader, Verdict,
};

/// The step of a case that a worker is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Making and uploading inputs, computing references.
    Preparing,
    /// Loading the module, the first launch and its check.
    Checking,
    Measuring,
    /// The check after the last timed launch.
    Rechecking,
}

/// A part of the wall time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Plan,
    Compile,
    /// Inputs, uploads, downloads.
    Transfer,
    Check,
    Measure,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Plan => "plan",
            Self::Compile => "compile",
            Self::Transfer => "transfer",
            Self::Check => "check",
            Self::Measure => "measure",
        })
    }
}

/// A launch as a profiler names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedLaunch {
    /// The kernel's mangled name.
    pub kernel: String,
    pub grid: Dim3,
    pub block: Dim3,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    RunStarted {
        header: Box<RunHeader>,
        environment: Box<Environment>,
        context: RunContext,
        cases: u64,
        groups: u32,
    },
    /// The cells of the plan, once per run and before any of them is settled. A cell that is never settled after this is
    /// shown as not run, so that a journal that was cut short misses none.
    CasesPlanned {
        /// To be run, or settled without running (excluded, unresolved). Results of an earlier run no longer apply.
        todo: Vec<Case>,
        /// Not run again: the last result in the journal that this run continues still applies.
        held: Vec<Case>,
    },
    CompileStarted {
        units: u32,
    },
    UnitCompiled {
        key: String,
        label: String,
        seconds: f64,
        cached: bool,
        failed: bool,
    },
    /// No unit is left to compile. `seconds` since `CompileStarted`; groups may have run at the same time.
    CompileFinished {
        seconds: f64,
    },
    GroupStarted {
        ordinal: u32,
        key: GroupKey,
        cases: u32,
    },
    /// The case's step starts now and must end within `limit` seconds. A heartbeat: not kept in the journal.
    CaseActive {
        case: Case,
        activity: Activity,
        limit: f64,
    },
    /// The first check is done: kept at once, so that a later crash does not lose it.
    CaseChecked {
        case: Case,
        fingerprint: Option<Fingerprint>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hashes: Option<CaseHashes>,
        verdict: Verdict,
        launches: Vec<LaunchRecord>,
    },
    CaseMeasured {
        case: Case,
        measurement: Measurement,
    },
    CaseCounted {
        case: Case,
        counters: Counters,
        /// Of each launch of a sequence; empty for a body of one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        each: Vec<Counters>,
    },
    /// The process is about to make these launches between marks for a profiler outside of it. Not kept in the journal,
    /// unlike the profiler's counts, which follow as `CaseCounted`.
    LaunchesMarked {
        case: Case,
        process: u32,
        launches: Vec<MarkedLaunch>,
    },
    /// Counters were asked for, and there are none: why, and what to do.
    CountersMissing {
        why: String,
    },
    /// The energy of the case, measured in a pass of its own.
    CaseMetered {
        case: Case,
        energy: Energy,
    },
    /// Energy was asked for, and the device does not measure it: why.
    EnergyMissing {
        why: String,
    },
    /// The error of results that passed, relative to the reference; only if the manifest asks for it.
    CaseErred {
        case: Case,
        error: ResultError,
    },
    /// Device printf of the checked launch.
    CasePrinted {
        case: Case,
        text: String,
    },
    /// A remark for readers of the report.
    CaseNote {
        case: Case,
        note: Note,
    },
    /// The case's one outcome.
    CaseSettled {
        case: Case,
        fingerprint: Option<Fingerprint>,
        outcome: Outcome,
        work: super::WorkAmount,
    },
    GroupFinished {
        ordinal: u32,
        key: GroupKey,
    },
    PhaseSpent {
        phase: Phase,
        seconds: f64,
    },
    RunFinished {
        complete: bool,
        wall_seconds: f64,
    },
}

impl Event {
    /// The case that the event is about; `None` for those of a group or a run.
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
