//! Finds a compiler that suits: NVRTC, its builtins library and the CUDA headers.
//!
//! The order is the environment's word (`RUNNER_TOOLKIT`), then the machine's own toolkit (`CUDA_HOME`, `CUDA_PATH`,
//! `/usr/local/cuda*`), then the fetched one, so that a GPU node with a toolkit never needs the network and so that
//! fetching one for the simulator does not change what GPU runs are compiled with. This module opens no library and
//! fetches nothing; [`super::fetch`] does the latter.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::fetch::{self, FetchError, Pinned};
use crate::model::ToolkitInfo;

/// Names a toolkit to use before all others; `pinned` names the fetched one.
pub const TOOLKIT_VARIABLE: &str = "RUNNER_TOOLKIT";

/// The oldest NVRTC whose interface and options this crate uses.
const OLDEST_MAJOR: u32 = 12;

/// NVRTC 13 and newer compile for no GPU older than this.
const OLDEST_GPU_OF_13: (u32, u32) = (7, 5);

/// A header of the CUDA runtime that kernels ask for; a toolkit without it is a library without headers.
const PROOF_OF_HEADERS: &str = "cuda_fp16.h";

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

/// Which compiler is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The pinned one and no other: what the simulator counts must not depend on the machine.
    Pinned,
    /// The pinned one of this CUDA major version.
    PinnedMajor(u32),
    /// One whose code this driver loads and that knows this GPU.
    Gpu {
        /// The CUDA version that the driver speaks, for example `(13, 0)`.
        driver: (u32, u32),
        compute_capability: (u32, u32),
    },
}

