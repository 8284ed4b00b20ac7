//! Folders in which a manifest's files may be.
//!
//! A manifest may come from a stranger. The files that it names are read with the user's permissions and may be quoted
//! in messages and reports, so files outside its project are refused unless the user allows them. Files below `.git`
//! are also refused: that folder holds the user's settings and credentials for the checkout.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders in which a manifest's files may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Folders with links resolved; `None` if files may be anywhere.
    roots: Option<Vec<PathBuf>>,
    /// The user's home, if it is inside a folder that the user did not name as the project.
    home: Option<PathBuf>,
}

impl Default for Project {
    fn default() -> Self {
        Self::everywhere()
    }
}

impl Project {
    pub const fn everywhere() -> Self {
        Self { roots: None, home: None }
    }

    /// Project of a manifest: the parent of its folder, so that `../kernels` is included. It is the folder itself if
    /// that is the top of a checkout, or if the parent is the file system root, the user's home, or contains the home
    /// and is not a checkout. A home inside the project is not part of it.
    pub fn from_manifest(manifest: &Path) -> Self {
        Self::found(Self::folder_of(manifest))
    }

    /// A project at a folder that the user did not name.
    fn found(root: PathBuf) -> Self {
        let home = home().filter(|home| *home != root && home.starts_with(&root));
        Self { roots: Some(vec![root]), home }
    }

    /// Project of a source that the user names: the checkout that contains it, or else the project of a manifest at the
    /// same place.
    pub fn from_source(source: &Path) -> Self {
        let folder = real(&own_folder(source));
        let checkout = folder.ancestors().find(|folder| folder.join(".git").exists() && !is_too_large(folder));
        checkout.map_or_else(|| Self::from_manifest(source), |folder| Self::found(folder.to_owned()))
    }

    /// Top folder of a manifest's project, with links resolved.
    pub fn folder_of(manifest: &Path) -> PathBuf {
        let folder = real(&own_folder(manifest));
        let parent = folder.parent().filter(|parent| !folder.join(".git").exists() && !is_too_large(parent));
        parent.map_or_else(|| folder.clone(), Path::to_owned)
    }

    /// A project at a folder that the user names. Fails if the folder does not exist.
    pub fn at(folder: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(folder)?;
        if root.is_dir() {
            Ok(Self { roots: Some(vec![root]), home: None })
        } else {
            Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder"))
        }
    }

    /// Union of two projects.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = |(mine, others): (&Vec<PathBuf>, &Vec<PathBuf>)| [mine.as_slice(), others].concat();
        let home = self.home.clone().or_else(|| other.home.clone());
        Self { roots: self.roots.as_ref().zip(other.roots.as_ref()).map(both), home }
    }

    /// Adds a folder to the project.
    #[must_use]
    pub fn with_folder(mut self, folder: &Path) -> Self {
        if let Some(roots) = &mut self.roots {
            roots.push(real(folder));
        }
        self
    }

    /// Folders that may contain files, with links resolved; `None` if files may be anywhere.
    pub fn folders(&self) -> Option<&[PathBuf]> {
        self.roots.as_deref()
    }

    pub const fn is_limited(&self) -> bool {
        self.roots.is_some()
    }

    /// Whether a file, with links resolved, is in the project and neither below `.git` nor in the user's home. True for a
    /// file that does not exist, since reading it fails anyway.
    pub fn has(&self, file: &Path) -> bool {
        let Some(roots) = &self.roots else { return true };
        let is_part = |inner: &Path| !inner.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        let is_in = |file: &Path, root: &PathBuf| file.strip_prefix(root).is_ok_and(is_part);
        fs::canonicalize(file)
            .map_or(true, |file| !self.is_of_home(&file) && roots.iter().any(|root| is_in(&file, root)))
    }

    fn is_of_home(&self, file: &Path) -> bool {
        self.home.as_ref().is_some_and(|home| file.starts_with(home))
    }

    /// Error message for a file that is not in the project.
    pub fn refusal(&self, file: &Path) -> String {
        let roots: Vec<String> = self.roots.iter().flatten().map(|root| root.display().to_string()).collect();
        let real = real(file);
        let target = if real == file { String::new() } else { format!(" ({})", real.display()) };
        let is_below = self.roots.iter().flatten().any(|root| real.starts_with(root));
        let place = match is_below {
            true if self.is_of_home(&real) => "in the user's home, which is not part of the project",
            true => "below .git, which is not part of the project",
            false => "outside of the project",
        };
        format!("`{}`{target} is {place} {}", file.display(), roots.join(" and "))
    }

    pub const REMEDY: &str = "copy it into the project, name a larger project with --project DIR, or, if you trust the \
                              manifest, allow all files with --allow-outside";
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Folder that contains a file.
fn own_folder(file: &Path) -> PathBuf {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// The user's home, with links resolved.
fn home() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| real(Path::new(&home)))
}

