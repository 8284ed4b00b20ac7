//! The toolkit that compiles kernels.

use serde::{Deserialize, Serialize};

/// Version of the compiler that built the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolkitInfo {
    /// NVRTC version, e.g. `(13, 0)`.
    pub version: (u32, u32),
    /// Full version of the package or toolkit if known, e.g. `13.0.88`.
    pub build: Option<String>,
}
