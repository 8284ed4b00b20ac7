//! Wrong results that a check accepts.

use serde::{Deserialize, Serialize};

use super::{Tolerance, WholeTolerance};

/// A wrong result, made of a right one. A check that accepts it cannot find such a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutant {
    /// Every element is zero.
    Zeros,
    /// The half of the elements that is nearer to zero is set to zero.
    SmallerHalfZero,
    /// Every element is the mean of the least and the greatest one.
    Constant,
    /// Content of this buffer before the launch.
    Input(String),
    /// Results for another set of inputs.
    OtherInputs,
    /// The least element is replaced by the greatest one.
    Changed,
    /// The least and the greatest element are swapped.
    Swapped,
    /// Each element is the next one, and the last is the first.
    Shifted,
}

impl Mutant {
    /// Whether it is a change of the right result, which equals the result if that has nothing to change.
    pub const fn changes_result(&self) -> bool {
        !matches!(self, Self::Zeros | Self::Input(_) | Self::OtherInputs)
    }
}

/// A check that accepts wrong results, and why it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeakCheck {
    /// The check, as written in the manifest.
    pub check: String,
    pub accepts: Vec<Mutant>,
    /// Greatest magnitude of the finite expected values that are compared.
    #[serde(with = "super::real")]
    pub greatest: f64,
    /// Allowed difference of an element.
    pub tolerance: Tolerance,
    /// What is allowed for the array as a whole.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole: WholeTolerance,
}
