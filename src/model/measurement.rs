//! Samples, measurements, estimates and counters.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::CounterKind;

/// The state of the caches in which a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// L2 flushed before every launch.
    Cold,
    /// Launches back to back.
    Warm,
    /// Replay of a CUDA graph.
    Graph,
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Graph => "graph",
        })
    }
}

/// What a sample is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds on the device's clock.
    DeviceNanoseconds,
    /// Nanoseconds on the host's clock: `cpu` variants.
    HostNanoseconds,
}

/// One raw reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round in which the group's variants took turns.
    pub round: u32,
    /// The whole body.
    pub whole: f64,
    /// Each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
}

/// All samples of a case in one regime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub regime: Regime,
    pub unit: Unit,
    pub rounds: Vec<Round>,
}

/// A point with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub point: f64,
    pub low: f64,
    pub high: f64,
    /// Nominal coverage, for example 0.95.
    pub confidence: f64,
}

impl Estimate {
    /// Half the interval's width over the point.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.point
    }
}

/// What hardware or simulator counted, by the names of the [vocabulary](super::VOCABULARY) or, for a metric that the
/// manifest asks for, by the profiler's. Who counted is the environment's to say: a simulated device, or the
/// [counting method](super::Environment::counting_method) of a real one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, f64>);

impl Counters {
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Forms every ratio of the vocabulary whose counts are there.
    pub fn form_ratios(&mut self) {
        for info in super::VOCABULARY {
            if let CounterKind::Formed(form) = info.kind {
                let formed = form(self);
                self.0.extend(formed.map(|value| (info.name.to_owned(), value)));
            }
        }
    }
}

/// The counters of one run of a case's body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BodyCounters {
    /// Of the whole body: sums of what its launches count, ratios formed of those sums.
    pub whole: Counters,
    /// Of each launch of a sequence; empty for a body of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Counters>,
}
