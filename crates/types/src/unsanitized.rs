//! What the simulator's sanitizer ignores in a variant.

use serde::{Deserialize, Serialize};

/// Classes of the sanitizer's findings that a variant can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SanitizerClass {
    /// Races of threads and blocks, and notes on accesses whose order is not known.
    Race,
    /// Reads of bytes that were never written.
    Uninitialised,
    /// Accesses to what an asynchronous or bulk copy still reads or writes.
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

/// What the sanitizer ignores in a variant, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsanitized {
    /// Ignored classes; empty if the whole sanitizer is off.
    pub classes: Vec<SanitizerClass>,
    pub reason: String,
}
