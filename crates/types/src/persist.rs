//! L2 persistence for a buffer during a launch.

use serde::{Deserialize, Serialize};

use super::real::Numbers;

/// A buffer whose lines stay in the L2 while there is room.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "B: Serialize, R: Numbers", deserialize = "B: Deserialize<'de>, R: Numbers"))]
pub struct Persist<B = String, R = f64> {
    /// Name of the buffer, or its location on a device.
    pub buffer: B,
    /// Fraction of its lines to keep.
    #[serde(with = "super::real")]
    pub ratio: R,
}
