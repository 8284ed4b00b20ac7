//! Finds the programs of a CUDA toolkit, the host compiler and Python.
//!
//! Looks files up by name and starts no program. Relative folders in the search path are ignored, because a checkout
//! could put programs into them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    dirs: Vec<PathBuf>,
}

impl Programs {
    /// Absolute folders of the search path, then the folders of CUDA and Nsight Compute: `CUDA_HOME`, `CUDA_PATH`,
    /// `/usr/local/cuda`, and the newest version in `/opt/nvidia/nsight-compute`.
    pub fn of_this_machine() -> Self {
        let mut dirs = absolute(&env::var_os("PATH").unwrap_or_default());
        for root in
            ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).chain([OsString::from("/usr/local/cuda")])
        {
            dirs.push(Path::new(&root).join("bin"));
        }
        let nsight = fs::read_dir("/opt/nvidia/nsight-compute").into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> = nsight.map(|entry| entry.path()).collect();
        versions.sort();
        dirs.extend(versions.into_iter().rev());
        Self { dirs }
    }

    /// Searches only these folders.
    pub fn in_dirs(dirs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { dirs: dirs.into_iter().map(Into::into).collect() }
    }

    /// The first file with this name.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let found = self.dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
        tracing::debug!(?found, "look for the program {name}");
        found
    }
}

/// Environment variable that sets the Python interpreter; the default is `python3`.
pub const PYTHON_VARIABLE: &str = "RUNNER_PYTHON";

pub fn python() -> String {
    env::var(PYTHON_VARIABLE).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "python3".to_owned())
}

/// Environment variable that sets the C++ compiler for references.
pub const CXX_VARIABLE: &str = "RUNNER_CXX";

/// C++ compiler for references: [`CXX_VARIABLE`] or the first on the search path.
pub fn cxx() -> Option<PathBuf> {
    let path = Programs::in_dirs(absolute(&env::var_os("PATH").unwrap_or_default()));
    let named = env::var_os(CXX_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    named
        .map(|named| {
            named.to_str().filter(|name| !name.contains('/')).and_then(|name| path.find(name)).unwrap_or(named)
        })
        .or_else(|| ["c++", "g++", "clang++"].iter().find_map(|name| path.find(name)))
}

/// Search path for programs that start others, without relative folders: one may be in a checkout, whose files must not
/// be executed.
pub fn search_path() -> OsString {
    let dirs = absolute(&env::var_os("PATH").unwrap_or_default());
    // Joining fails only if a folder contains the separator, but these were split at it.
    env::join_paths(dirs).unwrap_or_default()
}

fn absolute(path: &OsStr) -> Vec<PathBuf> {
    env::split_paths(path).filter(|dir| dir.is_absolute()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_of_the_search_path_are_left_out() {
        assert_eq!(absolute(OsStr::new("::.:bin:/usr/bin:./x:/bin")), [Path::new("/usr/bin"), Path::new("/bin")]);
    }

    #[test]
    fn the_first_folder_that_has_the_program_wins() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = Programs::in_dirs([first.path(), second.path()]);
        assert_eq!(programs.find("ncu"), None);
        fs::write(second.path().join("ncu"), "").unwrap();
        assert_eq!(programs.find("ncu"), Some(second.path().join("ncu")));
        fs::create_dir(first.path().join("ncu")).unwrap();
        assert_eq!(programs.find("ncu"), Some(second.path().join("ncu")), "a folder is no program");
        fs::write(first.path().join("nvcc"), "").unwrap();
        assert_eq!(programs.find("nvcc"), Some(first.path().join("nvcc")));
    }
}
