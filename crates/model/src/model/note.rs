//! Remarks of a report on a case besides its outcome: data, which `render` words.

use serde::{Deserialize, Serialize};

use super::{Regime, ThrottleReason};

/// A note on a case. Fractions are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The samples became slower (positive) or faster (negative) from the first to the last, by this fraction of the
    /// median.
    Trend {
        /// The regime of the samples.
        regime: Regime,
        /// The change, as a fraction of the median.
        #[serde(with = "super::real")]
        drift: f64,
    },
    /// The samples form two groups: the share of the slower one, and by which fraction of the faster group's mean it is
    /// slower.
    Bimodal {
        /// The regime of the samples.
        regime: Regime,
        /// The share of samples in the slower group.
        #[serde(with = "super::real")]
        share: f64,
        /// How much slower that group's mean is, as a fraction of the faster group's.
        #[serde(with = "super::real")]
        slower: f64,
    },
    /// Consecutive samples are correlated: a fair interval is this fraction of the median on either side.
    Correlated {
        /// The regime of the samples.
        regime: Regime,
        /// The correlation of consecutive samples, −1 to 1.
        #[serde(with = "super::real")]
        correlation: f64,
        /// Half the width that a fair interval has, as a fraction of the median.
        #[serde(with = "super::real")]
        half_width: f64,
    },
    /// Samples were taken while the device was throttled.
    Throttled {
        /// The regime of the samples.
        regime: Regime,
        /// Why the device limited its clocks.
        reasons: Vec<ThrottleReason>,
        /// Samples that were discarded and taken again.
        discarded: u64,
        /// Samples that count, since the throttling lasted.
        kept: u64,
    },
    /// The case ran after the others of its group, alone.
    RanAlone {
        /// Why it could not share the rounds of its group.
        why: Crowded,
        /// Whether it was timed. If so, it shares no rounds with other cases.
        timed: bool,
    },
    /// No input of the case changes between launches.
    FixedInputs {
        /// Why there is no second set of inputs.
        why: Fixed,
    },
    /// A host function waits for the work that it queues, so that its launches cannot be gated.
    NotGated {
        /// The host function's C name.
        function: String,
    },
    /// The body has a loop whose condition the host reads.
    Loop {
        /// The number of iterations that the checked run made.
        iterations: u32,
        /// How long the host takes to read the condition on an idle device, seconds; `None` without a clock.
        #[serde(default, with = "super::real")]
        round_trip: Option<f64>,
    },
    /// A sample of the blocks ran. The counts are theirs, scaled to the whole grid: estimates.
    Sampled {
        /// The number of blocks that ran.
        ran: u64,
        /// The number of blocks of the grid.
        of: u64,
    },
    /// Elements of a check that were compared, where not all were: those that its `where` selects, and that the blocks
    /// that ran have changed.
    Judged {
        /// The check, as the manifest writes it.
        check: String,
        /// The elements that were compared.
        elements: u64,
        /// All elements of the check.
        of: u64,
    },
    /// Energy was asked for, and the device's counter changed too rarely in this time.
    NoEnergy {
        /// Changes of the counter that were seen.
        moved: u64,
        /// The number of seconds that the pass took.
        #[serde(with = "super::real")]
        seconds: f64,
        /// The number of changes that an energy needs.
        needed: u64,
    },
    /// Hardware counters were asked for: why this case has none.
    NoCounters {
        /// The reason, in a sentence.
        why: String,
    },
    /// The case did not end well under compute-sanitizer, which found nothing in it.
    NotMemchecked {
        /// How it ended there.
        outcome: String,
    },
    /// The case ended differently under the profiler, so it has no hardware counters.
    FailedUnderProfiler {
        /// The name of the outcome that the case had there.
        outcome: String,
    },
    /// Lines that the kernel printed; the journal has them.
    Printed {
        /// The number of lines.
        lines: u64,
    },
    /// The journal holds no usable samples of a case that was measured.
    NoSamples,
    /// Text of a device, such as the simulator's sanitizer, or a sentence of a record of version 1 whose words are
    /// unknown.
    Text(String),
}

/// Why the inputs of a case stay the same in every launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fixed {
    /// Constants, `iota`, lists and files have one content, unless they are permuted.
    NotRandom,
    /// The expected values are in a file or a list, which is right for one content of the inputs only.
    Expected,
    /// Device memory has no room for a second set.
    Memory,
}

/// Why a case could not share its group's rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Crowded {
    /// Device memory cannot hold its buffers beside those of its group.
    Memory,
    /// The variant that it is compared with ran alone.
    Reference(String),
}
