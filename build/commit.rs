//! Reads the checked-out commit from a repository's files, without running git.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// 40 or 64 hexadecimal digits.
    pub commit: String,
    /// Existing files, at least one of which changes when another commit is checked out.
    pub depends_on: Vec<PathBuf>,
}

/// The commit checked out in the repository with this root; `None` without a repository or a commit.
pub fn head(root: &Path) -> Option<Head> {
    let git = git_folder(root)?;
    // A linked worktree has its own HEAD; refs are in the main repository.
    let common = match fs::read_to_string(git.join("commondir")) {
        Ok(path) => git.join(path.trim()),
        Err(_) => git.clone(),
    };
    let head = git.join("HEAD");
    let text = fs::read_to_string(&head).ok()?;
    let mut depends_on = vec![head, git.join("logs/HEAD")];
    let commit = match text.trim().strip_prefix("ref: ") {
        None => text.trim().to_owned(),
        Some(reference) => {
            let (loose, packed) = (common.join(reference), common.join("packed-refs"));
            let commit = match fs::read_to_string(&loose) {
                Ok(commit) => commit.trim().to_owned(),
                Err(_) => in_packed(&fs::read_to_string(&packed).ok()?, reference)?,
            };
            depends_on.extend([loose, packed]);
            commit
        }
    };
    // If a listed file is missing, Cargo reruns the build script on every build.
    depends_on.retain(|file| file.exists());
    is_hash(&commit).then_some(Head { commit, depends_on })
}

/// Path of the git directory. In a linked worktree, `.git` is a file that points to it.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = fs::read_to_string(git).ok()?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

/// Finds a ref in lines of the form `HASH NAME`.
fn in_packed(text: &str, reference: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, name)| *name == reference).map(|(commit, _)| commit.to_owned())
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