impl Want {
    /// The pinned set that answers this want.
    pub fn pinned(self) -> Result<&'static Pinned, ToolkitError> {
        let major = match self {
            Self::Pinned => fetch::NEWEST.major,
            Self::PinnedMajor(major) => major,
            Self::Gpu { driver, .. } if driver.0 < OLDEST_MAJOR => return Err(ToolkitError::OldDriver(driver)),
            Self::Gpu { compute_capability, .. } if compute_capability < OLDEST_GPU_OF_13 => OLDEST_MAJOR,
            Self::Gpu { driver, .. } => driver.0.min(fetch::NEWEST.major),
        };
        Pinned::of(major).ok_or(ToolkitError::NoPinned { major })
    }

    /// Why a compiler of this version does not answer the want.
    fn refusal(self, toolkit: &ToolkitInfo) -> Option<String> {
        let (major, minor) = toolkit.version;
        match self {
            Self::Pinned | Self::PinnedMajor(_) => {
                let pinned = self.pinned().ok()?;
                (toolkit.build.as_deref() != Some(pinned.build)).then(|| {
                    let build = toolkit.build.clone().unwrap_or(format!("{major}.{minor}"));
                    format!("is NVRTC {build}, only {} is asked for", pinned.build)
                })
            }
            Self::Gpu { .. } if major < OLDEST_MAJOR => {
                Some(format!("is CUDA {major}.{minor}, older than {OLDEST_MAJOR}.0"))
            }
            Self::Gpu { driver, .. } if major > driver.0 => Some(format!(
                "is CUDA {major}.{minor}, whose code the driver (CUDA {}.{}) does not load",
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

/// Whether a missing toolkit may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Allowed,
    /// `--offline`.
    Forbidden,
}

/// Why there is no toolkit.
#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    #[error("{TOOLKIT_VARIABLE} names {}, which {reason}; name another toolkit or unset it", path.display())]
    Named { path: PathBuf, reason: String },
    #[error(
        "the driver speaks CUDA {}.{}, and CUDA {OLDEST_MAJOR}.0 is the oldest that is supported; update the driver",
        .0.0, .0.1
    )]
    OldDriver((u32, u32)),
    #[error("there is no pinned compiler for CUDA {major}; there is one for each of {}", fetch::majors())]
    NoPinned { major: u32 },
    #[error("{0}")]
    Missing(Missing),
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

/// No toolkit was found: where it was sought, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Each place and what is wrong with it.
    pub tried: Vec<(PathBuf, String)>,
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
    /// Finds a toolkit without touching the network.
    pub fn locate(want: Want, cache: &Cache) -> Result<Self, ToolkitError> {
        let pinned = want.pinned()?;
        let mut tried = Vec::new();
        let named = env::var_os(TOOLKIT_VARIABLE).filter(|v| !v.is_empty());
        let system_allowed = want.takes_system() && named.as_deref() != Some("pinned".as_ref());
        if let Some(root) = named.filter(|v| v != "pinned").map(PathBuf::from) {
            match choose(&root, want) {
                Ok(found) => return Ok(found),
                // Whoever asks for the pinned compiler alone may have named another one for the GPU.
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

    /// Finds a toolkit, and fetches the pinned one where none is found and the network may be used.
    ///
    /// `say` receives one line of progress at a time; it is silent where a toolkit is there.
    pub fn ensure(
        want: Want,
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

/// The roots of toolkits on this machine, best first: the environment's, the default, versioned ones, newest first.
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

/// The newest toolkit under `root` that answers the want, or what is wrong with the place.
fn choose(root: &Path, want: Want) -> Result<Toolkit, String> {
    let mut refusals = Vec::new();
    for toolkit in inspect(root)? {
        match want.refusal(&toolkit.info) {
            None => return Ok(toolkit),
            Some(refusal) => refusals.push(refusal),
        }
    }
    Err(refusals.join("; "))
}

/// Every toolkit under `root`, newest first. Knows an installed toolkit, a distribution's `/usr`, a conda prefix and
/// a `site-packages` folder with the `nvidia-cuda-*` wheels.
pub(super) fn inspect(root: &Path) -> Result<Vec<Toolkit>, String> {
    if !root.is_dir() {
        return Err("is not there".to_owned());
    }
    let root = fs::canonicalize(root).map_err(|e| format!("cannot be read: {e}"))?;
    let include_dirs = include_dirs(&root);
    let mut found: Vec<Toolkit> = library_dirs(&root)
        .iter()
        .flat_map(|dir| libraries(dir))
        .map(|(version, library, builtins)| Toolkit {
            info: ToolkitInfo { version, build: build_of(&root, &library) },
            source: ToolkitSource::System(root.clone()),
            library,
            builtins,
            include_dirs: include_dirs.clone(),
        })
        .collect();
    if found.is_empty() {
        return Err("holds no libnvrtc.so with its libnvrtc-builtins.so".to_owned());
    }
    if found[0].header(PROOF_OF_HEADERS).is_none() {
        return Err(format!("holds NVRTC but no CUDA headers ({PROOF_OF_HEADERS})"));
    }
    found.sort_by_key(|toolkit| Reverse(toolkit.info.version));
    Ok(found)
}

/// `x86_64-linux`, as CUDA's `targets` folder has it.
fn target_dir() -> String {
    let arch = if cfg!(target_arch = "aarch64") { "sbsa" } else { env::consts::ARCH };
    format!("targets/{arch}-linux")
}

fn library_dirs(root: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![
        root.join("lib64"),
        root.join("lib"),
        root.join(target_dir()).join("lib"),
        root.join(format!("lib/{}-linux-gnu", env::consts::ARCH)),
    ];
    dirs.extend(wheel_dirs(root, "lib"));
    let mut seen = Vec::new();
    dirs.into_iter().filter_map(|dir| fs::canonicalize(dir).ok()).for_each(|dir| {
        if !seen.contains(&dir) {
            seen.push(dir);
        }
    });
    seen
}

fn include_dirs(root: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![root.join("include"), root.join(target_dir()).join("include")];
    dirs.extend(wheel_dirs(root, "include"));
    // CCCL has a folder of its own from CUDA 13 on, and its headers do not find each other without it.
    dirs.into_iter().flat_map(|dir| [dir.join("cccl"), dir]).filter(|dir| dir.is_dir()).collect()
}

/// `nvidia/*/<leaf>` of a folder that wheels were unpacked into.
fn wheel_dirs(root: &Path, leaf: &str) -> Vec<PathBuf> {
    let base = root.join("nvidia");
    let mut names = entries(&base);
    names.retain(|name| name.starts_with("cu"));
    names.sort();
    names.into_iter().map(|name| base.join(name).join(leaf)).filter(|dir| dir.is_dir()).collect()
}

/// NVRTC libraries of a folder with the builtins library of the same version.
fn libraries(dir: &Path) -> Vec<((u32, u32), PathBuf, PathBuf)> {
    let mut builtins: BTreeMap<(u32, u32), String> = BTreeMap::new();
    let mut mains: BTreeMap<u32, String> = BTreeMap::new();
    for name in entries(dir) {
        if let Some(version) = name.strip_prefix("libnvrtc-builtins.so.").and_then(numbers)
            && let [major, minor, ..] = version[..]
        {
            builtins.insert((major, minor), name);
        } else if let Some(version) = name.strip_prefix("libnvrtc.so.").and_then(numbers)
            && let [major] = version[..]
        {
            mains.insert(major, name);
        }
    }
    mains
        .into_iter()
        .filter_map(|(major, name)| {
            let library = dir.join(name);
            let minor = file_version(&library).and_then(|v| v.get(1).copied());
            let (version, builtins) = builtins
                .iter()
                .rev()
                .find(|((b_major, b_minor), _)| *b_major == major && minor.is_none_or(|minor| minor == *b_minor))?;
            Some((*version, library, dir.join(builtins)))
        })
        .collect()
}

/// The numbers at the end of the library's real file name: `[13, 0, 88]` of `libnvrtc.so.13.0.88`.
fn file_version(library: &Path) -> Option<Vec<u32>> {
    let real = fs::canonicalize(library).ok()?;
    numbers(real.file_name()?.to_str()?.strip_prefix("libnvrtc.so.")?)
}

/// The full version: from the library's real file name, or from the wheel that it was unpacked from.
fn build_of(root: &Path, library: &Path) -> Option<String> {
    let version = file_version(library)?;
    if version.len() >= 3 {
        return Some(version.iter().map(ToString::to_string).collect::<Vec<_>>().join("."));
    }
    entries(root).iter().find_map(|name| {
        let (package, build) = name.strip_suffix(".dist-info")?.split_once('-')?;
        let of_nvrtc = package.starts_with("nvidia_cuda_nvrtc") && numbers(build)?.first() == version.first();
        of_nvrtc.then(|| build.to_owned())
    })
}

/// `[13, 0]` of `13.0`; `None` where anything else stands.
fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// The names in a folder; none where it cannot be read.
fn entries(dir: &Path) -> Vec<String> {
    let Ok(read) = fs::read_dir(dir) else { return Vec::new() };
    read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
