//! A compiler on disk: NVRTC, its builtins library and the CUDA headers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::ToolkitInfo;

/// Names a toolkit to use before all others; `pinned` names the fetched one.
pub const TOOLKIT_VARIABLE: &str = "RUNNER_TOOLKIT";

/// A compiler and its headers, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolkit {
    pub info: ToolkitInfo,
    pub source: ToolkitSource,
    /// `libnvrtc.so.<major>`, absolute.
    pub library: PathBuf,
    /// `libnvrtc-builtins.so.<major>.<minor>`, absolute: NVRTC finds it only where it is loaded already.
    pub builtins: PathBuf,
    /// In the order of search.
    pub include_dirs: Vec<PathBuf>,
    /// `libcudadevrt.a`, absolute, where the toolkit has it: launches from the device need it, and nothing else does.
    pub device_runtime: Option<PathBuf>,
}

/// Where a toolkit comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolkitSource {
    /// The pinned one in the user's cache.
    Fetched,
    /// One that lies on the machine, by its root.
    System(PathBuf),
}

impl Toolkit {
    /// `NVRTC 13.0.88 (fetched)`.
    pub fn describe(&self) -> String {
        let version = self.info.build.clone().unwrap_or(format!("{}.{}", self.info.version.0, self.info.version.1));
        match &self.source {
            ToolkitSource::Fetched => format!("NVRTC {version} (fetched)"),
            ToolkitSource::System(root) => format!("NVRTC {version} ({})", root.display()),
        }
    }

    /// The file of a header, where the toolkit has it.
    pub fn header(&self, name: &str) -> Option<PathBuf> {
        self.include_dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
    }
}
