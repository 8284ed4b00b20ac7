//! Attributes of a launch besides its extents and arguments.

use serde::{Deserialize, Serialize};

/// Attributes of a launch; the default has none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LaunchAttributes {
    /// Blocks per cluster along each axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether it may begin before the launch before it has ended (programmatic dependent launch).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
    /// The lower, the sooner its blocks are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Percent of the L1 memory that are preferred as shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carveout: Option<u32>,
    /// What stays in the L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<PersistPlan>,
}

impl LaunchAttributes {
    /// Whether it has none.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// A buffer whose lines stay in the L2 as long as there is room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersistPlan {
    /// Its name.
    pub buffer: String,
    /// The fraction of its lines to which this applies.
    pub ratio: f64,
}
