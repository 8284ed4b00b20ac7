//! A manifest author's claim about the results.

use serde::{Deserialize, Serialize};

use super::{BackendKind, Regime};

/// One claim, as written in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Comparison, e.g. `speedup("vector", "neighbored") >= 5`.
    pub text: String,
    /// Condition on the shared axes of groups; `None` for every group.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Regime; `None` for every measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// Backend; `None` for every one that can judge the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendKind>,
}
