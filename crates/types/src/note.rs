//! Remarks in a report about a case, besides its outcome.
//!
//! They are data, so that records contain no sentences; `render` words them.

use serde::{Deserialize, Serialize};

use super::{Bytes, Regime, ThrottleReason, WeakCheck};

/// A note on a case. Fractions are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The samples became slower (positive) or faster (negative) from the first to the last.
    Trend {
        regime: Regime,
        /// Change as a fraction of the median.
        #[serde(with = "super::real")]
        drift: f64,
    },
    /// The samples form two groups.
    Bimodal {
        regime: Regime,
        #[serde(with = "super::real")]
        share: f64,
        /// How much slower that group's mean is, as a fraction of the faster group's.
        #[serde(with = "super::real")]
        slower: f64,
    },
    /// Consecutive samples are correlated, so the median's interval is too narrow.
    Correlated {
        regime: Regime,
        /// Correlation of consecutive samples, −1 to 1.
        #[serde(with = "super::real")]
        correlation: f64,
        /// Half the width of a fair interval, as a fraction of the median.
        #[serde(with = "super::real")]
        half_width: f64,
    },
    /// Samples were taken while the device was throttled.
    Throttled {
        regime: Regime,
        reasons: Vec<ThrottleReason>,
        /// Samples that were discarded and taken again.
        discarded: u64,
        /// Samples that count, since the throttling lasted.
        kept: u64,
    },
    /// The case ran alone, after the others of its group.
    RanAlone {
        why: RanAloneReason,
        /// Whether it was timed. If so, it shares no rounds with other cases.
        timed: bool,
    },
    /// No input of the case changes between launches.
    FixedInputs {
        why: FixedInputsReason,
    },
    /// Launches followed each other as fast as the device starts them, so the time is not the kernel's.
    LaunchBound {
        regime: Regime,
        /// Nanoseconds from one empty launch to the next.
        #[serde(with = "super::real")]
        interval: f64,
    },
    /// The sets of buffers of `rotate` fit the L2 together.
    RotatesInCache {
        sets: u32,
        bytes: Bytes,
        l2: Bytes,
    },
    /// The simulator checked the case on one of its two sets of inputs.
    OneSet {
        why: Skipped,
    },
    /// A host function waits for the work that it queues, so its launches cannot be gated.
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
    /// Counts of machine instructions that could not be derived for a kernel.
    Underived {
        /// The kernel, as the linker knows it.
        kernel: String,
        /// The number of machine instructions without a count.
        unknown: u64,
        /// The number of its machine instructions.
        of: u64,
    },
    /// Counts of a kernel's accesses to memory that could not be derived for its machine code.
    UnderivedAccesses {
        /// The kernel, as the linker knows it.
        kernel: String,
        /// The names of the counters.
        counters: Vec<String>,
    },
    /// There is no machine code whose counts could be derived.
    NoMachineCode {
        /// The reason and what to do, in a sentence.
        why: String,
    },
    /// Elements of a check that were compared, where not all were: those that its `where` selects, and that the blocks
    /// that ran have changed.
    Judged {
        /// The check, as written in the manifest.
        check: String,
        elements: u64,
        of: u64,
    },
    /// A check of the case accepts wrong results.
    Weak(WeakCheck),
    /// Energy was requested, but the device's counter changed too rarely.
    NoEnergy {
        /// Observed changes of the counter.
        moved: u64,
        #[serde(with = "super::real")]
        seconds: f64,
        /// Changes needed to compute an energy.
        needed: u64,
    },
    /// Hardware counters were requested, but this case has none.
    NoCounters {
        why: String,
    },
    /// The case did not end well under compute-sanitizer, although that found nothing.
    NotMemchecked {
        /// How it ended there.
        outcome: String,
    },
    /// The case ended differently under the profiler, so it has no hardware counters.
    FailedUnderProfiler {
        /// Name of its outcome there.
        outcome: String,
    },
    Printed {
        lines: u64,
    },
    /// The case was measured, but the journal has no usable samples.
    NoSamples,
    /// Text of a device, such as the simulator's sanitizer, or a sentence from a record of version 1 that is unknown.
    Text(String),
}

/// Why the inputs of a case stay the same in every launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixedInputsReason {
    /// Constants, `iota`, lists and files have one content, unless they are permuted.
    NotRandom,
    /// The expected values are in a file or a list, which is right for only one content of the inputs.
    Expected,
    /// Device memory has no room for a second set.
    Memory,
}

/// Why the simulator checked a case on one set of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// Another launch costs more than about a second.
    Cost,
    /// How long a reference in Python or C++ takes is unknown.
    Function,
    /// A sample of the blocks does not write all that another launch finds in a variable.
    Sample,
    /// The host's memory has no room for the second set.
    Memory,
}

/// Why a case could not share its group's rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RanAloneReason {
    /// Device memory cannot hold its buffers in addition to its group's.
    Memory,
    /// The variant that it is compared with ran alone.
    Reference(String),
}
