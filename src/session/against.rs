//! `run --against`: measures the variants of a base next to the manifest's own, and compares both.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::conclude::{Unwritten, finish};
use super::ended::{BaseAndNew, Ended};
use super::recorder::Recorder;
use crate::cli::options::RunOptions;
use crate::cli::{BackendChoice, ComparisonFormat, ReachArgs, RunArgs};
use crate::commands::compare::{Output, exit, page, samples_in, short, write, write_page};
use crate::commands::stale::tree::root_of;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_compile::{SourceReader, Toolkit};
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_lang::diagnostics::Diagnostics;
use runner_plan::against::{Contents, Joined, Part, base_name, join};
use runner_plan::{self, Plan, PlanOptions, PlannedOutcome, ResolvedGroup, find_renamed};
use runner_process::programs::Programs;
use runner_report::comparison::Compared;
use runner_report::html::Samples;
use runner_results::analyse::compare::{
    Comparison, DifferenceKind, Differs, Fact, Failed, Options, SourceChange, SourceFile, Sources, Together,
    compare_sources, compare_together,
};
use runner_results::journal::{self, JOURNAL_FILE};
use runner_revision::{File, Files, RevisionError};
use runner_types::{
    BackendKind, CaseKey, Claim, ComparisonRules, CompileUnit, Effect, Event, Held, ManifestChange, ManifestComparison,
    ManifestPart, ManifestState, Records,
};
use runner_workers::RunEnd;

/// A git revision or a folder, with the files that the manifest reaches.
#[derive(Debug)]
pub struct Base {
    /// Suffix for its variants: the commit, or the folder's name.
    label: String,
    /// Name of the base's manifest in messages: `main:experiments/reduce.toml`.
    place: String,
    /// Location of its manifest during the run.
    path: PathBuf,
    manifest: Result<Manifest, Fault>,
    /// Its path in the revision and the path of the run's manifest, if they differ.
    moved: Option<[String; 2]>,
    /// Folder that its files are named relative to; `None` for the checkout of its manifest.
    root: Option<PathBuf>,
    /// Exported files of a revision, removed at the end.
    files: Option<TempDir>,
}

/// Why a base manifest cannot be used.
#[derive(Debug, Clone)]
enum Fault {
    /// The revision does not have the manifest: the experiment is new.
    Absent,
    Invalid(Diagnostics),
}

impl Base {
    /// Finds the manifest in a folder, or else in a revision of the manifest's repository.
    pub fn find(named: &str, manifest: &Path, reach: &ReachArgs) -> Result<Self, Failure> {
        if Path::new(named).is_dir() {
            Self::of_folder(named, manifest, reach)
        } else {
            Self::of_revision(named, manifest, reach)
        }
    }

    fn of_folder(named: &str, manifest: &Path, reach: &ReachArgs) -> Result<Self, Failure> {
        let folder = Path::new(named);
        let relative = runner_revision::path_in_checkout(manifest).map_or_else(|| manifest.to_owned(), PathBuf::from);
        let path = folder.join(&relative);
        if relative.is_absolute() || !path.is_file() {
            return Err(Failure::usage(format!(
                "--against {named}: it has no {}; name a folder that is laid out like the repository",
                relative.display()
            )));
        }
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let label = real.file_name().map_or_else(|| named.to_owned(), |name| name.to_string_lossy().into_owned());
        let project = if reach.allow_outside { Project::everywhere() } else { Project::from_manifest(&path) };
        let manifest = runner_manifest::load_within(&path, project).map_err(Fault::Invalid);
        Ok(Self {
            label,
            place: path.display().to_string(),
            path,
            manifest,
            moved: None,
            root: Some(real),
            files: None,
        })
    }

