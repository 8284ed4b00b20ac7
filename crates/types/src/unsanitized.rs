//! Sanitizer findings that a variant ignores in the simulator.

use serde::{Deserialize, Serialize};

/// Classes of sanitizer findings that a variant can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SanitizerClass {
    /// Races between threads or blocks, and notes on accesses in unspecified order.
    Race,
    /// Reads of bytes that were never written.
    Uninitialised,
    /// Accesses to memory that a pending asynchronous or bulk copy reads or writes.
    Asynchronous,
    /// Shuffles that read from inactive lanes.
    Shuffle,
}

impl SanitizerClass {
    /// Name in manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Sanitizer findings that a variant ignores, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsanitized {
    /// Ignored classes; empty if the sanitizer is off.
    pub classes: Vec<SanitizerClass>,
    pub reason: String,
}
