//! Where the programs of a CUDA toolkit are found.
//!
//! It looks for files by name and starts none of them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders in which programs are sought, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    dirs: Vec<PathBuf>,
}

impl Programs {
    /// The search path, then where CUDA and Nsight Compute are installed: `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`,
    /// and the newest version under `/opt/nvidia/nsight-compute`.
    pub fn of_this_machine() -> Self {
        let mut dirs: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
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

    /// These folders alone.
    pub fn in_dirs(dirs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { dirs: dirs.into_iter().map(Into::into).collect() }
    }

    /// The first file of this name.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

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