    fn of_revision(named: &str, manifest: &Path, reach: &ReachArgs) -> Result<Self, Failure> {
        let failure = |error: RevisionError| {
            let message = format!("--against {named}: {error}");
            let is_usage = matches!(error, RevisionError::Unknown { .. } | RevisionError::NoCheckout { .. });
            if is_usage { Failure::usage(message) } else { Failure::environment(message) }
        };
        let folder = manifest.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let files = Files::open(folder, named, &Programs::of_this_machine()).map_err(failure)?;
        let outside = || failure(RevisionError::NoCheckout { dir: folder.to_owned() });
        let here = files.path_of(manifest).ok_or_else(outside)?;
        let moved = moved_from(&files, &here, manifest).map(|there| [there, here.clone()]);
        let relative = moved.as_ref().map_or(here, |[there, _]| there.clone());
        let written = tempfile::Builder::new().prefix("runner-base-").tempdir();
        let written = written.map_err(|error| failure(error.into()))?;
        let path = written.path().join(&relative);
        // The folder contains only files of the revision.
        let project = Project::at(written.path()).map_err(|error| failure(error.into()))?;
        let project = if reach.allow_outside { Project::everywhere() } else { project };
        let manifest = match files.export(&relative, written.path()) {
            Ok(()) => runner_manifest::load_within(&path, project).map_err(Fault::Invalid),
            Err(RevisionError::NoPath { .. }) => Err(Fault::Absent),
            Err(error) => return Err(failure(error)),
        };
        let label = files.commit().chars().take(7).collect();
        let root = fs::canonicalize(written.path()).ok();
        let place = format!("{named}:{relative}");
        Ok(Self { label, place, path, manifest, moved, root, files: Some(written) })
    }

    /// Project of its files; `None` if its manifest cannot be used.
    pub fn project(&self) -> Option<&Project> {
        self.manifest.as_ref().ok().map(|manifest| &manifest.project)
    }

    /// Expands the base's manifest like the run's own. Reports its faults.
    pub fn plan<'a>(&'a self, options: PlanOptions, console: &mut Console) -> PlannedBase<'a> {
        // A variant that the base lacks is new, which is not a fault.
        let PlanOptions { variants, .. } = options;
        let options = PlanOptions { variants: Vec::new(), ..options };
        let expanded = match &self.manifest {
            Ok(manifest) => runner_plan::expand(manifest, &options).map_err(Fault::Invalid),
            Err(fault) => Err(fault.clone()),
        };
        let mut faults = Vec::new();
        if let Err(fault) = &expanded {
            faults.push(self.explain(fault));
            if let Fault::Invalid(diagnostics) = fault {
                let drawn = diagnostics.render_within(false, console.error_width());
                console.say(self.without_folder(&drawn).trim_end());
            }
            console.say(&format!("warning: {}", faults[0]));
        }
        PlannedBase { base: self, plan: expanded.ok(), variants, groups: Vec::new(), faults }
    }

    /// Differences between the base's manifest and the run's, if any, with those of the files that they name.
    fn compared_with(
        &self,
        new: &Manifest,
        renamed: &BTreeMap<String, String>,
        contents: Vec<ManifestChange>,
    ) -> Option<ManifestComparison> {
        let state = match &self.manifest {
            Ok(base) => {
                let changes: Vec<ManifestChange> =
                    runner_experiment::changes(base, new, renamed).into_iter().chain(contents).collect();
                if changes.is_empty() {
                    return None;
                }
                ManifestState::Changed(changes)
            }
            Err(Fault::Absent) => ManifestState::Added,
            Err(fault) => ManifestState::Unknown(self.explain(fault)),
        };
        Some(ManifestComparison::new(new.name.clone(), state))
    }

    fn explain(&self, fault: &Fault) -> String {
        let place = &self.place;
        match fault {
            Fault::Absent => format!("{place} does not exist: every case is new."),
            Fault::Invalid(diagnostics) => {
                let messages: Vec<&str> = diagnostics.items.iter().map(|item| item.message.as_str()).collect();
                let messages = self.without_folder(&messages.join("; "));
                format!("{place} cannot be used, so nothing is compared: {messages}.")
            }
        }
    }

    /// Text with files named as in the revision.
    fn without_folder(&self, text: &str) -> String {
        let text = text.replace(&*self.path.to_string_lossy(), &self.place);
        let folder = self.files.as_ref().map(|folder| format!("{}/", folder.path().display()));
        folder.map_or(text.clone(), |folder| text.replace(&folder, ""))
    }
}

