//! A manifest author's claim about the results.

use serde::{Deserialize, Serialize};

use super::{BackendKind, Regime};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Comparison as written in the manifest, e.g. `speedup("vector", "neighbored") >= 5`.
    pub text: String,
    /// Condition on the group's axes; `None` for every group.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `None` for every measured regime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// `None` for every backend that can judge the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendKind>,
}
