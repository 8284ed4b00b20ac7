//! Finds what the cases of a job need: units to compile, and files.
//!
//! The tasks only get copies of these files, so the list must include everything that a source may read.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::cli::TrustArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::session::HostCode;
use runner_compile::{Sources, sources};
use runner_cuda_source::cpp;
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_plan::{self, PlanOptions, ResolvedGroup};
use runner_types::{CaseJob, CompileUnit, ExpectPlan, KernelCompiler, PrintedPlan};

/// Extensions of files that a source may include under a name that is known only at compile time.
const INCLUDED: [&str; 10] = ["h", "hh", "hpp", "hxx", "cuh", "cu", "c", "cpp", "inc", "inl"];

/// Maximum number of possibly included files to copy from a folder.
const MOST_INCLUDED: usize = 10_000;

/// Minimum number of groups that a thread resolves.
const GROUPS_OF_A_THREAD: usize = 1000;

#[derive(Debug, Default)]
pub struct Needs {
    /// Units to compile, sorted within each manifest.
    pub units: Vec<CompileUnit>,
    /// All files that are read, except installed ones.
    pub files: BTreeSet<PathBuf>,
    /// Folders that must exist, even without a file that is read.
    pub folders: BTreeSet<PathBuf>,
    /// Whether there is host code, which the user has allowed.
    pub has_host_code: bool,
    /// Hash of each unit's sources.
    pub hashes: Vec<Option<String>>,
}

impl Needs {
    /// Finds what the cases of manifests need, and asks for consent to host code. `headers` are the compilers' own
    /// folders.
    pub fn find(
        manifests: &[(&Path, Manifest)],
        options: &PlanOptions,
        headers: &[PathBuf],
        trust: &TrustArgs,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let mut needs = Self::default();
        for (path, manifest) in manifests {
            needs.files.insert(path.to_path_buf());
            let (folders, files) = manifest.files.iter().cloned().partition::<Vec<_>, _>(|path| path.is_dir());
            needs.files.extend(files);
            needs.folders.extend(folders);
            let plan = runner_plan::expand(manifest, options).map_err(|faults| console.faults(&faults))?;
            // Groups are not kept: a large matrix has too many.
            let groups = (0..plan.group_count()).into_par_iter().with_min_len(GROUPS_OF_A_THREAD);
            let groups = groups.map(|index| runner_plan::resolve(manifest, &plan, index));
            let GroupNeeds { units, read, of_host } =
                groups.fold(GroupNeeds::default, GroupNeeds::add).reduce(GroupNeeds::default, GroupNeeds::join);
            needs.files.extend(read.files);
            needs.allow((path, manifest), &of_host, headers, trust, console)?;
            let mut units: Vec<CompileUnit> = units.into_iter().collect();
            units.sort();
            for unit in units {
                let found = sources(&unit, &manifest.project, headers);
                needs.add_sources(&unit, found.as_ref());
                needs.units.push(unit);
                needs.hashes.push(found.map(|found| found.hash));
            }
        }
        // Missing files are reported by their cases.
        needs.files.retain(|file| file.is_file());
        Ok(needs)
    }

    /// A unit whose sources differ in the current directory, which is the tasks' working directory.
    pub fn differing(&self, project: &Project, headers: &[PathBuf]) -> Option<&CompileUnit> {
        let hash = |unit: &CompileUnit| sources(unit, project, headers).map(|found| found.hash);
        self.units.iter().zip(&self.hashes).find(|(unit, before)| hash(unit) != **before).map(|(unit, _)| unit)
    }

    fn allow(
        &mut self,
        (path, manifest): (&Path, &Manifest),
        groups: &[ResolvedGroup],
        headers: &[PathBuf],
        trust: &TrustArgs,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Some(code) = HostCode::find(groups.iter().flat_map(|group| &group.job.cases), &manifest.project, headers)
        else {
            return Ok(());
        };
        self.has_host_code = true;
        code.ask((&Project::folder_of(path), path), trust.allow_host_code, console)
    }

    fn add_sources(&mut self, unit: &CompileUnit, found: Option<&Sources>) {
        self.files.extend([&unit.source].into_iter().chain(&unit.linked).filter(|file| file.is_file()).cloned());
        self.files.extend(found.into_iter().flat_map(|found| found.paths.iter().cloned()));
        if found.is_some_and(|found| !found.is_whole) {
            let folders = unit.source.parent().into_iter().chain(unit.include_paths.iter().map(PathBuf::as_path));
            for folder in folders {
                add_included(folder, &mut self.files);
            }
        }
    }
}

/// Needs of the cases in some groups.
#[derive(Debug, Default)]
struct GroupNeeds {
    units: HashSet<CompileUnit>,
    read: Read,
    /// Groups with host code not seen in an earlier group.
    of_host: Vec<ResolvedGroup>,
}

impl GroupNeeds {
    fn add(mut self, group: ResolvedGroup) -> Self {
        let mut has_new_host_code = false;
        for case in &group.job.cases {
            for unit in case.body.units() {
                if !self.units.contains(unit) {
                    has_new_host_code |= unit.plugin.is_some() || unit.compiler != KernelCompiler::Nvrtc;
                    self.units.insert(unit.clone());
                }
            }
            has_new_host_code |= self.read.add(case);
        }
        if has_new_host_code {
            self.of_host.push(group);
        }
        self
    }

    fn join(mut self, after: Self) -> Self {
        self.units.extend(after.units);
        self.read.files.extend(after.read.files);
        self.read.code.extend(after.read.code);
        self.of_host.extend(after.of_host);
        self
    }
}

/// Files that cases read without compiling them.
#[derive(Debug, Default)]
struct Read {
    files: BTreeSet<PathBuf>,
    /// The files among them that are references in Python or C++.
    code: HashSet<PathBuf>,
}

impl Read {
    /// Adds the files of a case. Returns whether one is a new reference.
    fn add(&mut self, case: &CaseJob) -> bool {
        let fills = case.buffers.iter().filter_map(|buffer| buffer.fill.as_ref()?.file());
        let expected = case.checks.iter().filter_map(|check| check.expect.file());
        let printed = case.printed.iter().filter_map(|printed| match printed {
            PrintedPlan::File(path) => Some(path.as_path()),
            PrintedPlan::Lines(_) => None,
        });
        for path in fills.chain(expected).chain(printed) {
            if !self.files.contains(path) {
                self.files.insert(path.to_owned());
            }
        }
        let mut has_new = false;
        for check in &case.checks {
            if let ExpectPlan::Python(function) | ExpectPlan::Cpp(function) = &check.expect
                && !self.code.contains(&function.path)
            {
                self.code.insert(function.path.clone());
                has_new = true;
                // An unreadable source is reported by its cases.
                self.files.extend(cpp::read(&function.path).map(|hashed| hashed.files).unwrap_or_default());
            }
        }
        has_new
    }
}

/// Adds all files below a folder that a source may include.
fn add_included(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) && entry.file_name() != ".git" {
                open.push(path);
            } else if kind.is_ok_and(|kind| kind.is_file())
                && path.extension().is_some_and(|extension| INCLUDED.iter().any(|known| extension == *known))
                && count < MOST_INCLUDED
            {
                files.insert(path);
                count += 1;
            }
        }
    }
}
