//! The cases of a report as a file tree defines them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::Placed;
use runner_compile::{SourceReader, Sources, Toolkit};
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_lang::diagnostics::Diagnostics;
use runner_plan::{self, PlanOptions};
use runner_results::analyse::stale::{self, Defined, Launch};
use runner_revision::{Files, RevisionError};
use runner_types::{
    BackendKind, BlockPlan, BodyPlan, CaseJob, CaseKey, CaseRecord, CompileUnit, FINALISTS, GridPlan, LaunchPlan,
    Records, SourceText,
};

/// Location of a manifest.
#[derive(Debug, Clone)]
pub struct Site {
    /// Folder that paths in messages are relative to.
    root: PathBuf,
    manifest: PathBuf,
    project: Project,
}

impl Site {
    /// The manifest at the path given to the run's command, for a report outside any checkout.
    pub fn of_command(records: &Records) -> Self {
        let manifest = PathBuf::from(&records.header.manifest_path);
        Self { root: root_of(&manifest), project: Project::from_manifest(&manifest), manifest }
    }

    /// The measured manifest: its text comes from the records, the files that it names from this tree.
    pub fn measured(&self, records: &Records) -> Result<Manifest, String> {
        let text = records.header.manifest_text.clone();
        let source = Arc::new(SourceText { path: self.manifest.clone(), text });
        let read = runner_manifest::parse_within(&source, self.project.clone());
        read.map_err(|found| first_fault(&records.header.manifest_path, &found))
    }
}

fn first_fault(manifest: &str, faults: &Diagnostics) -> String {
    let first = faults.items.first().map(|fault| fault.message.as_str()).unwrap_or_default();
    format!("{manifest}: {first}")
}

/// Finds the manifest of a report in the folders around it; `None` if there is neither a manifest nor a checkout.
pub fn around(report: Placed<'_>) -> Result<Option<Site>, String> {
    let named = &report.records.header.manifest_path;
    let absolute = std::path::absolute(report.place).unwrap_or_else(|_| PathBuf::from(report.place));
    let Some(above) = absolute.ancestors().find(|above| above.join(named).is_file()) else {
        let is_checkout = runner_revision::path_in_checkout(&absolute).is_some();
        return if is_checkout { Err(lacks(named)) } else { Ok(None) };
    };
    let manifest = above.join(named);
    let root = root_of(&manifest);
    Ok(Some(Site { root, project: Project::from_manifest(&manifest), manifest }))
}

/// Root of the manifest's checkout or, without one, its project folder.
pub fn root_of(manifest: &Path) -> PathBuf {
    let inside = runner_revision::path_in_checkout(manifest);
    let depth = inside.map(|path| Path::new(&path).components().count());
    let real = fs::canonicalize(manifest).ok();
    let root = depth.zip(real).and_then(|(depth, real)| real.ancestors().nth(depth).map(Path::to_owned));
    root.unwrap_or_else(|| Project::folder_of(manifest))
}

/// Files of revisions, exported to temporary folders: each manifest with everything that it reaches.
#[derive(Debug, Default)]
pub struct Exports {
    folders: RefCell<HashMap<String, TempDir>>,
    /// Exports by commit and path.
    known: RefCell<HashMap<(String, String), Result<Site, String>>>,
}

impl Exports {
    /// Location of a report's manifest as of a revision.
    pub fn site(&self, files: &Files, report: Placed<'_>) -> Result<Site, String> {
        let named = &report.records.header.manifest_path;
        for above in Path::new(report.place).ancestors() {
            let Some(path) = above.join(named).to_str().map(str::to_owned) else { continue };
            let key = (files.commit().to_owned(), path);
            if let Some(known) = self.known.borrow().get(&key) {
                return known.clone();
            }
            let Some(site) = self.export(files, &key.1).transpose() else { continue };
            self.known.borrow_mut().insert(key, site.clone());
            return site;
        }
        Err(lacks(named))
    }

