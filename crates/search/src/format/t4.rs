//! T4, the results of a search.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::FormatError;
use crate::history::Outcome;
use crate::replay::{Measured, Row};
use crate::space::Value;

/// Format version of written files.
const VERSION: &str = "1.0.0";

/// All results of a search.
#[derive(Debug, Deserialize)]
pub struct Results {
    /// Evaluated configurations, in order of evaluation.
    pub results: Vec<Entry>,
    /// Format version of the file.
    #[serde(default = "version", deserialize_with = "version_of")]
    pub schema_version: String,
}

/// An evaluated configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// Date and time of the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Value of each parameter, in the order of the space.
    pub configuration: Configuration,
    /// Duration of each step of the evaluation.
    #[serde(default)]
    pub times: Times,
    /// `correct`, or why there is no valid measurement: `timeout`, `compile`, `runtime`, `correctness`, `constraints`.
    #[serde(default = "correct")]
    pub invalidity: String,
    /// 1 if the results were correct.
    #[serde(default)]
    pub correctness: f64,
    /// Measured quantities.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
    /// Names of the measurements to minimise.
    #[serde(default)]
    pub objectives: Vec<String>,
    /// Explanation of why there is no valid measurement. An extension of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Index of the device, if several were used. An extension of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// Search time at the end of the evaluation, in seconds. An extension of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<f64>,
}

impl Entry {
    /// Outcome according to one measurement.
    #[must_use]
    pub fn outcome(&self, objective: &str) -> Outcome {
        Outcome::of_measured(self.value(objective))
    }

    /// Value of a measurement, if the configuration is correct and the value is a number.
    #[must_use]
    pub fn value(&self, objective: &str) -> Option<f64> {
        let measurements = self.measurements.iter().filter(|_| self.invalidity == "correct");
        let mut named = measurements.filter(|measurement| measurement.name == objective);
        named.next().and_then(|measurement| measurement.value.get().parse().ok())
    }
}

/// Names and values of the parameters, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Configuration(pub Vec<(String, Value)>);

/// Duration of each step of an evaluation, in milliseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Times {
    /// Time to compile the configuration.
    #[serde(default, alias = "compilation_time", alias = "compile_time", skip_serializing_if = "Option::is_none")]
    pub compilation: Option<f64>,
    /// Time to measure the configuration.
    #[serde(default, alias = "benchmark_time", skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<f64>,
    /// Overhead of the tuner.
    #[serde(default, alias = "framework_time", skip_serializing_if = "Option::is_none")]
    pub framework: Option<f64>,
    /// Time to choose the configuration.
    #[serde(default, alias = "strategy_time", skip_serializing_if = "Option::is_none")]
    pub search_algorithm: Option<f64>,
    /// Time to check the results.
    #[serde(default, alias = "verification_time", skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Individual samples; `None` for one that is not a number.
    #[serde(default)]
    pub runtimes: Vec<Option<f64>>,
}

/// A measured quantity.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// Name, e.g. `time`.
    pub name: String,
    /// A number, or a string with the name of a failure.
    pub value: Box<RawValue>,
    /// Unit, e.g. `ms`.
    #[serde(default)]
    pub unit: Option<String>,
}

impl Measurement {
    /// Creates a measurement with a finite value.
    #[must_use]
    pub fn new(name: &str, value: f64, unit: &str) -> Self {
        // Becomes `null` if the value is not finite.
        let value = serde_json::value::to_raw_value(&value).unwrap_or_default();
        Self { name: name.to_owned(), value, unit: Some(unit.to_owned()) }
    }
}

/// Writes results, one per line, without the extensions of the format.
pub fn write(target: &mut dyn Write, entries: impl Iterator<Item = io::Result<Entry>>) -> io::Result<()> {
    write!(target, "{{\"results\": [")?;
    let mut separator = "\n";
    for entry in entries {
        let entry = Entry { reason: None, device: None, elapsed: None, ..entry? };
        write!(target, "{separator}{}", serde_json::to_string(&entry)?)?;
        separator = ",\n";
    }
    writeln!(target, "\n], \"schema_version\": \"{VERSION}\"}}")
}

fn version() -> String {
    VERSION.to_owned()
}

fn correct() -> String {
    "correct".to_owned()
}

/// Deserializes a version, which is a number in some files.
fn version_of<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Value::deserialize(deserializer)?.to_string())
}

impl Results {
    /// Parses a T4 file.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Measured space of all configurations, by an objective. The default is the first objective of the first result.
    pub fn measured(&self, objective: Option<&str>) -> Result<Measured, FormatError> {
        let first = self.results.first().ok_or_else(|| FormatError::Meaning("the file has no results".to_owned()))?;
        let objective = objective
            .or_else(|| first.objectives.first().map(String::as_str))
            .ok_or_else(|| FormatError::Meaning("the results name no objective; name a measurement".to_owned()))?;
        let names: Vec<String> = first.configuration.0.iter().map(|(name, _)| name.clone()).collect();
        // A count of 0 has no logarithm, so it is replaced with half of the smallest other count.
        let values = self.results.iter().filter_map(|entry| entry.value(objective));
        let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let outcome = |entry: &Entry| match entry.value(objective) {
            Some(0.0) if least.is_finite() => Outcome::Value(least / 2.0),
            value => Outcome::of_measured(value),
        };
        let mut rows = Vec::with_capacity(self.results.len());
        for (place, entry) in self.results.iter().enumerate() {
            let configuration = &entry.configuration.0;
            if !configuration.iter().map(|(name, _)| name).eq(&names) {
                return Err(FormatError::Meaning(format!(
                    "result {} has other parameters than the first: {}",
                    place + 1,
                    configuration.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
                )));
            }
            let times = &entry.times;
            let parts = [times.compilation, times.benchmark, times.framework, times.search_algorithm, times.validation];
            let known = parts.iter().flatten().count() > 0;
            rows.push(Row {
                values: configuration.iter().map(|(_, value)| value.clone()).collect(),
                outcome: outcome(entry),
                seconds: known.then(|| parts.iter().flatten().sum::<f64>() / 1e3),
            });
        }
        if rows.iter().all(|row| row.outcome == Outcome::Failed) {
            let names: BTreeSet<&str> =
                self.results.iter().flat_map(|entry| &entry.measurements).map(|m| m.name.as_str()).collect();
            return Err(FormatError::Meaning(format!(
                "no result has a valid measurement `{objective}`; the measurements are: {}",
                names.into_iter().collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(Measured::of_rows(names, &rows)?)
    }
}

impl Serialize for Configuration {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Configuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Configuration;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with the value of each parameter")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Configuration, A::Error> {
                let mut values = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    values.push(entry);
                }
                Ok(Configuration(values))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
