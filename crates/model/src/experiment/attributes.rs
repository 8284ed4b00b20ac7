//! Attributes of launches, and what differs of a variant on one backend.

use super::{Expression, VariantSpec};
use crate::model::{BackendKind, Failure};

/// Attributes of a launch besides its extents and arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AttributesSpec {
    /// Blocks per cluster: one to three dimensions.
    pub cluster: Option<Vec<Expression>>,
    /// Whether it may begin before the launch before it has ended.
    pub overlap: bool,
    /// The lower, the sooner its blocks are scheduled.
    pub priority: Option<Expression>,
    /// Percent of the L1 memory that are preferred as shared memory.
    pub carveout: Option<Expression>,
    /// A buffer that stays in the L2, and the fraction of its lines to which this applies.
    pub persist: Option<(String, Expression)>,
}

/// What differs of a variant on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OnBackend {
    /// Further conditions.
    pub requires: Vec<Expression>,
    /// Replaces how it is expected to fail; empty if it should be right.
    pub fails: Option<Vec<ExpectedFailure>>,
}

/// A way in which a variant is expected to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedFailure {
    /// How its cases end.
    pub failure: Failure,
    /// Which of its cases, by their axes; `None` for all.
    pub condition: Option<Expression>,
}

impl VariantSpec {
    /// How it is expected to fail on a backend; empty if it should be right.
    pub fn fails_on(&self, backend: BackendKind) -> &[ExpectedFailure] {
        self.on.get(&backend).and_then(|own| own.fails.as_deref()).unwrap_or(&self.fails)
    }
}
