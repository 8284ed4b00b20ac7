//! First line of a search's log: everything that its evaluations depend on. A resumed search compares it with its own.

use search::format::t4::Entry;
use serde::{Deserialize, Serialize};

use runner_files::sealed::{self, BadLine};

pub const SEARCH_FILE: &str = "search.jsonl";

/// Everything that evaluations depend on. Evaluations under a different header are not reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub experiment: String,
    /// Hash of the manifest's parts that affect evaluations.
    pub manifest: String,
    /// Hash of the files read by cases.
    #[serde(default)]
    pub files: String,
    pub device: String,
    /// Command line options that narrow the plan.
    pub narrowed: String,
    /// Names of the objectives.
    pub objective: String,
    /// Whether the objectives count machine code or PTX. Empty for other objectives, and for PTX counts from older
    /// versions.
    #[serde(default)]
    pub counts: String,
    /// The axes that all configurations share.
    #[serde(default)]
    pub size: String,
}

/// What to do with the evaluations of an earlier search in the same folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Start again.
    No,
    /// Continue. Fails if they do not apply.
    Yes,
    /// Continue, or start again if the manifest or a file has changed since.
    UnlessChanged,
}

/// Why the evaluations of a log are not reused.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    why: String,
    /// Whether they come from another version of the manifest or of the files, or from an unknown one.
    pub is_other_version: bool,
}

/// Whether the lines of a file have checksums, which older versions did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sums {
    Present,
    Absent,
}

impl Sums {
    /// Checks an evaluation's line. The error describes the damage.
    pub fn check(self, line: &[u8]) -> Result<(), String> {
        match sealed::check_line(line.trim_ascii_end()) {
            Err(BadLine::NoSum) if self == Self::Absent => {
                serde_json::from_slice::<Entry>(line).map(drop).map_err(|error| error.to_string())
            }
            checked => checked.map_err(|bad| bad.to_string()),
        }
    }
}

impl Header {
    /// Checks whether the evaluations below this first line can be reused. Returns whether they have checksums; the
    /// error lists the differences.
    pub fn accept(&self, line: &[u8]) -> Result<Sums, Refused> {
        let unknown = |why: String| Refused { why, is_other_version: true };
        let sums = match sealed::check_line(line.trim_ascii_end()) {
            Ok(()) => Sums::Present,
            Err(BadLine::NoSum) => Sums::Absent,
            Err(bad) => return Err(unknown(format!("the first line is damaged: {bad}"))),
        };
        let known: Self = serde_json::from_slice(line).map_err(|error| unknown(format!("not a search: {error}")))?;
        let differences = known.differences(self);
        if differences.is_empty() {
            return Ok(sums);
        }
        let version = |header: &Self| (header.manifest.clone(), header.files.clone());
        Err(Refused {
            why: format!("its evaluations do not apply: {}", differences.join("; ")),
            is_other_version: version(&known) != version(self),
        })
    }

    /// Describes the differences from another header.
    fn differences(&self, other: &Self) -> Vec<String> {
        let named = |what: &str, own: &str, other: &str| {
            let word = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
            (own != other).then(|| format!("{what} was {} and is now {}", word(own), word(other)))
        };
        let changed = |what: &str, own: &str, other: &str| (own != other).then(|| format!("{what} changed"));
        [
            named("the experiment", &self.experiment, &other.experiment),
            changed("the manifest", &self.manifest, &other.manifest),
            changed("a source or data file", &self.files, &other.files),
            named("the device", &self.device, &other.device),
            named("the narrowing", &self.narrowed, &other.narrowed),
            named("the objective", &self.objective, &other.objective),
            changed("what is counted", &self.counts, &other.counts),
            named("the size", &self.size, &other.size),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
