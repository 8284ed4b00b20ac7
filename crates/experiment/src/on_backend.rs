//! Overrides of a variant on one backend, and its expected failures.

use super::{Expression, VariantSpec};
use runner_types::{BackendKind, Failure};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct OnBackend {
    /// Conditions in addition to the variant's.
    pub requires: Vec<Expression>,
    /// Replaces the expected failures; empty if the variant should succeed.
    pub fails: Option<Vec<ExpectedFailure>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedFailure {
    pub failure: Failure,
    /// Condition on the axes that selects the cases; `None` for all.
    pub condition: Option<Expression>,
}

impl VariantSpec {
    /// Expected failures on a backend; empty if the variant should succeed.
    pub fn fails_on(&self, backend: BackendKind) -> &[ExpectedFailure] {
        self.on.get(&backend).and_then(|own| own.fails.as_deref()).unwrap_or(&self.fails)
    }
}
