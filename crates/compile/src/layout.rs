//! Where toolkits have their files: an installed toolkit, a distribution's `/usr`, a conda prefix, or `site-packages`
//! with the `nvidia-cuda-*` wheels.
//!
//! Only file names are read. [`locate`](super::locate) decides whether a toolkit is suitable.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::toolkit::{Toolkit, ToolkitSource};
use runner_types::ToolkitInfo;

/// A header that kernels often include. A folder without it has a library but no headers.
const COMMON_HEADER: &str = "cuda_fp16.h";

/// Device runtime library, which device code needs to launch kernels.
pub(super) const DEVICE_RUNTIME: &str = "libcudadevrt.a";

/// All toolkits in `root`, newest first, or what is wrong with the folder.
pub(super) fn inspect(root: &Path) -> Result<Vec<Toolkit>, String> {
    match fs::metadata(root) {
        Ok(found) if found.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err("cannot be read: the folder, or one above it, belongs to another user".to_owned());
        }
        _ => return Err("is not there".to_owned()),
    }
    let root = fs::canonicalize(root).map_err(|e| format!("cannot be read: {e}"))?;
    let include_dirs = include_dirs(&root);
    let library_dirs = library_dirs(&root);
    let device_runtime = library_dirs.iter().map(|dir| dir.join(DEVICE_RUNTIME)).find(|path| path.is_file());
    let mut found: Vec<Toolkit> = library_dirs
        .iter()
        .flat_map(|dir| libraries(dir))
        .map(|(version, library, builtins)| Toolkit {
            info: ToolkitInfo { version, build: build_of(&root, &library) },
            source: ToolkitSource::System(root.clone()),
            library,
            builtins,
            include_dirs: include_dirs.clone(),
            device_runtime: device_runtime.clone(),
        })
        .collect();
    if found.is_empty() {
        return Err("has no libnvrtc.so with its libnvrtc-builtins.so".to_owned());
    }
    if found[0].header(COMMON_HEADER).is_none() {
        return Err(format!("has NVRTC but no CUDA headers ({COMMON_HEADER})"));
    }
    found.sort_by_key(|toolkit| Reverse(toolkit.info.version));
    Ok(found)
}

/// CUDA's folder for this host, e.g. `targets/x86_64-linux`.
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
    // Since CUDA 13, CCCL has its own folder, and its headers include each other relative to it.
    dirs.into_iter().flat_map(|dir| [dir.join("cccl"), dir]).filter(|dir| dir.is_dir()).collect()
}

/// Folders `nvidia/*/<leaf>` of unpacked wheels.
fn wheel_dirs(root: &Path, leaf: &str) -> Vec<PathBuf> {
    let base = root.join("nvidia");
    let mut names = entries(&base);
    names.retain(|name| name.starts_with("cu"));
    names.sort();
    names.into_iter().map(|name| base.join(name).join(leaf)).filter(|dir| dir.is_dir()).collect()
}

/// NVRTC libraries of a folder, each with the builtins library of the same version.
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

/// Numbers at the end of the library's real file name: `[13, 0, 88]` for `libnvrtc.so.13.0.88`.
fn file_version(library: &Path) -> Option<Vec<u32>> {
    let real = fs::canonicalize(library).ok()?;
    numbers(real.file_name()?.to_str()?.strip_prefix("libnvrtc.so.")?)
}

/// Full version, from the library's real file name or its wheel.
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

/// Parses `13.0` to `[13, 0]`; `None` if a part is not a number.
pub(super) fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// Names in a folder; none if it cannot be read.
pub(super) fn entries(dir: &Path) -> Vec<String> {
    let Ok(read) = fs::read_dir(dir) else { return Vec::new() };
    read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// A folder with these files, all empty. `a -> b` creates a symbolic link.
    fn root(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let (name, target) = file.split_once(" -> ").map_or((*file, None), |(name, to)| (name, Some(to)));
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match target {
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                None => fs::write(path, "").unwrap(),
            }
        }
        dir
    }

    #[test]
    fn an_installed_toolkit_is_known_by_its_library_and_has_the_version_of_the_real_file_name() {
        let dir = root(&[
            "lib64/libnvrtc.so",
            "lib64/libnvrtc.so.12 -> libnvrtc.so.12.4.127",
            "lib64/libnvrtc.so.12.4.127",
            "lib64/libnvrtc-builtins.so.12.4 -> libnvrtc-builtins.so.12.4.127",
            "lib64/libnvrtc-builtins.so.12.4.127",
            "include/cuda_fp16.h",
        ]);
        let found = inspect(dir.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].info, ToolkitInfo { version: (12, 4), build: Some("12.4.127".to_owned()) });
        assert_eq!(found[0].library, fs::canonicalize(dir.path()).unwrap().join("lib64/libnvrtc.so.12"));
    }

    #[test]
    fn wheels_in_a_folder_are_a_toolkit_whose_version_is_in_their_metadata() {
        let dir = root(&[
            "nvidia/cu13/lib/libnvrtc.so.13",
            "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
            "nvidia/cu13/lib/libnvrtc.alt.so.13",
            "nvidia/cu13/lib/libnvrtc-builtins.alt.so.13.0",
            "nvidia/cu13/include/cuda_fp16.h",
            "nvidia/cu13/include/cccl/cub/cub.cuh",
            "nvidia_cuda_nvrtc-13.0.88.dist-info/METADATA",
            "nvidia_cuda_runtime-13.0.96.dist-info/METADATA",
        ]);
        let found = inspect(dir.path()).unwrap();
        assert_eq!(found[0].info, ToolkitInfo { version: (13, 0), build: Some("13.0.88".to_owned()) });
        assert!(found[0].header("cub/cub.cuh").is_some());
    }

    #[test]
    fn of_several_toolkits_in_a_folder_the_newest_comes_first_with_its_own_builtins() {
        let dir = root(&[
            "lib/libnvrtc.so.12 -> libnvrtc.so.12.2.140",
            "lib/libnvrtc.so.12.2.140",
            "lib/libnvrtc-builtins.so.12.2",
            "lib/libnvrtc-builtins.so.12.9",
            "lib/libnvrtc.so.13",
            "lib/libnvrtc-builtins.so.13.1",
            "include/cuda_fp16.h",
        ]);
        let found = inspect(dir.path()).unwrap();
        let versions: Vec<_> = found.iter().map(|toolkit| toolkit.info.version).collect();
        assert_eq!(versions, [(13, 1), (12, 2)]);
        assert!(found[1].builtins.ends_with("libnvrtc-builtins.so.12.2"));
    }

    #[test]
    fn what_lacks_a_part_is_refused_with_the_part() {
        let reason = |files: &[&str]| inspect(root(files).path()).unwrap_err();
        let no_library = "has no libnvrtc.so with its libnvrtc-builtins.so";
        assert_eq!(reason(&["include/cuda_fp16.h"]), no_library);
        assert_eq!(reason(&["lib/libnvrtc.so.13", "include/cuda_fp16.h"]), no_library);
        assert_eq!(
            reason(&["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"]),
            "has NVRTC but no CUDA headers (cuda_fp16.h)"
        );
        assert_eq!(inspect(Path::new("/nonexistent")).unwrap_err(), "is not there");
    }
}
