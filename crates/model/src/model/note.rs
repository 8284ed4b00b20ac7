//! Remarks of a report on a case besides its outcome: data, which `render` words.

use serde::{Deserialize, Serialize};

use super::{Regime, ThrottleReason};

/// One note on a case. Fractions are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The samples became slower (positive) or faster (negative) from the first to the last, by this fraction of the
    /// median.
    Trend { regime: Regime, drift: f64 },
    /// The samples form two groups: the share of the slower one, and by which fraction of the faster group's mean it is
    /// slower.
    Bimodal { regime: Regime, share: f64, slower: f64 },
    /// Consecutive samples are correlated: a fair interval is this fraction of the median on either side.
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
        /// Whether it was timed. If so, it shares no rounds with other cases.
        timed: bool,
    },
    /// A host function waits for the work that it queues, so that its launches cannot be gated.
    NotGated { function: String },
    /// Energy was asked for, and the device's counter changed too rarely in this time.
    NoEnergy { moved: u64, seconds: f64, needed: u64 },
    /// Hardware counters were asked for: why this case has none.
    NoCounters { why: String },
    /// The case ended differently under the profiler, so it has no hardware counters.
    FailedUnderProfiler { outcome: String },
    /// Lines that the kernel printed; the journal has them.
    Printed { lines: u64 },
    /// The journal holds no usable samples of a case that was measured.
    NoSamples,
    /// Text of a device, such as the simulator's sanitizer, or a sentence of a record of version 1 whose words are
    /// unknown.
    Text(String),
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
