//! A manifest's rules for comparing its results with an earlier run.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ComparisonRules {
    /// Smallest relative change that counts; `None` for each row's default threshold.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::real")]
    pub threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Acceptance>,
}

/// An intended slowdown, as written in the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Variant that may be slower; `None` for every variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Condition on the axes; `None` for every case.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    pub reason: String,
    /// Commit that causes the slowdown, or the last commit before it.
    pub commit: String,
    /// Fraction by which times or counts may grow.
    #[serde(with = "super::real")]
    pub by: f64,
}
