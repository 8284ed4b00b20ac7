//! Remarks on a case in a report, besides its outcome.
//!
//! They are plain data, so that records contain no sentences; `runner-report` phrases them.

use serde::{Deserialize, Serialize};

use super::{Bytes, Regime, ThrottleReason, WeakCheck};

/// A note on a case. Fractions are relative to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The samples drifted from the first to the last.
    Trend {
        regime: Regime,
        /// Drift as a fraction of the median; positive if the samples became slower.
        #[serde(with = "super::real")]
        drift: f64,
    },
    /// The samples form two clusters.
    Bimodal {
        regime: Regime,
        #[serde(with = "super::real")]
        share: f64,
        /// How much slower the slower cluster's mean is, as a fraction of the faster one's.
        #[serde(with = "super::real")]
        slower: f64,
    },
    /// Consecutive samples are correlated, so the median's confidence interval is too narrow.
    Correlated {
        regime: Regime,
        /// Lag-1 autocorrelation, −1 to 1.
        #[serde(with = "super::real")]
        correlation: f64,
        /// Half-width of an interval that accounts for the correlation, as a fraction of the median.
        #[serde(with = "super::real")]
        half_width: f64,
    },
    /// Samples were taken while the device was throttled.
    Throttled {
        regime: Regime,
        reasons: Vec<ThrottleReason>,
        /// Samples discarded and taken again.
        discarded: u64,
        /// Samples kept although throttled, since the throttling continued.
        kept: u64,
    },
    /// The case ran alone, after the others of its group.
    RanAlone {
        why: RanAloneReason,
        /// Whether it was timed, in rounds shared with no other case.
        timed: bool,
    },
    /// None of the case's inputs changes between launches.
    FixedInputs {
        why: FixedInputsReason,
    },
    /// The device cannot start launches any faster, so the time is launch overhead, not the kernel's time.
    LaunchBound {
        regime: Regime,
        /// Nanoseconds from one empty launch to the next.
        #[serde(with = "super::real")]
        interval: f64,
    },
    /// All buffer sets of `rotate` together fit in the L2.
    RotatesInCache {
        sets: u32,
        bytes: Bytes,
        l2: Bytes,
    },
    /// The simulator checked the case on only one of its two sets of inputs.
    OneSet {
        why: Skipped,
    },
    /// A host function waits for the work that it queues, so its launches cannot be held behind a gate.
    NotGated {
        /// C name of the host function.
        function: String,
    },
    /// The body has a loop whose condition the host reads.
    Loop {
        iterations: u32,
        /// Seconds that the host takes to read the condition on an idle device; `None` without a clock.
        #[serde(default, with = "super::real")]
        round_trip: Option<f64>,
    },
    /// Only a sample of the blocks ran. Their counts, scaled to the whole grid, are estimates.
    Sampled {
        ran: u64,
        of: u64,
    },
    /// For some machine instructions of a kernel, counts could not be derived.
    Underived {
        /// Kernel name as the linker knows it.
        kernel: String,
        /// Number of machine instructions without a count.
        unknown: u64,
        /// Number of all its machine instructions.
        of: u64,
    },
    /// Memory access counts of a kernel's machine code could not be derived.
    UnderivedAccesses {
        /// Kernel name as the linker knows it.
        kernel: String,
        /// Names of the missing counters.
        counters: Vec<String>,
    },
    /// There is no machine code to derive counts for.
    NoMachineCode {
        /// The reason and what to do, in a sentence.
        why: String,
    },
    /// A check compared only some elements: those that its `where` selects and that the executed blocks changed.
    Judged {
        /// The check, as written in the manifest.
        check: String,
        elements: u64,
        of: u64,
    },
    Weak(WeakCheck),
    /// Energy was requested, but the device's counter changed too rarely.
    NoEnergy {
        /// Number of observed changes of the counter.
        moved: u64,
        #[serde(with = "super::real")]
        seconds: f64,
        /// Number of changes needed to compute an energy.
        needed: u64,
    },
    /// Hardware counters were requested, but this case has none.
    NoCounters {
        why: String,
    },
    /// The case failed under compute-sanitizer, although the sanitizer reported nothing.
    NotMemchecked {
        /// Outcome under compute-sanitizer.
        outcome: String,
    },
    /// The case had a different outcome under the profiler, so it has no hardware counters.
    FailedUnderProfiler {
        /// Name of the outcome under the profiler.
        outcome: String,
    },
    Printed {
        lines: u64,
    },
    /// The case was measured, but the journal has no usable samples.
    NoSamples,
    /// A message from the device, e.g. from the simulator's sanitizer, or an unrecognised sentence in a version 1
    /// record.
    Text(String),
}

/// Why the inputs of a case are the same in every launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixedInputsReason {
    /// Constants, `iota`, lists and files always have the same content, unless they are permuted.
    NotRandom,
    /// The expected values come from a file or a list, which is valid for only one set of inputs.
    Expected,
    /// The device has no memory for a second set.
    Memory,
}

/// Why the simulator checked a case on only one set of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// Another launch would take more than about a second.
    Cost,
    /// A reference in Python or C++ takes an unknown time.
    Function,
    /// A sampled launch does not write everything that a second launch would read from a variable.
    Sample,
    /// The host has no memory for the second set.
    Memory,
}

/// Why a case could not share its group's rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RanAloneReason {
    /// Device memory cannot hold its buffers in addition to the rest of the group's.
    Memory,
    /// The variant that serves as its reference ran alone.
    Reference(String),
}
