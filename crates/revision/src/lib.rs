//! Reads a checkout's revision and the files of a revision with git, without running programs that the checkout
//! configures.
//!
//! A checkout's `.git/config` and hooks can name programs for git to run (`core.fsmonitor`, filters). So git gets a
//! temporary folder instead of `.git`, with the checkout's objects, refs and index and a minimal configuration. The
//! configurations of the checkout, the user and the system are not read. Submodules have their own configurations and
//! are skipped. Nothing is checked out: files of a revision come from git objects.

mod checkout;
mod export;
mod files;

use std::path::Path;

use checkout::Checkout;
use runner_process::programs::Programs;

pub use files::Files;
pub use files::{File, RevisionError};

/// Path of a file relative to the root of its checkout; `None` outside a checkout.
pub fn path_in_checkout(file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Checkout::around(folder)?.path_of(file)
}

/// Commit of the checkout that contains `dir`, with `-dirty` if a tracked file was modified. `None` outside a checkout
/// or without git.
pub fn describe_checkout(dir: &Path, programs: &Programs) -> Option<String> {
    let git = programs.find("git")?;
    let checkout = Checkout::around(dir)?;
    let git_dir = checkout.temporary_git_dir().ok()?;
    let run = |args: &[&str]| {
        let output = checkout.command(&git, git_dir.path()).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = run(&["rev-parse", "--verify", "HEAD"])?;
    let changes = run(&["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]);
    Some(if changes.is_some_and(|changes| !changes.is_empty()) { format!("{head}-dirty") } else { head })
}
