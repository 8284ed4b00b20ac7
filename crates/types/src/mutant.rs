//! Deliberately wrong results, used to find checks that accept them.

use serde::{Deserialize, Serialize};

use super::{Tolerance, WholeTolerance};

/// A wrong result for testing a check. A check that accepts it cannot detect such a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutant {
    /// Every element is zero.
    Zeros,
    /// The half of the elements closest to zero is set to zero.
    SmallerHalfZero,
    /// Every element is the mean of the minimum and the maximum.
    Constant,
    /// The content of this buffer before the launch.
    Input(String),
    /// The results for a different set of inputs.
    OtherInputs,
    /// The minimum is replaced by the maximum.
    Changed,
    /// The minimum and the maximum are swapped.
    Swapped,
    /// Every element is replaced by the next, the last by the first.
    Shifted,
}

impl Mutant {
    /// Whether it modifies the correct result. Such a mutant may equal the result, e.g. if all elements are the same.
    pub const fn changes_result(&self) -> bool {
        !matches!(self, Self::Zeros | Self::Input(_) | Self::OtherInputs)
    }
}

/// A check that accepts wrong results, with the tolerances that let them pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeakCheck {
    /// The check, as written in the manifest.
    pub check: String,
    pub accepts: Vec<Mutant>,
    /// Maximum magnitude of the compared expected values that are finite.
    #[serde(with = "super::real")]
    pub greatest: f64,
    /// Tolerance per element.
    pub tolerance: Tolerance,
    /// Tolerance for the array as a whole.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole: WholeTolerance,
}
