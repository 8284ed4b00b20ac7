//! Counts per line of the code.

use serde::{Deserialize, Serialize};

use super::Counters;

/// The counts of what comes from one line of the PTX, as `lines.json` has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// The kernel that ran it, by the name that the manifest gives.
    pub kernel: String,
    /// The line of the PTX, which counts from one.
    pub ptx_line: u32,
    /// The path of the author's source. Code that was inlined from elsewhere belongs to the author's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of that file, which counts from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The counts that are not zero.
    pub counters: Counters,
}

impl LineCounts {
    /// The file with the counts of all lines, in the folder of what a case left.
    pub const FILE: &str = "lines.json";
}

/// What was executed on one line of a source, as records have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedLine {
    /// The path of the file from the folder of the kernel's source, or its name where it is not below.
    pub file: String,
    /// The line, which counts from one.
    pub line: u32,
    /// The text of the line without what is around it; the beginning of a long one. Lines of two revisions are matched by
    /// it.
    pub text: String,
    /// The counts of work that are not zero.
    pub counters: Counters,
}
