//! Finds the nvcc of a toolkit: in the toolkit's folder, or a fetched one of the same build.
//!
//! nvcc compiles sources with host code, which NVRTC rejects. NVRTC and nvcc are of the same build, so a unit's key
//! covers both.

use std::env;

use super::cache::Cache;
use super::fetch::{FetchError, NVCC, Network, ensure_program, find_program};
use super::pinned::{self, Pinned};
use super::plugin::Nvcc;
use super::toolkit::{Toolkit, ToolkitSource};
use runner_process::programs::Programs;
use runner_process::sandbox::{HOST_COMPILER_VARIABLE, HOST_COMPILERS};

#[derive(Debug, thiserror::Error)]
pub enum NvccError {
    #[error("nvcc is not in {place}: install the toolkit's compiler, or set RUNNER_TOOLKIT=pinned to fetch one")]
    Incomplete { place: String },
    #[error("there is no nvcc package for {0}: install a CUDA toolkit and set RUNNER_TOOLKIT to its folder")]
    NoPackage(String),
    #[error("nvcc {build} ({mb} MB) is not in the cache, and --offline forbids fetching it: run once without it")]
    Offline { build: &'static str, mb: u32 },
    #[error("nvcc needs a C++ compiler, and neither g++ nor gcc is on the search path: install g++")]
    NoHostCompiler,
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl Nvcc {
    /// The nvcc of a toolkit, if it is on this machine.
    pub fn of_toolkit(toolkit: &Toolkit, cache: &Cache) -> Option<Self> {
        let path = match &toolkit.source {
            ToolkitSource::System(root) => root.join("bin").join(NVCC),
            ToolkitSource::Fetched => find_program(&cache.program_dir(NVCC, pinned_for(toolkit)?), NVCC).ok()?,
        };
        Self::at(path)
    }

    /// Finds the nvcc of a toolkit; for a fetched toolkit, fetches it if necessary. Progress goes to `say`.
    pub fn ensure(
        toolkit: &Toolkit,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, NvccError> {
        let programs = Programs::of_this_machine();
        if env::var_os(HOST_COMPILER_VARIABLE).is_none()
            && !HOST_COMPILERS.iter().any(|name| programs.find(name).is_some())
        {
            return Err(NvccError::NoHostCompiler);
        }
        if let Some(found) = Self::of_toolkit(toolkit, cache) {
            return Ok(found);
        }
        if let ToolkitSource::System(root) = &toolkit.source {
            return Err(NvccError::Incomplete { place: root.display().to_string() });
        }
        let set = pinned_for(toolkit).ok_or_else(|| NvccError::NoPackage(toolkit.describe()))?;
        let offline = NvccError::Offline { build: set.build, mb: set.download_mb };
        let path = ensure_program((NVCC, NVCC), set, cache, (network, offline), say)?;
        let place = cache.program_dir(NVCC, set);
        Self::at(path)
            .ok_or_else(|| FetchError::Incomplete { place, reason: "has an nvcc that does not run".to_owned() }.into())
    }
}

fn pinned_for(toolkit: &Toolkit) -> Option<&'static Pinned> {
    pinned::nvcc(toolkit.info.build.as_deref()?)
}
