//! What execution says aloud. Workers, the dispatcher and the commands emit events; the journal writes them, the
//! progress display draws them. Nobody who emits one knows who listens.

use serde::{Deserialize, Serialize};

use super::{
    Case, CaseHashes, Counters, Dim3, Energy, Environment, Fingerprint, GroupKey, LaunchRecord, Measurement, Note,
    Outcome, ResultError, RunContext, RunHeader, Verdict,
};

/// What a worker is busy with, so that a watcher knows what to blame.
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

/// Where the wall time of a run went.
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
    /// The cells of the plan, once a run and before any of them is settled. A cell that never settles after this is
    /// shown as not run, so that a journal cut short misses none.
    CasesPlanned {
        /// To be run, or settled without running (excluded, unresolved): what an earlier run says of them is void.
        todo: Vec<Case>,
        /// Held over from the journal that the run continues: its last result of them stands.
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
    /// No unit is left to compile. `seconds` since `CompileStarted`, part of them beside groups that ran.
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
    /// The process is about to make these launches between marks that a profiler outside of it heeds. Not kept in the
    /// journal: what the profiler counted is, as `CaseCounted`.
    LaunchesMarked {
        case: Case,
        process: u32,
        launches: Vec<MarkedLaunch>,
    },
    /// Counters were asked for, and there are none: why, and what to do.
    CountersMissing {
        why: String,
    },
    /// Energy was asked for in a pass of its own.
    CaseMetered {
        case: Case,
        energy: Energy,
    },
    /// Energy was asked for, and the device counts none: why.
    EnergyMissing {
        why: String,
    },
    /// How far from the reference the results lie that passed; only where the manifest asks for it.
    CaseErred {
        case: Case,
        error: ResultError,
    },
    /// Device printf of the checked launch.
    CasePrinted {
        case: Case,
        text: String,
    },
    /// Something a reader of the report should know about the case.
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
