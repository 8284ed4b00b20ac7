//! Defines what the author of a manifest claims of the results.

use serde::{Deserialize, Serialize};

use super::{BackendKind, Regime};

/// One claim, as the manifest writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A comparison: `speedup("vector", "neighbored") >= 5`.
    pub text: String,
    /// A condition on the axes that groups share. `None`: the claim is about every group.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `None`: every regime that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// `None`: every backend that can judge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendKind>,
}
