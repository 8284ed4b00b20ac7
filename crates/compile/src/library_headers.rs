//! Headers of CUDA libraries that kernels include but the fetched compiler lacks. Each set is fetched when a source
//! first needs it.
//!
//! The headers match the pinned compiler of CUDA 13. An installed toolkit has its own.

use std::path::PathBuf;

use super::cache::Cache;
use super::fetch::{self, Network};
use super::pinned::{self, Pinned};
use super::toolkit::{Toolkit, ToolkitSource};

#[derive(Debug, PartialEq, Eq)]
pub struct LibraryHeaders {
    /// Name of the library, e.g. `cuRAND`.
    pub name: &'static str,
    /// Prefixes of the header names.
    beginnings: &'static [&'static str],
    /// Package with the headers.
    pub set: Pinned,
}

static ALL: [LibraryHeaders; 9] = [
    describe("cuRAND", &["curand"], "10.4.0.35", [60, 3], include_str!("pinned/curand13.txt")),
    describe("cuFFT", &["cufft"], "12.0.0.61", [214, 1], include_str!("pinned/cufft13.txt")),
    // cuSOLVER's headers include those of cuBLAS and cuSPARSE.
    describe("cuBLAS", &["cublas", "nvblas", "cusolver"], "13.1.0.3", [423, 1], include_str!("pinned/cublas13.txt")),
    describe("cuSPARSE", &["cusparse", "cusolver"], "12.6.3.3", [146, 1], include_str!("pinned/cusparse13.txt")),
    describe("cuSOLVER", &["cusolver"], "12.0.4.66", [201, 1], include_str!("pinned/cusolver13.txt")),
    describe("NPP", &["npp"], "13.0.1.2", [134, 6], include_str!("pinned/npp13.txt")),
    describe("nvJPEG", &["nvjpeg"], "13.0.1.86", [4, 1], include_str!("pinned/nvjpeg13.txt")),
    describe("NVTX", &["nvtx3/"], "13.0.85", [1, 1], include_str!("pinned/nvtx13.txt")),
    describe(
        "the profiler",
        &["cuda_profiler_api.h", "cudaProfiler.h"],
        "13.0.85",
        [1, 1],
        include_str!("pinned/profiler13.txt"),
    ),
];

/// Headers of a CUDA 13 library, with the size of the download and the size on disk in MB.
const fn describe(
    name: &'static str,
    beginnings: &'static [&'static str],
    build: &'static str,
    [download_mb, installed_mb]: [u32; 2],
    requirements: &'static str,
) -> LibraryHeaders {
    LibraryHeaders { name, beginnings, set: Pinned { major: 13, build, download_mb, installed_mb, requirements } }
}

impl LibraryHeaders {
    /// Sets for a toolkit; none for an installed toolkit or another build.
    pub fn of_toolkit(toolkit: &Toolkit) -> &'static [Self] {
        let is_pinned = toolkit.info.build.as_deref().and_then(pinned::nvcc).is_some();
        if toolkit.source == ToolkitSource::Fetched && is_pinned { &ALL } else { &[] }
    }

    /// Header folders, fetched unless they are cached. Progress goes to `say`. Errors are worded for the user.
    pub fn ensure(
        &'static self,
        toolkit: &Toolkit,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, String> {
        let Self { name, set, .. } = self;
        if !Self::of_toolkit(toolkit).contains(self) {
            let compiler = toolkit.describe();
            return Err(format!("{compiler} lacks the headers of {name}: install them, or set RUNNER_TOOLKIT=pinned"));
        }
        if let Ok(folders) = fetch::header_folders(&cache.headers_dir(set, name)) {
            return Ok(folders);
        }
        if network == Network::Forbidden {
            return Err(format!(
                "the headers of {name} {} ({} MB) are not in the cache, and --offline forbids fetching them: run once \
                 without it",
                set.build, set.download_mb
            ));
        }
        let fetched = fetch::fetch_headers(name, set, cache, say);
        fetched.map_err(|error| error.to_string()).and_then(|place| fetch::header_folders(&place))
    }

    /// Sets with headers of these names.
    pub(super) fn find(names: &[&str]) -> Vec<&'static Self> {
        let has = |set: &&Self| {
            let begins = |name: &&str| set.beginnings.iter().any(|beginning| name.starts_with(beginning));
            names.iter().any(begins)
        };
        ALL.iter().filter(has).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_of_the_library_whose_names_they_have() {
        let libraries =
            |names: &[&str]| -> Vec<&str> { LibraryHeaders::find(names).iter().map(|library| library.name).collect() };
        assert_eq!(libraries(&["curand_kernel.h", "vector", "nvtx3/nvToolsExt.h"]), ["cuRAND", "NVTX"]);
        assert_eq!(libraries(&["cuda_profiler_api.h"]), ["the profiler"]);
        assert_eq!(libraries(&["cufftXt.h"]), ["cuFFT"]);
        assert_eq!(libraries(&["cublas_v2.h", "nppi.h"]), ["cuBLAS", "NPP"]);
        assert_eq!(libraries(&["cusolverDn.h"]), ["cuBLAS", "cuSPARSE", "cuSOLVER"]);
        assert_eq!(libraries(&["mycurand.h", "nvtx.h", "cudnn.h"]), [""; 0]);
    }
}
