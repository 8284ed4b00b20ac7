//! Lists in the header line that the following lines refer to.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::number::Number;
use runner_types::{CaseHashes, CountedLine, Counters, Records, counter_name};

/// Strings shared by many lines, and the order of positional values.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::journal) struct Columns {
    /// All counters of all cases, sorted by name.
    pub counters: Vec<String>,
    /// Cases that ratios compare with. Lines refer to them by their index in this list.
    pub against: Vec<String>,
    /// All hashes and opcode counts of all cases.
    pub digests: Vec<String>,
    /// File, line number and text of every source line that has counts in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(String, u32, String)>,
    /// Counters that source lines have, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_counters: Vec<String>,
    /// Names of the positional values, for human readers; the program knows their order.
    #[serde(default, skip_deserializing)]
    names: Names,
}

/// Names of the positional values.
#[derive(Debug, Serialize)]
struct Names {
    hashes: &'static [&'static str],
    launches: &'static [&'static str],
    resources: &'static [&'static str],
    occupancy: &'static [&'static str],
    work: &'static [&'static str],
    result: &'static [&'static str],
    interval: &'static [&'static str],
    ratio: &'static [&'static str],
    reproducible: &'static [&'static str],
    sm_clock: &'static [&'static str],
    error: &'static [&'static str],
}

impl Default for Names {
    fn default() -> Self {
        Self {
            hashes: &["source", "options", "inputs", "check"],
            launches: &["label", "grid", "block", "shared", "resources", "occupancy", "stream"],
            resources: &[
                "registers",
                "shared_static",
                "local",
                "spill_stores",
                "spill_loads",
                "max_threads",
                "cluster",
            ],
            occupancy: &["blocks_per_sm", "fraction", "limiter"],
            work: &["bytes", "flops"],
            result: &["regime", "time", "samples", "launches", "sets", "working_set", "sm_clock", "discarded"],
            interval: &["point", "low", "high", "confidence, where it is not 0.95"],
            ratio: &["against", "speedup", "reproducible", "noise"],
            reproducible: &["low", "high"],
            sm_clock: &["median", "least"],
            error: &["abs", "rel", "mean_rel", "ulp"],
        }
    }
}

impl Columns {
    pub fn collect(records: &Records) -> Self {
        let results = || records.cases.iter().filter_map(|case| case.result.as_ref());
        let ratios = results().flat_map(|result| result.against_baseline.iter().chain(&result.against_previous));
        let hashes = records.cases.iter().filter_map(|case| case.hashes.as_ref());
        let lines = || records.cases.iter().flat_map(|case| &case.lines);
        let line_counters: BTreeSet<&str> =
            lines().flat_map(|line| line.counters.0.keys()).map(|name| &**name).collect();
        Self {
            lines: lines().map(identity).collect::<BTreeSet<_>>().into_iter().collect(),
            line_counters: line_counters.into_iter().map(str::to_owned).collect(),
            counters: records.counter_names().into_iter().map(str::to_owned).collect(),
            against: distinct(ratios.map(|ratio| &ratio.against)),
            digests: distinct(hashes.flat_map(|CaseHashes { source, options, inputs, check, code, operations }| {
                [source, options, inputs, check].into_iter().chain(code).chain(operations)
            })),
            names: Names::default(),
        }
    }

    /// Converts a counted line. Fails if the header's lists are too short.
    pub(super) fn line(&self, (number, counts): (usize, Vec<Number>)) -> Result<CountedLine, String> {
        let (file, line, text) = self.lines.get(number).cloned().ok_or_else(|| {
            format!("the header has {} source lines, but the line refers to number {number}", self.lines.len())
        })?;
        if counts.len() > self.line_counters.len() {
            return Err(format!(
                "a line has {} counts, but the header lists {}",
                counts.len(),
                self.line_counters.len()
            ));
        }
        let counted = self.line_counters.iter().zip(counts).filter(|(_, count)| count.0 != 0.0);
        let counters = Counters(counted.map(|(name, count)| (counter_name(name), count.0)).collect());
        Ok(CountedLine { file, line, text, counters })
    }
}

/// The part of a counted line that is stored in the header's list.
fn identity(line: &CountedLine) -> (String, u32, String) {
    (line.file.clone(), line.line, line.text.clone())
}

/// Each string once, in order of first occurrence, so that adding a case at the end changes no index.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut known: HashSet<&String> = HashSet::new();
    texts.filter(|text| known.insert(text)).cloned().collect()
}

/// Indices of strings in the header's lists.
#[derive(Debug)]
pub(in crate::journal) struct Numbers<'a> {
    pub columns: &'a Columns,
    against: HashMap<&'a str, usize>,
    digests: HashMap<&'a str, usize>,
}

impl<'a> Numbers<'a> {
    /// A counted line, as its index in the header's list and its counts.
    pub(super) fn line(&self, line: &CountedLine) -> Option<(usize, Vec<Number>)> {
        let number = self.columns.lines.binary_search(&identity(line)).ok()?;
        let count = |name: &String| Number(line.counters.get(name).unwrap_or(0.0));
        Some((number, self.columns.line_counters.iter().map(count).collect()))
    }

    pub fn new(columns: &'a Columns) -> Self {
        let numbered =
            |texts: &'a [String]| texts.iter().enumerate().map(|(number, text)| (text.as_str(), number)).collect();
        Self { columns, against: numbered(&columns.against), digests: numbered(&columns.digests) }
    }

    pub fn number_basis(&self, text: &str) -> Listed {
        Listed::new(text, &self.against)
    }

    pub fn digest(&self, text: &str) -> Listed {
        Listed::new(text, &self.digests)
    }
}

/// A string from one of the header's lists: its index there, or the string itself if the list lacks it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(in crate::journal) enum Listed {
    Number(usize),
    Text(String),
}

impl Listed {
    fn new(text: &str, numbers: &HashMap<&str, usize>) -> Self {
        numbers.get(text).map_or_else(|| Self::Text(text.to_owned()), |number| Self::Number(*number))
    }

    /// Looks up the string. Fails if the header's list `name` is too short.
    pub fn text(self, list: &[String], name: &str) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(number) => list
                .get(number)
                .cloned()
                .ok_or_else(|| format!("the header has {} {name}, but the line refers to number {number}", list.len())),
        }
    }
}