/// Whether a folder is the file system root, the user's home, or contains it and is not a checkout.
fn is_too_large(folder: &Path) -> bool {
    let contains = |home: PathBuf| home.starts_with(folder) && (home == folder || !folder.join(".git").exists());
    folder.parent().is_none() || home().is_some_and(contains)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_project_is_the_parent_of_the_manifests_folder_with_links_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for folder in ["p/experiments", "p/kernels", "elsewhere"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        for file in ["p/kernels/a.cu", "p/experiments/x.toml", "elsewhere/secret"] {
            fs::write(path(file), "").unwrap();
        }
        symlink(path("elsewhere/secret"), path("p/kernels/link.cu")).unwrap();
        let project = Project::from_manifest(&path("p/experiments/x.toml"));
        assert!(project.has(&path("p/experiments/../kernels/a.cu")));
        assert!(project.has(&path("p/experiments/missing")));
        assert!(!project.has(&path("p/experiments/../../elsewhere/secret")));
        assert!(!project.has(&path("p/kernels/link.cu")), "a link leads out");
        assert!(Project::everywhere().has(&path("elsewhere/secret")));
        let larger = project.and(&Project::at(&path("elsewhere")).unwrap());
        assert!(larger.has(&path("elsewhere/secret")) && larger.has(&path("p/kernels/a.cu")));
        fs::create_dir_all(path("p/.git/hooks")).unwrap();
        fs::write(path("p/.git/config"), "").unwrap();
        symlink(path("p/.git/config"), path("p/kernels/settings.cu")).unwrap();
        for name in ["p/.git/config", "p/experiments/../.git/config", "p/kernels/settings.cu", "p/.git/hooks"] {
            assert!(!project.has(&path(name)), "{name}");
            let refusal = project.refusal(&path(name));
            assert!(refusal.contains(" is below .git, which is not part of the project /"), "{refusal}");
        }
        assert!(Project::everywhere().has(&path("p/.git/config")));
        fs::create_dir(path("p/experiments/.git")).unwrap();
        let checkout = Project::from_manifest(&path("p/experiments/x.toml"));
        assert!(!checkout.has(&path("p/kernels/a.cu")), "a checkout ends at its top");
    }

    #[test]
    fn the_root_and_the_parents_of_a_home_are_no_projects() {
        assert!(!Project::from_manifest(Path::new("/tmp/x.toml")).has(Path::new("/etc/passwd")));
        let home = env::var("HOME").unwrap();
        assert!(!Project::from_manifest(&Path::new(&home).join("x.toml")).has(Path::new("/etc/passwd")));
    }

    #[test]
    fn the_project_of_a_source_is_its_checkout() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("p/.git")).unwrap();
        fs::create_dir_all(path("p/a/b/c")).unwrap();
        fs::create_dir_all(path("q/a/b")).unwrap();
        let has = |source: &str, other: &str| Project::from_source(&path(source)).has(&path(other));
        fs::write(path("p/x.h"), "").unwrap();
        fs::write(path("q/x.h"), "").unwrap();
        assert!(has("p/a/b/c/k.cu", "p/x.h") && !has("p/a/b/c/k.cu", "q/x.h"));
        assert!(!has("q/a/b/k.cu", "q/x.h"));
    }
}
