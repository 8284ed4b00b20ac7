//! Tolerance of a check for an array as a whole.

use serde::{Deserialize, Serialize};

/// A result with wrong elements passes if one of these allows it; 0 allows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WholeTolerance {
    /// Largest fraction of elements that may be wrong.
    #[serde(default, with = "super::real")]
    pub fraction: f64,
    /// Largest error in the Frobenius norm, as a fraction of the expected values' norm.
    #[serde(default, with = "super::real")]
    pub norm: f64,
    /// Largest absolute error, as a fraction of the greatest absolute expected value.
    #[serde(default, with = "super::real")]
    pub max_norm: f64,
}

impl WholeTolerance {
    /// Whether no part is negative, infinite or NaN, or a fraction above 1.
    pub fn is_sound(&self) -> bool {
        let parts = [self.fraction, self.norm, self.max_norm];
        parts.iter().all(|part| part.is_finite() && *part >= 0.0) && self.fraction <= 1.0
    }
}
