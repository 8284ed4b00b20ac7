//! A buffer that stays in the L2 during a launch.

use serde::{Deserialize, Serialize};

/// A buffer whose lines stay in the L2 as long as there is room.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Persist<B = String, R = f64> {
    /// The buffer: its name, or where a device has it.
    pub buffer: B,
    /// The fraction of its lines to which this applies.
    pub ratio: R,
}