#[derive(Debug)]
pub struct PlannedBase<'a> {
    base: &'a Base,
    /// `None` if its manifest cannot be used.
    pub plan: Option<Plan>,
    /// Variants that `--variant` selects; empty for all.
    variants: Vec<String>,
    /// Groups with its cases, once resolved.
    groups: Vec<ResolvedGroup>,
    faults: Vec<String>,
}

impl PlannedBase<'_> {
    pub fn resolve(&mut self) -> &[ResolvedGroup] {
        if let (Some(plan), Ok(manifest)) = (&self.plan, &self.base.manifest) {
            self.groups = (0..plan.group_count()).map(|index| runner_plan::resolve(manifest, plan, index)).collect();
        }
        &self.groups
    }

    /// Differences between the sources of both sides, whose cases are resolved and not joined yet. `None` if a source
    /// cannot be read.
    pub fn compare_sources(
        &self,
        manifest: &Manifest,
        groups: &[ResolvedGroup],
        toolkit: &Toolkit,
    ) -> Option<Vec<SourceChange>> {
        let base = self.base.manifest.as_ref().ok()?;
        let renamed = find_renamed(&self.groups, groups);
        let of_base = self.base.root.clone().unwrap_or_else(|| root_of(&self.base.path));
        let of_base = read_sources(&self.groups, (base, &of_base), toolkit, &renamed)?;
        let of_new = read_sources(groups, (manifest, &root_of(&manifest.source.path)), toolkit, &BTreeMap::new())?;
        Some(compare_sources(&of_base, &of_new))
    }

    pub fn join(
        self,
        (manifest, sources): (&Manifest, Option<Vec<SourceChange>>),
        groups: &mut [ResolvedGroup],
        recorder: &mut Recorder,
    ) -> BaseRun {
        let mut joined = join(groups, self.groups, &self.base.label);
        if let (Some(plan), Ok(manifest)) = (&self.plan, &self.base.manifest) {
            recorder.expect(manifest, plan, &base_name("", &self.base.label), &joined.renamed);
        }
        joined.gone.retain(|case| self.variants.is_empty() || self.variants.contains(&case.key.variant));
        let of_files = |effect, part, name: &str, [base, new]: [&String; 2]| ManifestChange {
            effect,
            part,
            name: name.to_owned(),
            variants: Vec::new(),
            base: Some(base.clone()),
            new: Some(new.clone()),
            unchecked: None,
        };
        let contents = joined.contents.iter().map(|Contents { is_expected, file, base, new }| {
            let part = if *is_expected { ManifestPart::Check } else { ManifestPart::Contents };
            of_files(Effect::Unordered, part, file, [base, new])
        });
        let moved =
            self.base.moved.iter().map(|moved| of_files(Effect::Neutral, ManifestPart::File, "", moved.each_ref()));
        let manifest = self.base.compared_with(manifest, &joined.renamed, contents.chain(moved).collect());
        BaseRun {
            label: self.base.label.clone(),
            place: self.base.place.clone(),
            joined,
            rules: self
                .base
                .manifest
                .as_ref()
                .map(|manifest| (manifest.claims.clone(), manifest.comparison.clone()))
                .unwrap_or_default(),
            manifest,
            sources,
            faults: self.faults,
        }
    }
}

/// Cases of a base, by the groups of a run.
#[derive(Debug)]
pub struct BaseRun {
    label: String,
    place: String,
    joined: Joined,
    rules: (Vec<Claim>, ComparisonRules),
    manifest: Option<ManifestComparison>,
    sources: Option<Vec<SourceChange>>,
    /// Sentences about the parts of the base that could not be run.
    faults: Vec<String>,
}

impl BaseRun {
    /// Adds the base's variants and cases to the start event of a run.
    pub fn announce(&self, begun: &mut Event) {
        let Event::RunStarted { header, cases, .. } = begun else { return };
        *cases += self.joined.added as u64;
        let with_base = |variant: String| {
            let base = self.joined.variants.contains(&variant).then(|| base_name(&variant, &self.label));
            [variant].into_iter().chain(base)
        };
        header.variants = std::mem::take(&mut header.variants).into_iter().flat_map(with_base).collect();
    }

