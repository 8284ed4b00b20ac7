//! Tolerance of a check for an array as a whole.

use serde::{Deserialize, Serialize};

/// Tolerance for a result with wrong elements, which passes if any of these allows it; 0 allows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WholeTolerance {
    /// Maximum fraction of wrong elements.
    #[serde(default, with = "super::real")]
    pub fraction: f64,
    /// Maximum error in the Frobenius norm, relative to the norm of the expected values.
    #[serde(default, with = "super::real")]
    pub norm: f64,
    /// Maximum absolute error, relative to the maximum absolute expected value.
    #[serde(default, with = "super::real")]
    pub max_norm: f64,
}

impl WholeTolerance {
    /// Whether no part is negative, infinite or NaN, and `fraction` is at most 1.
    pub fn is_sound(&self) -> bool {
        let parts = [self.fraction, self.norm, self.max_norm];
        parts.iter().all(|part| part.is_finite() && *part >= 0.0) && self.fraction <= 1.0
    }
}
