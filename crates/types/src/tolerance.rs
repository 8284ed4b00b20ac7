//! Tolerances of a check: for each element, and for an array as a whole.

use serde::{Deserialize, Serialize};

use super::ElementType;

/// Permitted difference of a float from its reference. An element passes if any part allows it, or if it equals the
/// reference rounded to its type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    #[serde(with = "super::real")]
    pub abs: f64,
    /// Relative to the reference.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// Units in the last place (ulp) of the element type, from the rounded reference.
    pub ulp: u64,
    /// Whether to also allow an absolute difference derived from the terms of the reference, as if the manifest stated
    /// no tolerance. Not serialized if false, so that case hashes stay the same as before this field existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

impl Tolerance {
    /// Accepts only the rounded reference.
    pub const EXACT: Self = Self { abs: 0.0, rel: 0.0, ulp: 0, derived: false };

    /// Default tolerance of a type. Integers are exact. A float may differ from the reference by some roundings,
    /// relative to it: a reduction tree over 2^28 elements of one sign stays within that. The absolute part is derived
    /// from the data, because a constant would let zeros pass when the expected values are small.
    pub const fn default_for(element: ElementType) -> Self {
        let rel = match element {
            ElementType::F64 => 1e-12,
            ElementType::F32 => 1e-5,
            ElementType::F16 => 2e-3,
            ElementType::Bf16 => 2e-2,
            _ => 0.0,
        };
        if rel > 0.0 { Self { rel, ulp: 1, derived: true, ..Self::EXACT } } else { Self::EXACT }
    }

    /// Whether no part is negative, infinite or NaN; otherwise everything or nothing would pass.
    pub fn is_sound(&self) -> bool {
        [self.abs, self.rel].iter().all(|part| part.is_finite() && *part >= 0.0)
    }
}

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
