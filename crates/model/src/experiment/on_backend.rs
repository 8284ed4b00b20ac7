//! What differs of a variant on one backend, and how a variant is expected to fail.

use super::{Expression, VariantSpec};
use crate::model::{BackendKind, Failure};

/// What differs of a variant on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OnBackend {
    /// The conditions that apply besides the variant's.
    pub requires: Vec<Expression>,
    /// Replaces how it is expected to fail; empty if it should be right.
    pub fails: Option<Vec<ExpectedFailure>>,
}

/// A way in which a variant is expected to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedFailure {
    /// How the cases end.
    pub failure: Failure,
    /// The condition on axes that selects the cases; `None` for all.
    pub condition: Option<Expression>,
}

impl VariantSpec {
    /// Returns how it is expected to fail on a backend; empty if it should be right.
    pub fn fails_on(&self, backend: BackendKind) -> &[ExpectedFailure] {
        self.on.get(&backend).and_then(|own| own.fails.as_deref()).unwrap_or(&self.fails)
    }
}