    /// Exports a revision's manifest; `None` if the revision does not have it.
    fn export(&self, files: &Files, path: &str) -> Result<Option<Site>, String> {
        let mut folders = self.folders.borrow_mut();
        if !folders.contains_key(files.commit()) {
            let folder = tempfile::Builder::new().prefix("runner-tree-").tempdir();
            let folder = folder.map_err(|error| format!("cannot create a temporary folder: {error}"))?;
            folders.insert(files.commit().to_owned(), folder);
        }
        let root = folders.get(files.commit()).map(TempDir::path).ok_or("no temporary folder")?;
        let root = fs::canonicalize(root).map_err(|error| error.to_string())?;
        match files.export(path, &root) {
            Ok(()) => {}
            Err(RevisionError::NoPath { .. }) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        let project = Project::at(&root).map_err(|error| error.to_string())?;
        Ok(Some(Site { manifest: root.join(path), root, project }))
    }
}

fn lacks(manifest: &str) -> String {
    format!("there is no {manifest}")
}

/// A case with the files that it is compiled from, named relative to the root.
#[derive(Debug)]
pub struct TreeCase {
    pub job: CaseJob,
    defined: Defined,
    texts: HashMap<String, Arc<str>>,
}

impl TreeCase {
    /// Files that differ in `now`.
    pub fn changed_files(&self, now: &Self) -> BTreeSet<String> {
        let names = self.texts.keys().chain(now.texts.keys());
        names.filter(|name| self.texts.get(*name) != now.texts.get(*name)).cloned().collect()
    }
}

/// Every case that a manifest defines for a report's device; `None` for an excluded one.
#[derive(Debug)]
pub struct Definition {
    cases: HashMap<CaseKey, Option<TreeCase>>,
    site: Site,
}

impl Definition {
    /// Reads the manifest and the sources. Fails if the manifest is invalid or a source cannot be read.
    pub fn read(site: Site, records: &Records, toolkit: Option<&Toolkit>) -> Result<Self, String> {
        let header = &records.header;
        let faults = |faults: &Diagnostics| first_fault(&header.manifest_path, faults);
        let manifest =
            runner_manifest::load_within(&site.manifest, site.project.clone()).map_err(|found| faults(&found))?;
        let is_of_search = header.narrowed.as_deref() == Some(FINALISTS);
        let manifest = if is_of_search { manifest.with_searched_axes() } else { manifest };
        let mut plan = runner_plan::expand(&manifest, &options(records)).map_err(|found| faults(&found))?;
        if header.narrowed.is_some() {
            plan.keep(&records.cases.iter().map(|record| record.case.key.clone()).collect());
        }
        let headers = toolkit.map(|toolkit| toolkit.include_dirs.clone()).unwrap_or_default();
        let mut read = Reading {
            root: &site.root,
            folders: [&site.manifest, Path::new(&header.manifest_path)].map(folder_of),
            reader: SourceReader::new(site.project.clone(), headers),
            units: HashMap::new(),
        };
        let mut cases = HashMap::new();
        for index in 0..plan.group_count() {
            let group = runner_plan::resolve(&manifest, &plan, index);
            cases.extend(group.settled.into_iter().map(|(case, _)| (case.key, None)));
            for job in group.job.cases {
                cases.insert(job.case.key.clone(), Some(read.case(job)?));
            }
        }
        Ok(Self { cases, site })
    }

    pub const fn project(&self) -> &Project {
        &self.site.project
    }

    /// Rewrites a message so that its files are relative to the root.
    pub fn without_root(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.site.root.display()), "")
    }

    pub fn case(&self, key: &CaseKey) -> Option<&TreeCase> {
        self.cases.get(key)?.as_ref()
    }

    /// The case of a record, if it is still the case that was measured.
    pub fn measured(&self, record: &CaseRecord) -> Option<&TreeCase> {
        let then = record.hashes.as_ref()?;
        self.case(&record.case.key).filter(|case| case.defined.has_code_of(then))
    }

    /// All cases, in the form that the judgement needs.
    pub fn defined(&self) -> stale::Tree {
        let defined = |case: &Option<TreeCase>| case.as_ref().map(|case| case.defined.clone());
        stale::Tree(self.cases.iter().map(|(key, case)| (key.clone(), defined(case))).collect())
    }
}