    pub fn conclude(&self, run: Unwritten<'_>, options: &RunOptions, console: &mut Console) -> Result<Ended, Failure> {
        let (end, destination) = (run.end, run.destination);
        let written = finish(run)?;
        let counts = runner_report::counts(&written.records);
        let stopped = match end {
            RunEnd::Complete => {
                let both = BaseAndNew {
                    together: self.together(&written.records, &destination.dir)?,
                    labels: [self.label.clone(), label(&options.manifest)],
                    names: [self.place.clone(), options.manifest.display().to_string()],
                    manifest: self.manifest.clone(),
                    faults: self.faults.clone(),
                    sources: self.sources.clone(),
                    records: written.records,
                    dir: destination.dir.clone(),
                };
                return Ok(Ended { exit: Exit::Success, counts, both: Some(both) });
            }
            RunEnd::Environment(why) => Err(Failure::environment(why)),
            RunEnd::Interrupted => Ok(Ended { exit: Exit::Interrupted, counts, both: None }),
        };
        if options.json {
            let exit = stopped.as_ref().map_or_else(|failure| failure.exit, |ended| ended.exit);
            console.print(&runner_report::events::end(&written.records, &destination.dir, true, exit as u8))?;
        }
        stopped
    }

    fn together(&self, records: &Records, dir: &Path) -> Result<Together, Failure> {
        let suffix = base_name("", &self.label);
        let history = journal::read(&dir.join(JOURNAL_FILE)).and_then(journal::Contents::into_history);
        let history = history.map_err(Failure::environment)?;
        let mut together = Together::split(history, records, &suffix).map_err(Failure::environment)?;
        let mut refused: HashMap<_, Vec<_>> = HashMap::new();
        for case in &self.joined.refused {
            let what = match case.part {
                Part::Inputs => DifferenceKind::Inputs,
                Part::Check => DifferenceKind::Check,
            };
            let [base, new] = [&case.base, &case.new].map(|text| Fact::Text(text.clone()));
            refused.entry(case.case.clone()).or_default().push(Differs { what, base, new });
        }
        together.refused = refused;
        together.on_new_inputs.clone_from(&self.joined.on_new_inputs);
        together.gone.clone_from(&self.joined.gone);
        together.renamed = self.joined.renamed.iter().map(|(old, new)| (new.clone(), old.clone())).collect();
        let (mut claims, comparison) = self.rules.clone();
        for (old, new) in &self.joined.renamed {
            runner_experiment::rename_in_claims(&mut claims, old, new);
        }
        together.set_base_rules(claims, comparison);
        Ok(together)
    }
}

/// Files that the cases of these groups are compiled from, named relative to `root`. `renamed` maps variants to their
/// names in the new manifest. `None` if a file cannot be read.
fn read_sources(
    groups: &[ResolvedGroup],
    (manifest, root): (&Manifest, &Path),
    toolkit: &Toolkit,
    renamed: &BTreeMap<String, String>,
) -> Option<Sources> {
    let reader = SourceReader::new(manifest.project.clone(), toolkit.include_dirs.clone());
    let (mut units, mut known): (Vec<(&String, &CompileUnit)>, HashSet<_>) = (Vec::new(), HashSet::new());
    for case in groups.iter().flat_map(|group| &group.job.cases) {
        let variant = &case.case.key.variant;
        let variant = renamed.get(variant).unwrap_or(variant);
        for unit in case.body.units() {
            if known.insert((variant, unit)) {
                units.push((variant, unit));
            }
        }
    }
    let mut found = Sources::new();
    for (variant, unit) in units {
        let read = reader.read(unit)?;
        for (path, (_, text)) in read.paths.iter().zip(read.files) {
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let name = real.strip_prefix(root).unwrap_or(&real).display().to_string();
            let file = found.entry(name).or_insert_with(|| SourceFile { text, variants: Vec::new() });
            if !file.variants.contains(variant) {
                file.variants.push(variant.clone());
            }
        }
    }
    Some(found)
}

