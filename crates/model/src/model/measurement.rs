//! Defines samples, measurements, estimates and counters.

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
    /// The regimes in the order of reports.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// The names, in the same order.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Returns the name in manifests and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the clock that times work of the device.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Host => Unit::HostNanoseconds,
            Self::Cold | Self::Warm | Self::Graph | Self::Rotate => Unit::DeviceNanoseconds,
        }
    }
}

/// The unit of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Times are nanoseconds on the device's clock.
    DeviceNanoseconds,
    /// Times are nanoseconds on the host's clock: those of `cpu` variants, and in the regime `host`.
    HostNanoseconds,
}

/// A sample of a case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round in which the group's variants were interleaved.
    pub round: u32,
    /// The position in the order of that round, counted from 0.
    #[serde(default)]
    pub place: u32,
    /// The time of the whole body; for several launches, their mean.
    #[serde(with = "super::real")]
    pub whole: f64,
    /// The time of each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "super::real")]
    pub each: Vec<f64>,
    /// The process that took the sample, of those that measured the group, counted from 0.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub process: u32,
}

/// The samples that were taken of a case in one regime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The state of the caches.
    pub regime: Regime,
    /// The clock that took the samples.
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
    /// The samples that count, in the order in which they were taken.
    pub rounds: Vec<Round>,
    /// The samples of the A/A control: the baseline's launches, measured as if they were another variant's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Round>,
    /// Whether the case ran alone although it has a group, so that it shares no rounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Samples taken while the device was throttled and then taken again: not among the rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Round>,
    /// The states of the device that were observed, in the order of the rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

/// An observation of the device, between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The round that the look follows. The samples since the last observation have this state.
    pub after: u32,
    /// Clocks, power, temperature and why the clocks were limited.
    pub state: DeviceState,
}

impl Measurement {
    /// Returns a measurement with samples of one run each, on one set of buffers.
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

    /// Returns how many processes took the samples.
    pub fn processes(&self) -> u32 {
        self.rounds.iter().map(|round| round.process + 1).max().unwrap_or(1)
    }

    /// Returns the number after that of the last round in which anything was measured or observed.
    fn next_round(&self) -> u32 {
        let sampled = self.rounds.iter().chain(&self.control).chain(&self.discarded).map(|round| round.round + 1);
        sampled.chain(self.looks.iter().map(|look| look.after + 1)).max().unwrap_or(0)
    }

    /// Adds what another process measured of the same case. Its rounds are later ones, so that no sample is compared
    /// with one of another process. All measurements of a group have to be added with the same `first_round`.
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

    /// Returns the first round that another process may use after all of these measurements.
    pub fn first_free_round<'a>(all: impl Iterator<Item = &'a Self>) -> u32 {
        all.map(Self::next_round).max().unwrap_or(0)
    }

    /// Returns the SM clock of each observed sample, MHz.
    pub fn sm_clocks(&self) -> Vec<u32> {
        let clock = |round: &Round| self.looks.iter().find(|look| look.after >= round.round)?.state.sm_clock_mhz;
        self.rounds.iter().filter_map(clock).collect()
    }
}

const fn one() -> u32 {
    1
}

/// The bootstrapped ratios of samples: point, low and high end of each, by a digest of the samples and of the method.
pub type FormedRatios = BTreeMap<String, [f64; 3]>;

/// A point estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value that is estimated.
    #[serde(with = "super::real")]
    pub point: f64,
    /// The lower end of the interval.
    #[serde(with = "super::real")]
    pub low: f64,
    /// The upper end of the interval.
    #[serde(with = "super::real")]
    pub high: f64,
    /// The nominal coverage, for example 0.95.
    #[serde(with = "super::real")]
    pub confidence: f64,
}

impl Estimate {
    /// Returns half the interval's width over the point.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.point
    }
}

/// The energy of the board for the runs of a case, back to back and without flushing caches. It includes idle power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The energy that a run of the body takes.
    pub per_run: Joules,
    /// The mean over the pass.
    pub power: Watts,
    /// The uncertainty of energy and power, as a fraction: one step of the counter.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    /// Runs of the pass.
    pub runs: u64,
    /// The number of seconds that the pass took.
    #[serde(with = "super::real")]
    pub seconds: f64,
}

impl Energy {
    /// Returns the energy per run, in joules. The interval is one step of the counter, which is not a confidence
    /// interval.
    pub fn estimate(&self) -> Estimate {
        let Joules(point) = self.per_run;
        let (low, high) = (point * (1.0 - self.uncertainty), point * (1.0 + self.uncertainty));
        Estimate { point, low, high, confidence: 1.0 }
    }
}

/// The counters that one run of a case's body has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BodyCounters {
    /// The counters of the whole body: sums of the counts of its launches, and ratios of those sums.
    pub whole: Counters,
    /// The counters of each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Counters>,
    /// The counts by the lines of the sources; empty where lines were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<CountedLine>,
}
