//! Finds the files that a manifest refers to, and scans each CUDA C++ source once.
//!
//! Validation uses this to look up file locations, kernels and signatures. All variants share one cache, since they
//! often share sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use runner_cuda_source::kernel_file::KernelFile;
use runner_cuda_source::signature::Signature;
use runner_cuda_source::source::CudaSource;

use runner_cuda_source::includes::Scanner;
use runner_files::project::Project;

/// Folder of kernels, next to the manifest's folder.
const KERNELS: &str = "kernels";

#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    project: Project,
    scanner: Scanner,
    /// Package folders by package name; `None` for packages missing from the cache.
    packages: BTreeMap<String, Option<PathBuf>>,
    /// Scanned sources by file and include paths.
    sources: BTreeMap<(PathBuf, Vec<PathBuf>), Rc<CudaSource>>,
    signatures: BTreeMap<PathBuf, Rc<Vec<Signature>>>,
    /// Files and folders that were looked up.
    used: BTreeSet<PathBuf>,
}

impl Files {
    pub fn new(folder: &Path, project: Project) -> Self {
        Self {
            folder: folder.to_owned(),
            scanner: Scanner::confined_to(project.clone()),
            project,
            packages: BTreeMap::new(),
            sources: BTreeMap::new(),
            signatures: BTreeMap::new(),
            used: BTreeSet::new(),
        }
    }

    /// Adds a package's folder, whose files then count as part of the project.
    pub fn add_package(&mut self, name: &str, folder: PathBuf) {
        self.project = self.project.clone().with_folder(&folder);
        self.scanner = Scanner::confined_to(self.project.clone());
        self.packages.insert(name.to_owned(), Some(folder));
    }

    pub fn add_absent_package(&mut self, name: &str) {
        self.packages.insert(name.to_owned(), None);
    }

    /// Where to look for a source or an include folder. With the prefix `NAME:`, in that package; otherwise in
    /// `kernels/` next to the manifest's folder, then in the manifest's folder. Empty for a package that is not in the
    /// cache.
    pub fn places(&self, name: &str) -> Vec<PathBuf> {
        if let Some((package, path)) = name.split_once(':')
            && let Some(folder) = self.packages.get(package)
        {
            return folder.iter().map(|folder| folder.join(path)).collect();
        }
        let beside = match self.folder.components().next_back() {
            Some(Component::Normal(_)) => self.folder.parent().unwrap_or(Path::new("")).join(KERNELS),
            _ => self.folder.join("..").join(KERNELS),
        };
        vec![beside.join(name), self.folder.join(name)]
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Notes a file or folder that the manifest names. Whether it is in the project.
    pub fn note(&mut self, path: &Path) -> bool {
        let is_inside = self.project.has(path);
        if is_inside {
            self.used.insert(path.to_owned());
        }
        is_inside
    }

    /// Files and folders that were looked up.
    pub fn used(&self) -> &BTreeSet<PathBuf> {
        &self.used
    }

    /// Path of a file whose name is relative to the manifest's folder.
    pub fn path_beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Definitions in a source and the files that it includes, searched in `include_paths` too.
    pub fn source(&mut self, path: &Path, include_paths: &[PathBuf]) -> Rc<CudaSource> {
        let (scanner, used) = (&self.scanner, &mut self.used);
        let read = || {
            let source = CudaSource::read(path, include_paths, scanner);
            used.extend(source.files.iter().cloned());
            Rc::new(source)
        };
        Rc::clone(self.sources.entry((path.to_owned(), include_paths.to_vec())).or_insert_with(read))
    }

    /// Kernels of a source with their parameters; empty if the source cannot be read.
    pub fn signatures(&mut self, path: &Path) -> Rc<Vec<Signature>> {
        let read = || Rc::new(KernelFile::read(path, &[], &[]).unwrap_or_default().kernels);
        Rc::clone(self.signatures.entry(path.to_owned()).or_insert_with(read))
    }
}

/// Hint that lists the places that were searched for a file.
pub fn looked_for(places: &[PathBuf]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("`{}`", place.display())).collect();
    format!("looked for {}", places.join(" and "))
}

/// The system's error message in lower case, without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(folder: &str) -> Vec<PathBuf> {
        Files::new(Path::new(folder), Project::everywhere()).places("a.cu")
    }

    #[test]
    fn kernels_lie_beside_the_folder_of_the_manifest() {
        assert_eq!(places("experiments"), [PathBuf::from("kernels/a.cu"), PathBuf::from("experiments/a.cu")]);
        assert_eq!(places("/x/experiments")[0], PathBuf::from("/x/kernels/a.cu"));
    }

    #[test]
    fn a_manifest_in_the_current_folder_looks_one_up() {
        assert_eq!(places(""), [PathBuf::from("../kernels/a.cu"), PathBuf::from("a.cu")]);
        assert_eq!(places("..")[0], PathBuf::from("../../kernels/a.cu"));
    }
}
