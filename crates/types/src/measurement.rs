//! Samples, measurements, estimates, energy and the counters of a body.
//!
//! A measurement has every sample of a case in one regime, for the journal. Records keep only what is computed from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::{CountedLine, Counters, DeviceState, Joules, Watts};

/// The state of the caches in which a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Regime {
    /// L2 flushed before every launch.
    Cold,
    /// Launches back to back.
    Warm,
    /// Replay of a CUDA graph.
    Graph,
    /// Launches back to back, rotating over several sets of buffers that together exceed the L2.
    Rotate,
    /// One run at a time on the host's clock, including allocations.
    Host,
}

impl Regime {
    /// Regimes in the order of reports.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name in manifests and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Clock that times device work in this regime.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Host => Unit::HostNanoseconds,
            Self::Cold | Self::Warm | Self::Graph | Self::Rotate => Unit::DeviceNanoseconds,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds on the device's clock.
    DeviceNanoseconds,
    /// Nanoseconds on the host's clock, for `cpu` variants and the regime `host`.
    HostNanoseconds,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round in which the group's variants were interleaved.
    pub round: u32,
    /// Position in the order of that round, from 0.
    #[serde(default)]
    pub place: u32,
    /// Time of the whole body; for several launches, their mean.
    #[serde(with = "super::real")]
    pub whole: f64,
    /// Time of each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "super::real")]
    pub each: Vec<f64>,
    /// Index of the process that took the sample, among those that measured the group.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub process: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub regime: Regime,
    /// Clock that took the samples.
    pub unit: Unit,
    /// Runs of the body in each sample, which is their mean.
    #[serde(default = "one")]
    pub launches: u32,
    /// Sets of buffers over which these runs rotate.
    #[serde(default = "one")]
    pub sets: u32,
    /// Bytes of the buffers that a run uses; 0 if they are the host's.
    #[serde(default)]
    pub working_set: u64,
    /// Valid samples, in the order in which they were taken.
    pub rounds: Vec<Round>,
    /// Samples of the A/A control: the baseline's launches, measured as if they were another variant's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Round>,
    /// Whether the case ran alone although it has a group, so that it shares no rounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Samples taken while the device was throttled, which were then taken again. Not among `rounds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Round>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Round that the look follows. Samples since the last observation have this state.
    pub after: u32,
    pub state: DeviceState,
}

impl Measurement {
    /// A measurement with samples of one run each, on one set of buffers.
    pub const fn from_rounds(regime: Regime, unit: Unit, rounds: Vec<Round>) -> Self {
        Self {
            regime,
            unit,
            launches: 1,
            sets: 1,
            working_set: 0,
            rounds,
            control: Vec::new(),
            alone: false,
            discarded: Vec::new(),
            looks: Vec::new(),
        }
    }

    pub fn processes(&self) -> u32 {
        self.rounds.iter().map(|round| round.process + 1).max().unwrap_or(1)
    }

    /// Number of the first round after everything measured or observed.
    fn next_round(&self) -> u32 {
        let sampled = self.rounds.iter().chain(&self.control).chain(&self.discarded).map(|round| round.round + 1);
        sampled.chain(self.looks.iter().map(|look| look.after + 1)).max().unwrap_or(0)
    }

    /// Appends another process's measurement of the same case. Its rounds are shifted to later ones, so that no sample
    /// is compared with one of another process. All measurements of a group must be added with the same `first_round`.
    pub fn extend(&mut self, other: Self, first_round: u32) {
        let process = self.processes();
        let moved = |rounds: Vec<Round>| {
            rounds.into_iter().map(move |round| Round { round: round.round + first_round, process, ..round })
        };
        self.rounds.extend(moved(other.rounds));
        self.control.extend(moved(other.control));
        self.discarded.extend(moved(other.discarded));
        self.looks.extend(other.looks.into_iter().map(|look| Look { after: look.after + first_round, ..look }));
    }

    /// First round that another process may use after all of these measurements.
    pub fn first_free_round<'a>(all: impl Iterator<Item = &'a Self>) -> u32 {
        all.map(Self::next_round).max().unwrap_or(0)
    }

    /// SM clock of each observed sample, in MHz.
    pub fn sm_clocks(&self) -> Vec<u32> {
        let clock = |round: &Round| self.looks.iter().find(|look| look.after >= round.round)?.state.sm_clock_mhz;
        self.rounds.iter().filter_map(clock).collect()
    }
}

const fn one() -> u32 {
    1
}

/// Bootstrapped ratios of samples: point, low and high end of each, by a digest of the samples and the method.
pub type FormedRatios = BTreeMap<String, [f64; 3]>;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    #[serde(with = "super::real")]
    pub point: f64,
    #[serde(with = "super::real")]
    pub low: f64,
    #[serde(with = "super::real")]
    pub high: f64,
    #[serde(with = "super::real")]
    pub confidence: f64,
}

impl Estimate {
    /// Half the interval's width divided by the point.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.point
    }
}

/// Energy of the board for the runs of a case, back to back and without flushing caches. It includes idle power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    pub per_run: Joules,
    pub power: Watts,
    /// Relative uncertainty of energy and power: one step of the counter.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    pub runs: u64,
    #[serde(with = "super::real")]
    pub seconds: f64,
}

impl Energy {
    /// Energy per run in joules. The interval is one step of the counter, which is not a confidence interval.
    pub fn estimate(&self) -> Estimate {
        let Joules(point) = self.per_run;
        let (low, high) = (point * (1.0 - self.uncertainty), point * (1.0 + self.uncertainty));
        Estimate { point, low, high, confidence: 1.0 }
    }
}

/// Counters of one run of a case's body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BodyCounters {
    /// Counters of the whole body: sums over its launches, and ratios of those sums.
    pub whole: Counters,
    /// Counters of each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Counters>,
    /// Counts by source line; empty if lines were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<CountedLine>,
}
