//! Defines what a manifest says about comparisons of its results.

use serde::{Deserialize, Serialize};

/// What the author of a manifest wants of comparisons.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ComparisonRules {
    /// The smallest change that matters, as a fraction; `None` for that of each row.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::real")]
    pub threshold: Option<f64>,
    /// Slowdowns that are intended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Acceptance>,
}

/// An intended slowdown, as the manifest writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The variant that may be slower; `None` for every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// A condition on the axes. `None`: every case.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Why it is intended.
    pub reason: String,
    /// The commit that makes it slower, or the last one before it.
    pub commit: String,
    /// The fraction by which it may be slower, or count more.
    #[serde(with = "super::real")]
    pub by: f64,
}
