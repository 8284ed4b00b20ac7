//! Kernel Tuner's cache file: all configurations that it has evaluated.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::FormatError;
use super::t4::{Configuration, Entry, Measurement, Results, Times};

/// A key that identifies the format, since no other has it.
const KEY: &str = "\"tune_params_keys\"";

#[derive(Deserialize)]
struct CacheFile {
    tune_params_keys: Vec<String>,
    /// One or more objective names.
    #[serde(default)]
    objective: Json,
    /// Configurations, keyed by their comma-separated values.
    cache: BTreeMap<String, Cached>,
}

/// An evaluated configuration: its parameters, times and measurements. A string in place of a number is the name of a
/// failure.
#[derive(Deserialize)]
struct Cached {
    #[serde(flatten)]
    times: Times,
    #[serde(flatten)]
    values: BTreeMap<String, Json>,
}

pub(super) fn is_cache(text: &str) -> bool {
    text.contains(KEY)
}

/// Parses a cache file. Adds missing closing braces, which Kernel Tuner writes only when a search ends.
pub(super) fn parse(text: &str) -> Result<Results, FormatError> {
    let closed = || format!("{}}}}}", text.trim_end().trim_end_matches(','));
    let cache = serde_json::from_str(text).or_else(|error| serde_json::from_str(&closed()).map_err(|_| error))?;
    let CacheFile { tune_params_keys: names, objective, cache } = cache;
    let objectives: Vec<String> = match objective {
        Json::Array(names) => names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        name => vec![name.as_str().unwrap_or("time").to_owned()],
    };
    let results = cache.into_iter().map(|(key, cached)| entry(&names, &objectives, &key, cached));
    Ok(Results { results: results.collect::<Result<_, _>>()?, schema_version: String::new() })
}

fn entry(names: &[String], objectives: &[String], key: &str, cached: Cached) -> Result<Entry, FormatError> {
    let Cached { times, mut values } = cached;
    let mut parameter = |name: &String| {
        let value = values.remove(name).map(serde_json::from_value).transpose()?;
        let missing = || FormatError::Meaning(format!("the configuration `{key}` has no `{name}`"));
        Ok((name.clone(), value.ok_or_else(missing)?))
    };
    let parameters = names.iter().map(&mut parameter).collect::<Result<_, FormatError>>()?;
    let measured = values.iter().filter_map(|(name, value)| Some(Measurement::new(name, value.as_f64()?, "")));
    Ok(Entry {
        timestamp: None,
        configuration: Configuration(parameters),
        times,
        invalidity: "correct".to_owned(),
        correctness: 1.0,
        measurements: measured.collect(),
        objectives: objectives.to_vec(),
        reason: None,
        device: None,
        elapsed: None,
    })
}
