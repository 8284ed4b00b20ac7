//! Samples, measurements, estimates, energy and the counters of a body.
//!
//! A measurement holds every sample of a case in one regime, for the journal. Records keep only the values computed
//! from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::{CountedLine, Counters, DeviceState, Joules, Watts};

/// State of the caches while a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Regime {
    /// L2 flushed before every launch.
    Cold,
    /// Back-to-back launches.
    Warm,
    /// Replay of a CUDA graph.
    Graph,
    /// Back-to-back launches that rotate over several sets of buffers, which together exceed the L2.
    Rotate,
    /// Single runs timed by the host's clock, including allocations.
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
    /// Index of the round in which the group's variants were interleaved.
    pub round: u32,
    /// Position within that round, 0-based.
    #[serde(default)]
    pub place: u32,
    /// Time of the whole body; the mean if there were several launches.
    #[serde(with = "super::real")]
    pub whole: f64,
    /// Time of each launch of a sequence; empty if the body is a single launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "super::real")]
    pub each: Vec<f64>,
    /// Index of the process that took the sample, among those that measured the group.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub process: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub regime: Regime,
    /// Clock that timed the samples.
    pub unit: Unit,
    /// Runs of the body per sample; the sample is their mean.
    #[serde(default = "one")]
    pub launches: u32,
    /// Number of buffer sets that these runs rotate over.
    #[serde(default = "one")]
    pub sets: u32,
    /// Size of the buffers that a run uses, in bytes; 0 for host buffers.
    #[serde(default)]
    pub working_set: u64,
    /// Valid samples in chronological order.
    pub rounds: Vec<Round>,
    /// Samples of the A/A control: the baseline's launches, measured as if they belonged to another variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Round>,
    /// Whether the case ran alone although it belongs to a group, and so shares no rounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Samples taken while the device was throttled and then taken again. Not included in `rounds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Round>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Round after which the state was observed. It applies to the samples since the previous observation.
    pub after: u32,
    pub state: DeviceState,
}

impl Measurement {
    /// A measurement whose samples are single runs on one set of buffers.
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

    /// Index of the first round after everything measured or observed.
    fn next_round(&self) -> u32 {
        let sampled = self.rounds.iter().chain(&self.control).chain(&self.discarded).map(|round| round.round + 1);
        sampled.chain(self.looks.iter().map(|look| look.after + 1)).max().unwrap_or(0)
    }

    /// Appends another process's measurement of the same case. Shifts its rounds, so that no samples of different
    /// processes are compared. All measurements of a group must be added with the same `first_round`.
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

    /// First round available to another process after all these measurements.
    pub fn first_free_round<'a>(all: impl Iterator<Item = &'a Self>) -> u32 {
        all.map(Self::next_round).max().unwrap_or(0)
    }

    /// SM clock during each observed sample, in MHz.
    pub fn sm_clocks(&self) -> Vec<u32> {
        let clock = |round: &Round| self.looks.iter().find(|look| look.after >= round.round)?.state.sm_clock_mhz;
        self.rounds.iter().filter_map(clock).collect()
    }
}

const fn one() -> u32 {
    1
}

/// Bootstrapped ratios of samples (point estimate, lower and upper bound), keyed by a digest of the samples and the
/// method.
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
    /// Half-width of the interval divided by the point estimate.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.point
    }
}

/// Board energy of a case's runs, back to back and without flushing caches. Includes idle power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    pub per_run: Joules,
    pub power: Watts,
    /// Relative uncertainty of energy and power: one counter step.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    pub runs: u64,
    #[serde(with = "super::real")]
    pub seconds: f64,
}

impl Energy {
    /// Energy per run in joules. The interval is one counter step, not a confidence interval.
    pub fn estimate(&self) -> Estimate {
        let Joules(point) = self.per_run;
        let (low, high) = (point * (1.0 - self.uncertainty), point * (1.0 + self.uncertainty));
        Estimate { point, low, high, confidence: 1.0 }
    }
}

/// Counters for one run of a case's body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BodyCounters {
    /// Counters of the whole body: sums over its launches, and ratios of these sums.
    pub whole: Counters,
    /// Counters of each launch of a sequence; empty if the body is a single launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Counters>,
    /// Counts by source line; empty if lines were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<CountedLine>,
}
