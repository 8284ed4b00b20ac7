//! A difference between two manifests of one experiment.

use serde::Serialize;

/// What a manifest states at a place, in the order in which pages list changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestPart {
    Experiment,
    Baseline,
    /// A check, by its computed side.
    Check,
    Tolerance,
    /// The elements that a check compares.
    Mask,
    Printed,
    ExpectedFailure,
    /// What the sanitizer ignores.
    Sanitizer,
    Claim,
    /// An accepted slowdown.
    Acceptance,
    Threshold,
    Axis,
    /// Axes that advance together.
    Zip,
    Compared,
    Exclude,
    Include,
    Requires,
    Variant,
    Buffer,
    Let,
    Option,
    Define,
    IncludePath,
    Compiler,
    Source,
    Kernel,
    Grid,
    Block,
    Arguments,
    /// A key of a launch or of its compiler.
    Setting,
    Steps,
    Work,
    Measure,
    Search,
    Package,
    /// Title, question or template of the report.
    Report,
}

/// What a change does to what the experiment proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Accepts what was refused before.
    Loosened,
    /// Neither, or not known to be one.
    Neutral,
    /// Refuses what was accepted before.
    Tightened,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestChange {
    pub effect: Effect,
    pub part: ManifestPart,
    /// Name of the axis, buffer, check or key; empty where a manifest has one of the kind.
    pub name: String,
    /// Variants in which it changed; empty if in all of them, or if it belongs to none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// What the base states; `None` if nothing.
    pub base: Option<String>,
    /// What the new manifest states; `None` if nothing.
    pub new: Option<String>,
}

impl ManifestChange {
    /// Whether a check accepts results that it refused before.
    pub const fn loosens_check(&self) -> bool {
        let is_of_check = matches!(
            self.part,
            ManifestPart::Check
                | ManifestPart::Tolerance
                | ManifestPart::Mask
                | ManifestPart::Printed
                | ManifestPart::ExpectedFailure
                | ManifestPart::Sanitizer
        );
        is_of_check && matches!(self.effect, Effect::Loosened)
    }
}

/// What became of an experiment's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestComparison {
    pub experiment: String,
    pub state: ManifestState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestState {
    Added,
    Deleted,
    /// Never empty.
    Changed(Vec<ManifestChange>),
    /// Why what changed is not known.
    Unknown(String),
}

impl ManifestComparison {
    pub fn changes(&self) -> &[ManifestChange] {
        match &self.state {
            ManifestState::Changed(changes) => changes,
            ManifestState::Added | ManifestState::Deleted | ManifestState::Unknown(_) => &[],
        }
    }
}
