//! The first line of the file of a search: what its evaluations depend on.

use serde::{Deserialize, Serialize};

/// The name of the file.
pub const SEARCH_FILE: &str = "search.jsonl";

/// What evaluations depend on: those under another header do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The name of the experiment.
    pub experiment: String,
    /// The hash of the manifest without what changes no evaluation.
    pub manifest: String,
    /// The hash of the files that cases read.
    #[serde(default)]
    pub files: String,
    /// The name of the device.
    pub device: String,
    /// How the command line narrows the plan.
    pub narrowed: String,
    /// The names of the objectives.
    pub objective: String,
    /// The axes that all configurations share.
    #[serde(default)]
    pub size: String,
}

impl Header {
    /// Checks the first line of a file that has evaluations for this search; else says why they do not apply.
    pub fn accept(&self, line: &[u8]) -> Result<(), String> {
        let known: Self = serde_json::from_slice(line).map_err(|error| format!("no search: {error}"))?;
        let differences = known.differences(self);
        if differences.is_empty() {
            return Ok(());
        }
        Err(format!("its evaluations do not apply: {}", differences.join("; ")))
    }

    /// Returns in what another header differs, in words.
    fn differences(&self, other: &Self) -> Vec<String> {
        let named = |what: &str, own: &str, other: &str| {
            let word = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
            (own != other).then(|| format!("{what} was {}, and is {}", word(own), word(other)))
        };
        let changed = |what: &str, own: &str, other: &str| (own != other).then(|| format!("{what} changed"));
        [
            named("the experiment", &self.experiment, &other.experiment),
            changed("the manifest", &self.manifest, &other.manifest),
            changed("a source or a file of data", &self.files, &other.files),
            named("the device", &self.device, &other.device),
            named("the narrowing", &self.narrowed, &other.narrowed),
            named("the objective", &self.objective, &other.objective),
            named("the size", &self.size, &other.size),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
