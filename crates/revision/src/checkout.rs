//! Finds a checkout and builds the temporary folder that git uses as its `.git`.
//!
//! All git commands are built here, so that git never sees the checkout's own configuration.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use runner_files::regular;

/// The only configuration that git sees. File modes are ignored, since the checkout's file system may not support them.
const CONFIGURATION: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfileMode = false\n";

/// Entries of the temporary folder that are symbolic links to the checkout's.
const LINKED: [&str; 4] = ["objects", "refs", "packed-refs", "shallow"];

#[derive(Debug, Clone)]
pub(super) struct Checkout {
    root: PathBuf,
    /// `.git`, or the folder that a worktree's or submodule's `.git` file points to.
    own: PathBuf,
    /// Folder with the objects and refs, which worktrees share; otherwise equal to `own`.
    common: PathBuf,
}

impl Checkout {
    /// Closest checkout at or above `dir`.
    pub fn around(dir: &Path) -> Option<Self> {
        let dir = fs::canonicalize(dir).ok()?;
        dir.ancestors().find_map(|root| {
            let entry = root.join(".git");
            let own = match regular::read_text(&entry) {
                Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
                Err(_) => entry,
            };
            let common = regular::read_text(&own.join("commondir")).map_or(own.clone(), |text| own.join(text.trim()));
            own.join("HEAD").is_file().then(|| Self { root: root.to_owned(), own, common })
        })
    }

    /// Path relative to the checkout's root, separated by `/`; `None` if outside. The path need not exist and may be a
    /// symbolic link.
    pub fn path_of(&self, path: &Path) -> Option<String> {
        let absolute = std::path::absolute(path).ok()?;
        let unresolved = usize::from(!absolute.is_dir());
        let real = absolute.ancestors().skip(unresolved).find_map(|above| {
            let below = absolute.strip_prefix(above).ok()?;
            above.canonicalize().ok().map(|above| above.join(below))
        });
        Some(real?.strip_prefix(&self.root).ok()?.to_str()?.to_owned())
    }

    /// Creates a temporary folder to use as `.git`.
    pub fn temporary_git_dir(&self) -> std::io::Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("runner-git-").tempdir()?;
        fs::write(folder.path().join("config"), CONFIGURATION)?;
        fs::copy(self.own.join("HEAD"), folder.path().join("HEAD"))?;
        for name in LINKED.iter().filter(|name| self.common.join(name).exists()) {
            symlink(self.common.join(name), folder.path().join(name))?;
        }
        // A split index consists of two files.
        for entry in fs::read_dir(&self.own)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("sharedindex.") {
                symlink(entry.path(), folder.path().join(entry.file_name()))?;
            }
        }
        Ok(folder)
    }

    /// Commits whose parents were not fetched.
    pub fn shallow_commits(&self) -> BTreeSet<String> {
        let listed = regular::read_text(&self.common.join("shallow")).unwrap_or_default();
        listed.lines().map(str::to_owned).collect()
    }

    pub fn command(&self, git: &Path, git_dir: &Path) -> Command {
        let mut command = Command::new(git);
        command
            .env_clear()
            .env("GIT_DIR", git_dir)
            .env("GIT_WORK_TREE", &self.root)
            .env("GIT_INDEX_FILE", self.own.join("index"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}
