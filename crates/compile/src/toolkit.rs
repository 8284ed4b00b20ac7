//! A compiler on disk: NVRTC, its builtins library and the CUDA headers. Each request to the compiler's child process
//! contains one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use runner_types::ToolkitInfo;

/// Environment variable with a toolkit that takes precedence over all others; `pinned` selects the fetched one.
pub const TOOLKIT_VARIABLE: &str = "RUNNER_TOOLKIT";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolkit {
    pub info: ToolkitInfo,
    pub source: ToolkitSource,
    /// Absolute path of `libnvrtc.so.<major>`.
    pub library: PathBuf,
    /// Absolute path of `libnvrtc-builtins.so.<major>.<minor>`. NVRTC finds it only if it is already loaded.
    pub builtins: PathBuf,
    /// Header folders, in search order.
    pub include_dirs: Vec<PathBuf>,
    /// Absolute path of `libcudadevrt.a`, if the toolkit has it. Only device-side launches need it.
    pub device_runtime: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolkitSource {
    /// The pinned toolkit in the user's cache.
    Fetched,
    /// Installed on the machine, in this folder.
    System(PathBuf),
}

impl Toolkit {
    /// Name for the user, e.g. `NVRTC 13.0.88 (fetched)`.
    pub fn describe(&self) -> String {
        let version = self.info.build.clone().unwrap_or(format!("{}.{}", self.info.version.0, self.info.version.1));
        match &self.source {
            ToolkitSource::Fetched => format!("NVRTC {version} (fetched)"),
            ToolkitSource::System(root) => format!("NVRTC {version} ({})", root.display()),
        }
    }

    pub fn header(&self, name: &str) -> Option<PathBuf> {
        self.include_dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
    }
}
