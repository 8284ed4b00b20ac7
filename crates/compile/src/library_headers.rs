//! The headers of CUDA's libraries that kernels include and the fetched compiler lacks. Each set is fetched when a source
//! first needs it.
//!
//! The headers belong to the pinned compiler of CUDA 13. An installed toolkit has its own.

use std::path::PathBuf;

use super::cache::Cache;
use super::fetch;
use super::locate::Network;
use super::pinned::{self, Pinned};
use super::toolkit::{Toolkit, ToolkitSource};

/// The headers of one library.
#[derive(Debug, PartialEq, Eq)]
pub struct LibraryHeaders {
    /// The library's name, for example `cuRAND`.
    pub name: &'static str,
    /// How the names of its headers begin, as they are included.
    beginnings: &'static [&'static str],
    /// The package that has them.
    pub set: Pinned,
}

static ALL: [LibraryHeaders; 4] = [
    LibraryHeaders {
        name: "cuRAND",
        beginnings: &["curand"],
        set: Pinned {
            major: 13,
            build: "10.4.0.35",
            download_mb: 60,
            installed_mb: 3,
            requirements: include_str!("pinned/curand13.txt"),
        },
    },
    LibraryHeaders {
        name: "cuFFT",
        beginnings: &["cufft"],
        set: Pinned {
            major: 13,
            build: "12.0.0.61",
            download_mb: 214,
            installed_mb: 1,
            requirements: include_str!("pinned/cufft13.txt"),
        },
    },
    LibraryHeaders {
        name: "NVTX",
        beginnings: &["nvtx3/"],
        set: Pinned {
            major: 13,
            build: "13.0.85",
            download_mb: 1,
            installed_mb: 1,
            requirements: include_str!("pinned/nvtx13.txt"),
        },
    },
    LibraryHeaders {
        name: "the profiler",
        beginnings: &["cuda_profiler_api.h", "cudaProfiler.h"],
        set: Pinned {
            major: 13,
            build: "13.0.85",
            download_mb: 1,
            installed_mb: 1,
            requirements: include_str!("pinned/profiler13.txt"),
        },
    },
];

impl LibraryHeaders {
    /// Returns the sets that belong to a toolkit: none where it is an installed one, or has another build.
    pub fn of_toolkit(toolkit: &Toolkit) -> &'static [Self] {
        let is_pinned = toolkit.info.build.as_deref().and_then(pinned::nvcc).is_some();
        if toolkit.source == ToolkitSource::Fetched && is_pinned { &ALL } else { &[] }
    }

    /// Returns the folders of the headers, which are fetched unless they are in the cache. `say` receives lines of progress.
    ///
    /// # Errors
    ///
    /// Why there are none, in words for the user.
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

    /// Returns the sets that have headers of these names.
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
        assert_eq!(libraries(&["mycurand.h", "nvtx.h", "cublas_v2.h"]), [""; 0]);
    }
}
