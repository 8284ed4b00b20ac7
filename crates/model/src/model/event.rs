//! What happens during a run. Workers, the dispatcher and the commands emit events; the journal writes them and the
//! progress display draws them. No emitter knows its receivers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Case, CaseHashes, CompileUnit, CountedLine, Counters, Dim3, Energy, Environment, Fingerprint, FormedRatios,
    GroupKey, LaunchRecord, Measurement, Note, Outcome, ResultError, RunContext, RunHeader, Verdict,
};

/// The step of a case that a worker is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Inputs are made and uploaded, and references are computed.
    Preparing,
    /// The module is loaded, and the first launch is checked.
    Checking,
    /// Warm-up launches and samples are made, with the passes for energy and counters.
    Measuring,
    /// Checks of later launches: the second one, and timed ones.
    Rechecking,
}

/// A part of the wall time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The matrix is expanded and its cases are ordered.
    Plan,
    /// The run waits for compiled kernels.
    Compile,
    /// Inputs are made, uploaded and downloaded.
    Transfer,
    /// Launches that are checked, references and comparisons.
    Check,
    /// Warm-up launches and samples are made.
    Measure,
}

/// A launch as a profiler names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedLaunch {
    /// The kernel's mangled name.
    pub kernel: String,
    /// The number of blocks that the grid has.
    pub grid: Dim3,
    /// The number of threads that each block has.
    pub block: Dim3,
}

