//! Differences between two versions of an experiment's manifest.

use serde::Serialize;

/// Part of a manifest, in the order in which pages list changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestPart {
    Experiment,
    /// The manifest's own file.
    File,
    Baseline,
    /// A check, identified by its computed side.
    Check,
    Tolerance,
    /// Which elements a check compares.
    Mask,
    Printed,
    ExpectedFailure,
    /// Which findings the sanitizer ignores.
    Sanitizer,
    Claim,
    /// An accepted slowdown.
    Acceptance,
    Threshold,
    Axis,
    /// Axes that advance in lockstep.
    Zip,
    Compared,
    Exclude,
    Include,
    Requires,
    Variant,
    Buffer,
    /// Contents of a file that a buffer is filled from.
    Contents,
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
    /// A key of a launch or its compiler.
    Setting,
    Steps,
    Work,
    Measure,
    Search,
    Package,
    /// Title, question or template of the report.
    Report,
}

impl ManifestPart {
    /// Whether it selects the cases that run.
    pub const fn is_of_selection(self) -> bool {
        matches!(self, Self::Axis | Self::Zip | Self::Exclude | Self::Include | Self::Requires | Self::Variant)
    }
}

/// How a change affects what the experiment proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Accepts what was rejected before.
    Loosened,
    /// Changes what decides correctness, and it is unknown whether more or less is accepted.
    Unordered,
    /// Does not affect what is accepted.
    Neutral,
    /// Rejects what was accepted before.
    Tightened,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestChange {
    pub effect: Effect,
    pub part: ManifestPart,
    /// Name of the axis, buffer, check or key; empty for parts that a manifest has only once.
    pub name: String,
    /// Variants in which it changed; empty if it changed in all of them or does not belong to a variant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// Value in the base, if any.
    pub base: Option<String>,
    /// Value in the new manifest, if any.
    pub new: Option<String>,
    /// Variant that supplies the new expected values, if its own check compares it only with itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
}

impl ManifestChange {
    /// Whether results that were rejected before may pass now, or are no longer tested.
    pub const fn may_prove_less(&self) -> bool {
        // Claims and acceptances do not decide whether a result is right.
        let decides = !matches!(self.part, ManifestPart::Claim | ManifestPart::Acceptance | ManifestPart::Threshold);
        decides && matches!(self.effect, Effect::Loosened | Effect::Unordered)
    }
}

/// How an experiment's manifest changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestComparison {
    pub experiment: String,
    pub state: ManifestState,
    /// What a deleted manifest held, if it can still be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// Contents of a manifest, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Held {
    pub cases: usize,
    pub claims: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestState {
    Added,
    Deleted,
    /// Never empty.
    Changed(Vec<ManifestChange>),
    /// Why the changes are not known.
    Unknown(String),
}

impl ManifestComparison {
    pub const fn new(experiment: String, state: ManifestState) -> Self {
        Self { experiment, state, held: None }
    }

    pub fn changes(&self) -> &[ManifestChange] {
        match &self.state {
            ManifestState::Changed(changes) => changes,
            ManifestState::Added | ManifestState::Deleted | ManifestState::Unknown(_) => &[],
        }
    }
}