/// Path in a revision of a manifest that the revision does not have at `path`: the only manifest of the same experiment
/// that no longer exists.
fn moved_from(files: &Files, path: &str, manifest: &Path) -> Option<String> {
    let name = runner_manifest::experiment_name(&fs::read_to_string(manifest).ok()?)?;
    let all = files.list("").ok()?;
    if all.iter().any(|file| file.path == path) {
        return None;
    }
    let root = root_of(manifest);
    let is_gone = |file: &File| is_toml(&file.path) && !root.join(&file.path).exists();
    let gone: Vec<File> = all.into_iter().filter(is_gone).collect();
    let mut alike = Vec::new();
    files
        .read(&gone, |file, content| {
            if runner_manifest::experiment_name(&String::from_utf8_lossy(&content)).as_ref() == Some(&name) {
                alike.push(file.path.clone());
            }
            Ok::<_, RevisionError>(())
        })
        .ok()?;
    alike.pop().filter(|_| alike.is_empty())
}

/// Samples of base and new, from the journal of their run.
fn split_samples(dir: &Path, label: &str, console: &mut Console) -> [Samples; 2] {
    let suffix = base_name("", label);
    let mut both = [Samples::new(), Samples::new()];
    for ((key, regime), rounds) in samples_in(dir, console) {
        match key.variant.strip_suffix(&suffix) {
            Some(variant) => both[0].insert((CaseKey { variant: variant.to_owned(), ..key }, regime), rounds),
            None => both[1].insert((key, regime), rounds),
        };
    }
    both
}

/// Commit of the manifest's checkout; outside a checkout, the manifest's name.
fn label(manifest: &Path) -> String {
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let commit = runner_revision::describe_checkout(folder, &Programs::of_this_machine());
    commit.map_or_else(|| manifest.display().to_string(), |commit| short(&commit))
}

/// Experiments of the base that are not run: those that no longer exist in the folders of the manifests and, of folders
/// that are run as a whole, all that are not run. `compared` has the manifests that were compared, with their paths in
/// the revision. Cases are counted for the device of the run.
fn deleted(named: &str, args: &RunArgs, compared: &BTreeSet<&str>, options: &PlanOptions) -> Vec<ManifestComparison> {
    let whole = args.folders.iter().map(|folder| (folder.as_path(), true));
    let parents = args.manifests.iter().filter_map(|manifest| manifest.parent()).map(|folder| (folder, false));
    let folders: BTreeSet<(&Path, bool)> = whole.chain(parents.filter(|_| args.folders.is_empty())).collect();
    let mut found: Vec<ManifestComparison> = Vec::new();
    for (folder, is_whole) in folders {
        let there = if folder.is_dir() { folder } else { Path::new(".") };
        // A folder as base has no history, so deletions are unknown.
        let Ok(files) = Files::open(there, named, &Programs::of_this_machine()) else { continue };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Some(inside) =
            files.path_of(&folder.join("any")).and_then(|path| path.strip_suffix("any").map(str::to_owned))
        else {
            continue;
        };
        let run: BTreeSet<String> = args.manifests.iter().filter_map(|manifest| files.path_of(manifest)).collect();
        let is_gone = |file: &File| {
            let name = file.path.strip_prefix(&inside).filter(|name| is_toml(name));
            name.is_some_and(|name| is_whole || (!name.contains('/') && !folder.join(name).exists()))
                && !compared.contains(file.path.as_str())
                && !run.contains(&file.path)
        };
        let listed: Vec<File> = files.list(&inside).unwrap_or_default().into_iter().filter(is_gone).collect();
        // A failed read only hides the files after it.
        let _ = files.read(&listed, |file, content| {
            let is_known = found.iter().any(|known| known.experiment == file.path);
            if !is_known && runner_manifest::is_manifest(&String::from_utf8_lossy(&content)) {
                let held = held(&files, &file.path, options);
                found.push(ManifestComparison {
                    held,
                    ..ManifestComparison::new(file.path.clone(), ManifestState::Deleted)
                });
            }
            Ok::<_, RevisionError>(())
        });
    }
    found
}

