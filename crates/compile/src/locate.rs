//! Finds a suitable compiler: NVRTC, its builtins library and the CUDA headers.
//!
//! The order is `RUNNER_TOOLKIT`, then the machine's own toolkit (`CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda*`), then
//! the fetched one. So a GPU node with a toolkit never needs the network, and fetching a compiler for the simulator
//! does not change the compiler of GPU runs. This module opens no library; [`super::fetch`] fetches.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::fetch::{self, FetchError, Network};
use super::layout::{entries, inspect, numbers};
use super::pinned::{self, Pinned};
use super::toolkit::{TOOLKIT_VARIABLE, Toolkit, ToolkitSource};
use runner_types::ToolkitInfo;

/// Oldest NVRTC with the interface and options that this crate uses.
const OLDEST_MAJOR: u32 = 12;

/// Oldest GPU for which NVRTC 13 and newer can compile.
const OLDEST_GPU_OF_13: (u32, u32) = (7, 5);

/// Which compiler is acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// The pinned one, since the simulator's counts must not depend on the machine.
    Pinned,
    /// The pinned one of this CUDA major version.
    PinnedMajor(u32),
    /// One that supports this GPU and whose code the driver loads.
    Gpu {
        /// CUDA version that the driver supports, e.g. `(13, 0)`.
        driver: (u32, u32),
        /// Compute capability of the GPU, e.g. `(9, 0)`.
        compute_capability: (u32, u32),
    },
}

impl Requirement {
    /// Pinned set that meets the requirement.
    pub fn pinned(self) -> Result<&'static Pinned, ToolkitError> {
        let major = match self {
            Self::Pinned => pinned::NEWEST.major,
            Self::PinnedMajor(major) => major,
            Self::Gpu { driver, .. } if driver.0 < OLDEST_MAJOR => return Err(ToolkitError::OldDriver(driver)),
            Self::Gpu { compute_capability, .. } if compute_capability < OLDEST_GPU_OF_13 => OLDEST_MAJOR,
            Self::Gpu { driver, .. } => driver.0.min(pinned::NEWEST.major),
        };
        Pinned::for_major(major).ok_or(ToolkitError::NoPinned { major })
    }

    /// Why a compiler of this version is not acceptable.
    fn refusal(self, toolkit: &ToolkitInfo) -> Option<String> {
        let (major, minor) = toolkit.version;
        match self {
            Self::Pinned | Self::PinnedMajor(_) => {
                let pinned = self.pinned().ok()?;
                (toolkit.build.as_deref() != Some(pinned.build)).then(|| {
                    let build = toolkit.build.clone().unwrap_or(format!("{major}.{minor}"));
                    format!("is NVRTC {build}, but only {} is accepted", pinned.build)
                })
            }
            Self::Gpu { .. } if major < OLDEST_MAJOR => {
                Some(format!("is CUDA {major}.{minor}, older than {OLDEST_MAJOR}.0"))
            }
            Self::Gpu { driver, .. } if major > driver.0 => Some(format!(
                "is CUDA {major}.{minor}, whose code the driver (CUDA {}.{}) cannot load",
                driver.0, driver.1
            )),
            Self::Gpu { compute_capability, .. } if major > OLDEST_MAJOR && compute_capability < OLDEST_GPU_OF_13 => {
                Some(format!(
                    "is CUDA {major}.{minor}, which does not compile for sm_{}{}",
                    compute_capability.0, compute_capability.1
                ))
            }
            Self::Gpu { .. } => None,
        }
    }

    fn takes_system(self) -> bool {
        matches!(self, Self::Gpu { .. })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    #[error("{TOOLKIT_VARIABLE} names {}, which {reason}; name another toolkit or unset it", path.display())]
    Named { path: PathBuf, reason: String },
    #[error(
        "the driver supports CUDA {}.{}, but CUDA {OLDEST_MAJOR}.0 or newer is needed; update the driver",
        .0.0, .0.1
    )]
    OldDriver((u32, u32)),
    #[error("there is no pinned compiler for CUDA {major}, only for {}", pinned::majors())]
    NoPinned { major: u32 },
    #[error("{0}")]
    Missing(Missing),
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

/// Folders that were searched without success, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Each folder and why it was rejected.
    pub tried: Vec<(PathBuf, String)>,
    /// Compiler that can be fetched instead.
    pub pinned: &'static Pinned,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no CUDA compiler (NVRTC) was found; these places were tried:")?;
        for (path, reason) in &self.tried {
            writeln!(f, "  {} {reason}", path.display())?;
        }
        write!(
            f,
            "`runner setup --cuda {}` fetches NVRTC {} and its headers ({} MB) where there is a network; \
             otherwise set {TOOLKIT_VARIABLE} to a CUDA toolkit",
            self.pinned.major, self.pinned.build, self.pinned.download_mb
        )
    }
}

impl Toolkit {
    /// Finds a toolkit without using the network.
    pub fn locate(want: Requirement, cache: &Cache) -> Result<Self, ToolkitError> {
        let pinned = want.pinned()?;
        let mut tried = Vec::new();
        let named = env::var_os(TOOLKIT_VARIABLE).filter(|v| !v.is_empty());
        let system_allowed = want.takes_system() && named.as_deref() != Some("pinned".as_ref());
        if let Some(root) = named.filter(|v| v != "pinned").map(PathBuf::from) {
            match choose(&root, want) {
                Ok(found) => return Ok(found),
                // The variable may name another compiler, for the GPU.
                Err(reason) if !want.takes_system() => tried.push((root, reason)),
                Err(reason) => return Err(ToolkitError::Named { path: root, reason }),
            }
        }
        if system_allowed {
            for root in system_roots() {
                match choose(&root, want) {
                    Ok(found) => return Ok(found),
                    Err(reason) => tried.push((root, reason)),
                }
            }
        }
        let root = cache.toolkit_dir(pinned);
        match choose(&root, want) {
            Ok(found) => Ok(Self { source: ToolkitSource::Fetched, ..found }),
            Err(reason) => {
                tried.push((root, reason));
                Err(ToolkitError::Missing(Missing { tried, pinned }))
            }
        }
    }

