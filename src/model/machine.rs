//! What a machine is found to be when it is itself measured, once a device and driver.

use serde::{Deserialize, Serialize};

use super::Compiled;

/// All that is known of a device beyond what its driver says. What was not found out is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
}

impl Machine {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The fastest that kernels made for nothing else were seen to be on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Device memory read once, bytes a second.
    pub read: f64,
    /// Device memory copied, bytes read and written a second.
    pub copy: f64,
    /// The L2 cache read, bytes a second.
    pub l2_read: f64,
    /// Fused multiply-adds outside matrix units, operations a second; each counts as two.
    pub fma_f32: f64,
    pub fma_f64: f64,
    /// Two at a time in a register, as every architecture since 5.3 does.
    pub fma_f16: f64,
}

/// What a worker is asked to find out about its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyRequest {
    /// The kernels of the survey.
    pub code: Compiled,
}

/// What it found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    pub ceilings: Ceilings,
}