/// The code of a kernel, which says what line each machine instruction comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelCode {
    /// The sources and options that the code was compiled from.
    pub unit: CompileUnit,
    /// The path of the compiled code.
    pub path: PathBuf,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A command began to execute a plan.
    RunStarted {
        /// What a reader of the records needs to know first.
        header: Box<RunHeader>,
        /// What results depend on: device, driver, toolkit.
        environment: Box<Environment>,
        /// Where, when and how the run was started.
        context: RunContext,
        /// The number of cases that the plan has.
        cases: u64,
        /// Groups of the plan.
        groups: u32,
    },
    /// The cells of the plan, once per run and before any of them is settled. A cell that is never settled after this
    /// is shown as not run, so that a journal that was cut short misses none.
    CasesPlanned {
        /// The case is to be run, or settled without running (excluded, unresolved). Results of an earlier run no longer apply.
        todo: Vec<Case>,
        /// The case is not run again: the last result in the journal that this run continues still applies.
        held: Vec<Case>,
    },
    /// The compiler begins.
    CompileStarted {
        /// Units to compile in this run.
        units: u32,
    },
    /// One unit is compiled, or is known not to compile.
    UnitCompiled {
        /// The unit's [`CompileKey`](super::CompileKey); empty if it failed.
        key: String,
        /// The unit's kernels, as C++ name expressions between commas.
        label: String,
        /// The time that the compiler took.
        #[serde(with = "super::real")]
        seconds: f64,
        /// Whether the code came from the cache.
        cached: bool,
        /// Whether it does not compile.
        failed: bool,
    },
    /// No unit is left to compile. `seconds` since `CompileStarted`; groups may have run at the same time.
    CompileFinished {
        /// The wall time since `CompileStarted`.
        #[serde(with = "super::real")]
        seconds: f64,
    },
    /// A worker began a group.
    GroupStarted {
        /// The position among the groups of the plan.
        ordinal: u32,
        /// The values of the axes that its cases share.
        key: GroupKey,
        /// Cases of the group that are run.
        cases: u32,
    },
    /// The case's step starts now and must end within `limit` seconds. The event is a heartbeat, which is not kept in
    /// the journal.
    CaseActive {
        /// The case that the step belongs to.
        case: Case,
        /// The step that the case is in.
        activity: Activity,
        /// The number of seconds from now that the step may take.
        #[serde(with = "super::real")]
        limit: f64,
    },
    /// The first check is done: kept at once, so that a later crash does not lose it.
    CaseChecked {
        /// The case that was checked.
        case: Case,
        /// Says whether the result still applies; `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        /// Hashes of its parts; `None` if the code is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hashes: Option<CaseHashes>,
        /// The result of the check.
        verdict: Verdict,
        /// The launches of its body as they were made.
        launches: Vec<LaunchRecord>,
    },
    /// The samples of a case were taken in one regime.
    CaseMeasured {
        /// The case that was measured.
        case: Case,
        /// The samples that were taken.
        measurement: Measurement,
    },
    /// The counters of a case, of the hardware or the simulator.
    CaseCounted {
        /// The case whose launches were counted.
        case: Case,
        /// The counters of the whole body.
        counters: Counters,
        /// The counters of each launch of a sequence; empty for a body of one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        each: Vec<Counters>,
        /// The counts by the lines of the sources; empty where lines were not counted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<CountedLine>,
    },
    /// The process is about to make these launches between marks for a profiler outside of it. Not kept in the journal,
    /// unlike the profiler's counts, which follow as `CaseCounted`.
    LaunchesMarked {
        /// The case that makes the launches.
        case: Case,
        /// The operating system's id of the worker process.
        process: u32,
        /// The launches in the order in which they are made.
        launches: Vec<MarkedLaunch>,
        /// Whether the counters of the whole body alone are wanted.
        #[serde(default)]
        whole_only: bool,
        /// The code of the kernels by their mangled names, if counts are wanted by the lines of the sources.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        code: BTreeMap<String, KernelCode>,
    },
    /// The first process that measures a group took its share of the samples, since others are to follow. For the
    /// dispatcher alone, and not kept in the journal.
    SamplesShared {
        /// All processes, this one included.
        processes: u32,
    },
    /// Counters were asked for, and there are none: why, and what to do.
    CountersMissing {
        /// The reason, and what to do, in sentences.
        why: String,
    },
    /// The energy of the case was measured, in a pass of its own.
    CaseMetered {
        /// The case that was metered.
        case: Case,
        /// The energy that a run of the body takes.
        energy: Energy,
    },
    /// Energy was asked for, and the device does not measure it: why.
    EnergyMissing {
        /// The reason, in a sentence.
        why: String,
    },
    /// The error of results that passed, relative to the reference; only if the manifest asks for it.
    CaseErred {
        /// The case whose result was compared.
        case: Case,
        /// The differences from the reference.
        error: ResultError,
    },
    /// The checked launch printed something on the device.
    CasePrinted {
        /// The case whose kernel printed.
        case: Case,
        /// All lines, as they were printed.
        text: String,
    },
    /// A remark for readers of the report.
    CaseNote {
        /// The case that the remark is about.
        case: Case,
        /// The remark, as data.
        note: Note,
    },
    /// The case has its one outcome.
    CaseSettled {
        /// The case that ended.
        case: Case,
        /// Says whether the result still applies; `None` if the code is unknown.
        fingerprint: Option<Fingerprint>,
        /// How it ended.
        outcome: Outcome,
        /// The least work of the case, from which rates are computed.
        work: super::WorkAmount,
    },
    /// Every case of a group has its outcome.
    GroupFinished {
        /// The position among the groups of the plan.
        ordinal: u32,
        /// The values of the axes that its cases share.
        key: GroupKey,
    },
    /// The ratios of a group's samples, which take long to bootstrap: formed once, where they were measured.
    RatiosFormed {
        /// The values of the axes that its cases share.
        key: GroupKey,
        /// The ratios, by what they are formed of.
        #[serde(with = "super::real")]
        ratios: FormedRatios,
    },
    /// A part of the run took this long.
    PhaseSpent {
        /// The part of the run.
        phase: Phase,
        /// Wall time, to be added to that of the same phase in other groups.
        #[serde(with = "super::real")]
        seconds: f64,
    },
    /// The run ended: the last event.
    RunFinished {
        /// Whether every planned case was run; false after an interruption.
        complete: bool,
        /// The time from the start of the run.
        #[serde(with = "super::real")]
        wall_seconds: f64,
    },
}

impl Event {
    /// Returns the case that the event is about; `None` for those of a group or a run.
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
