//! The compiler of kernels.

use serde::{Deserialize, Serialize};

/// The compiler that built the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolkitInfo {
    /// The version of NVRTC, for example `(13, 0)`.
    pub version: (u32, u32),
    /// The full version of the package or toolkit if it is known, for example `13.0.88`.
    pub build: Option<String>,
}