/// Plan options of the report, except those that only select cases.
fn options(records: &Records) -> PlanOptions {
    let header = &records.header;
    let words = |text: &Option<String>| text.as_deref().and_then(shlex::split).unwrap_or_default();
    let narrowed = words(&header.narrowed);
    let is_set = |pair: &&[String]| pair[0] == "--set";
    let set = narrowed.windows(2).filter(is_set).map(|pair| pair[1].clone()).collect();
    let has_small_sizes = words(&header.command).windows(2).any(|pair| pair == ["--sizes", "sim"]);
    let sizes = if has_small_sizes { BackendKind::Sim } else { header.backend };
    let device = Some(records.environment.device.clone());
    PlanOptions { device, sizes, set, ..PlanOptions::for_backend(header.backend) }
}

/// Reads the sources of cases, each unit only once.
struct Reading<'a> {
    root: &'a Path,
    /// The manifest's folder in this tree, and as named in the records.
    folders: [String; 2],
    reader: SourceReader,
    units: HashMap<CompileUnit, Arc<Unit>>,
}

/// A unit with its files, named relative to the root.
struct Unit {
    hash: String,
    hash_of_found: String,
    options: String,
    texts: HashMap<String, Arc<str>>,
}

impl Reading<'_> {
    fn case(&mut self, mut job: CaseJob) -> Result<TreeCase, String> {
        // The text of a check contains the folder of its expected-values file, as given on the command line.
        let [here, then] = &self.folders;
        for check in &mut job.checks {
            check.text = check.text.replace(here, then);
        }
        let units = job.body.units().into_iter().map(|unit| self.unit(unit));
        let units: Vec<Arc<Unit>> = units.collect::<Result<_, _>>()?;
        let each = |part: fn(&Unit) -> &str| units.iter().map(|unit| part(unit)).collect::<Vec<_>>();
        let texts: HashMap<String, Arc<str>> =
            units.iter().flat_map(|unit| &unit.texts).map(|(name, text)| (name.clone(), Arc::clone(text))).collect();
        let hashes = |sources: &[&str]| runner_plan::hash_uncompiled(&job, sources, &each(|unit| &unit.options));
        let defined = Defined {
            hashes: hashes(&each(|unit| &unit.hash)),
            source_of_found: hashes(&each(|unit| &unit.hash_of_found)).source,
            launches: match &job.body {
                BodyPlan::Launches(launches) => launches.iter().map(launch).collect(),
                _ => Vec::new(),
            },
            work: job.work,
            sources: texts.keys().cloned().collect(),
        };
        Ok(TreeCase { job, defined, texts })
    }

    fn unit(&mut self, unit: &CompileUnit) -> Result<Arc<Unit>, String> {
        if let Some(known) = self.units.get(unit) {
            return Ok(Arc::clone(known));
        }
        let Some(Sources { hash, hash_of_found, options, files, paths, .. }) = self.reader.read(unit) else {
            return Err(format!("{} cannot be read", self.name(&unit.source)));
        };
        let names = paths.iter().map(|path| self.name(path));
        let texts = names.zip(files.into_iter().map(|(_, text)| text)).collect();
        let read = Arc::new(Unit { hash, hash_of_found, options, texts });
        self.units.insert(unit.clone(), Arc::clone(&read));
        Ok(read)
    }

    /// Name of a file relative to the root.
    fn name(&self, path: &Path) -> String {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real.strip_prefix(self.root).unwrap_or(&real).display().to_string()
    }
}

/// Folder of a manifest with a trailing `/`; empty for the working directory.
fn folder_of(manifest: &Path) -> String {
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map(|folder| format!("{}/", folder.display())).unwrap_or_default()
}

fn launch(LaunchPlan { label, grid, block, settings, .. }: &LaunchPlan) -> Launch {
    Launch {
        label: label.clone(),
        grid: if let GridPlan::Fixed(grid) = grid { Some(*grid) } else { None },
        block: if let BlockPlan::Fixed(block) = block { Some(*block) } else { None },
        shared: settings.shared_bytes(),
    }
}
