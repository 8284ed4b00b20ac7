//! What a report says of a case besides its outcome: data, which `render` words.

use serde::{Deserialize, Serialize};

use super::{Regime, ThrottleReason};

/// One note on a case. Fractions are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The samples grew slower (positive) or faster (negative) from the first to the last, by this fraction of the median.
    Trend { regime: Regime, drift: f64 },
    /// The samples fall into two groups: which share is slower, and by which fraction of the faster group's mean.
    Bimodal { regime: Regime, share: f64, slower: f64 },
    /// Each sample resembles the next: the interval is rather this fraction of the median on either side.
    Correlated { regime: Regime, correlation: f64, half_width: f64 },
    /// Samples were taken while the device was throttled.
    Throttled {
        regime: Regime,
        reasons: Vec<ThrottleReason>,
        /// Samples that were discarded and taken again.
        discarded: u64,
        /// Samples that count, since the throttling lasted.
        kept: u64,
    },
    /// The case ran after the others of its group, alone.
    RanAlone {
        why: Crowded,
        /// Whether it was timed: then no other case shares its rounds.
        timed: bool,
    },
    /// A host function waits for the work that it queues, so that its launches cannot be gated.
    NotGated { function: String },
    /// Energy was asked for, and the device's counter moved too few times in so many seconds.
    NoEnergy { moved: u64, seconds: f64, needed: u64 },
    /// Hardware counters were asked for: why there are none of this case.
    NoCounters { why: String },
    /// Under the profiler the case ended otherwise: there are no hardware counters of it.
    FailedUnderProfiler { outcome: String },
    /// Lines that the kernel printed; the journal has them.
    Printed { lines: u64 },
    /// The journal holds no usable samples of a case that was measured.
    NoSamples,
    /// A device's own words: the simulator's checker, or what a record of version 1 says in words that are not known.
    Text(String),
}

/// Why a case could not share its group's rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Crowded {
    /// The device's memory has no room for it beside the buffers of its group.
    Memory,
    /// The variant that it is compared with ran alone.
    Reference(String),
}