    /// Finds a toolkit, or fetches the pinned one if allowed. Progress goes to `say`.
    pub fn ensure(
        want: Requirement,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, ToolkitError> {
        match Self::locate(want, cache) {
            Err(ToolkitError::Missing(missing)) if network == Network::Allowed => {
                fetch::fetch(missing.pinned, cache, say)?;
                Self::locate(want, cache)
            }
            other => other,
        }
    }
}

/// Folders of this machine's toolkits, best first: from the environment, the default one, then the others by version,
/// newest first.
fn system_roots() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(env::var_os)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .collect();
    roots.push(PathBuf::from("/usr/local/cuda"));
    let mut versioned: Vec<(Vec<u32>, PathBuf)> = entries(Path::new("/usr/local"))
        .into_iter()
        .filter_map(|name| Some((numbers(name.strip_prefix("cuda-")?)?, Path::new("/usr/local").join(&name))))
        .collect();
    versioned.sort_by(|a, b| b.cmp(a));
    roots.extend(versioned.into_iter().map(|(_, path)| path));
    let mut seen = Vec::new();
    roots.retain(|root| {
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    roots
}

/// Newest suitable toolkit in `root`, or why there is none.
fn choose(root: &Path, want: Requirement) -> Result<Toolkit, String> {
    let mut refusals = Vec::new();
    for toolkit in inspect(root)? {
        match want.refusal(&toolkit.info) {
            None => {
                tracing::info!("found the compiler {}", toolkit.library.display());
                return Ok(toolkit);
            }
            Some(refusal) => refusals.push(refusal),
        }
    }
    tracing::debug!("no compiler in {}: {}", root.display(), refusals.join("; "));
    Err(refusals.join("; "))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const HOPPER: (u32, u32) = (9, 0);
    const VOLTA: (u32, u32) = (7, 0);

    fn gpu(driver: (u32, u32), compute_capability: (u32, u32)) -> Requirement {
        Requirement::Gpu { driver, compute_capability }
    }

    fn version(major: u32, minor: u32) -> ToolkitInfo {
        ToolkitInfo { version: (major, minor), build: Some(format!("{major}.{minor}.88")) }
    }

    #[test]
    fn the_pinned_major_is_the_newest_that_driver_and_gpu_can_use() {
        let major = |want: Requirement| want.pinned().unwrap().major;
        assert_eq!(major(Requirement::Pinned), 13);
        assert_eq!(major(Requirement::PinnedMajor(12)), 12);
        assert_eq!(major(gpu((12, 4), HOPPER)), 12);
        assert_eq!(major(gpu((13, 0), HOPPER)), 13);
        assert_eq!(major(gpu((14, 1), HOPPER)), 13);
        assert_eq!(major(gpu((13, 0), VOLTA)), 12);
    }

    #[test]
    fn a_driver_older_than_every_compiler_is_refused() {
        let error = gpu((11, 8), HOPPER).pinned().unwrap_err().to_string();
        assert_eq!(error, "the driver supports CUDA 11.8, but CUDA 12.0 or newer is needed; update the driver");
    }

    #[test]
    fn a_compiler_suits_a_gpu_when_the_driver_loads_its_code_and_it_knows_the_gpu() {
        let refusal = |want: Requirement, major| want.refusal(&version(major, 0));
        assert_eq!(refusal(gpu((13, 0), HOPPER), 13), None);
        assert_eq!(refusal(gpu((13, 0), HOPPER), 12), None);
        assert_eq!(refusal(gpu((13, 0), VOLTA), 12), None);
        let newer = refusal(gpu((12, 4), HOPPER), 13).unwrap();
        assert_eq!(newer, "is CUDA 13.0, whose code the driver (CUDA 12.4) cannot load");
        let volta = refusal(gpu((13, 0), VOLTA), 13).unwrap();
        assert_eq!(volta, "is CUDA 13.0, which does not compile for sm_70");
        assert_eq!(refusal(gpu((13, 0), HOPPER), 11).unwrap(), "is CUDA 11.0, older than 12.0");
    }

    #[test]
    fn only_the_very_build_is_the_pinned_one() {
        assert_eq!(Requirement::Pinned.refusal(&version(13, 0)), None);
        assert_eq!(
            Requirement::Pinned.refusal(&version(13, 1)).unwrap(),
            "is NVRTC 13.1.88, but only 13.0.88 is accepted"
        );
    }

    #[test]
    fn nothing_is_missing_without_a_word_on_where_it_was_sought_and_how_to_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let error = Toolkit::locate(Requirement::PinnedMajor(12), &Cache::at(dir.path())).unwrap_err().to_string();
        assert!(error.contains(&format!("{}/toolkit/cuda-12.9.86 is not there", dir.path().display())), "{error}");
        assert!(error.contains("`runner setup --cuda 12` fetches NVRTC 12.9.86"), "{error}");
    }
}