/// Contents of a revision's manifest; `None` if it cannot be used.
fn held(files: &Files, manifest: &str, options: &PlanOptions) -> Option<Held> {
    let folder = tempfile::Builder::new().prefix("runner-deleted-").tempdir().ok()?;
    files.export(manifest, folder.path()).ok()?;
    let project = Project::at(folder.path()).ok()?;
    let manifest = runner_manifest::load_within(&folder.path().join(manifest), project).ok()?;
    let plan = runner_plan::expand(&manifest, options).ok()?;
    let cases = plan.cells().iter().filter(|cell| cell.outcome == PlannedOutcome::Kept).count();
    Some(Held { cases, claims: manifest.claims.len() })
}

/// Labels of both sides if no experiment was run.
fn labels_without_runs(args: &RunArgs) -> [String; 2] {
    let named = args.against.against.clone().unwrap_or_default();
    let base = Files::open(Path::new("."), &named, &Programs::of_this_machine());
    [base.map_or(named, |files| short(files.commit())), label(Path::new("here.toml"))]
}

/// Compares base and new, with one verdict over all runs.
pub fn compare(
    runs: Vec<BaseAndNew>,
    failed: Vec<Failed>,
    args: &RunArgs,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let against = &args.against;
    let options = Options {
        threshold: against.threshold,
        allow: Vec::new(),
        gate_counters: against.gate_counters,
        inform: Vec::new(),
        strict: args.gate.strict,
    };
    let (mut together, mut places, mut faults, mut reports) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut manifests, mut sources) = (Vec::new(), Vec::new());
    let labels = runs.first().map_or_else(|| labels_without_runs(args), |run| run.labels.clone());
    for run in runs {
        together.push(run.together);
        places.push(run.names);
        faults.extend(run.faults);
        sources.push(run.sources);
        manifests.extend(run.manifest);
        reports.push((run.records, run.dir));
    }
    if let Some(named) = &against.against {
        let options = reports.first().map_or_else(
            || {
                let is_simulated = args.target.backend == BackendChoice::Sim;
                PlanOptions::for_backend(if is_simulated { BackendKind::Sim } else { BackendKind::Cuda })
            },
            |(records, _)| PlanOptions {
                device: Some(records.environment.device.clone()),
                ..PlanOptions::for_backend(records.header.backend)
            },
        );
        let before = format!("{named}:");
        let compared = places.iter().filter_map(|[base, _]| base.strip_prefix(&before)).collect();
        manifests.extend(deleted(named, args, &compared, &options));
    }
    // No manifest on either side.
    if together.is_empty() && failed.is_empty() && manifests.is_empty() {
        return Ok(Exit::Success);
    }
    let mut found = Comparison { manifests, failed, ..compare_together(&together, &options) };
    found.reports.iter_mut().zip(sources).for_each(|(report, sources)| report.sources = sources);
    let names = match places.as_slice() {
        [only] => only.clone(),
        all => [against.against.clone().unwrap_or_default(), format!("{} manifests", all.len())],
    };
    let compared = Compared { comparison: &found, names: &names, labels: &labels, places: &places, faults: &faults };
    let page = page(against.markdown.as_deref(), against.markdown_limit);
    let samples = match against.format {
        ComparisonFormat::Html => reports.iter().map(|(_, dir)| split_samples(dir, &labels[0], console)).collect(),
        _ => Vec::new(),
    };
    if args.json {
        let line = runner_report::events::compared(compared).map_err(Failure::environment)?;
        console.print(&line)?;
        write_page(compared, page, console)?;
    } else {
        write(compared, &Output { format: against.format, out: None, page, samples: &samples }, console)?;
    }
    let exit = exit(found.gate());
    for (records, dir) in reports {
        console.say(&format!("report: {}", dir.join(runner_report::REPORT_FILE).display()));
        if args.json {
            console.print(&runner_report::events::end(&records, &dir, true, exit as u8))?;
        }
    }
    Ok(exit)
}

fn is_toml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "toml")
}
