//! `runner try`: compares kernels without a manifest.

mod remedy;

use std::path::Path;
use std::sync::Arc;

use super::kernels::{
    Names, SizesFrom, compiled, draft, experiment_name, file_of, is_guess, names_kernels, reference_name, source_name,
    write_reference,
};
use crate::cli::TryArgs;
use crate::cli::options::{RunOptions, TRIED};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use crate::session::{ManifestRun, interrupt, run_one};
use remedy::Remedy;
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_manifest::draft::Draft;
use runner_results::journal;
use runner_types::{CaseRecord, Outcome, SourceText};
use runner_workers::Interrupt;

pub fn run(args: &TryArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    let name = experiment_name(&file_of(&args.sources[0]));
    if let Some(path) =
        args.sources.iter().filter_map(|source| std::path::absolute(source).ok()).find(|path| path.to_str().is_none())
    {
        return Err(Failure::usage(format!("the path {} is not UTF-8: rename the file or folder", path.display())));
    }
    let absolute =
        |source: &Path| std::path::absolute(source).unwrap_or_else(|_| source.to_owned()).display().to_string();
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::environment(format!("cannot create a temporary folder: {error}; set TMPDIR to a writable folder"))
    })?;
    let of_reference = folder.path().join("reference.cpp");
    let reference = args.trust.allow_host_code.then(|| of_reference.display().to_string());
    let names = Names { experiment: &name, source: &absolute, reference };
    let interrupt = interrupt()?;
    let trial = Trial { names: &names, folder: folder.path(), of_reference: &of_reference, interrupt: &interrupt };
    let chosen = trial.choose(args, console)?;
    let Chosen { args, drafted, manifest, differing, failing } = &chosen;
    if let Some(path) = &args.save {
        let experiment = experiment_name(path);
        let reference = args.trust.allow_host_code.then(|| reference_name(path));
        let names = Names { experiment: &experiment, source: &|source| source_name(source, path), reference };
        let saved = draft(&args.sources, &args.kernels, &names, chosen.sizes())?;
        write_new("--save", path, &saved.commented(), false)?;
        write_reference("--save", path, &saved, (false, console))?;
        console.say(&format!("wrote {}", path.display()));
    }
    for line in drafted.assumptions() {
        console.say(&line);
    }
    trial.write_reference(drafted)?;
    let options = RunOptions::of_try(args, folder.path())?;
    let ended = run_one(ManifestRun { manifest, options: &options }, &interrupt, console)?;
    let baseline = drafted.baseline().unwrap_or_default();
    if let Some(fault) = failing {
        console.print(&format!("With sizes other than the launch's, it fails: {fault}\n"))?;
    }
    if let [first, ..] = &differing[..] {
        let names: Vec<String> = differing.iter().map(|name| format!("`{name}`")).collect();
        let (give, they) = if differing.len() == 1 { ("gives", "it does") } else { ("give", "they do") };
        console.print(&format!(
            "{} {give} other results than `{baseline}`, or {} with its arguments: if {they} the same, compare with {} {}.\n",
            names.join(", "),
            if differing.len() == 1 { "fails" } else { "fail" },
            option(baseline),
            option(first)
        ))?;
    }
    if ended.exit == Exit::CaseFailed && !args.display.quiet {
        let manifest_of = |args: &TryArgs| trial.drafted(args, SizesFrom::Kernels).ok();
        let remedy = Remedy { args, manifest_of: &manifest_of, interrupt: &interrupt };
        let reports = args.out.as_deref().unwrap_or(folder.path());
        if let Some(sentence) = remedy.find(drafted, reports, console) {
            console.print(&format!("{sentence}\n"))?;
        } else if drafted.compares() && args.sources.len() == 1 && !names_kernels(&args.sources, &args.kernels) {
            console.print(&format!(
                "Kernels with the same parameters were compared. If they do different things, try one alone with -k \
                 {baseline}.\n"
            ))?;
        }
    }
    Ok(ended.exit)
}

/// Option that names a kernel, quoted for a shell.
fn option(kernel: &str) -> String {
    let is_plain = kernel.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_plain { format!("-k {kernel}") } else { format!("-k '{kernel}'") }
}

/// What is run and shown.
struct Chosen {
    args: TryArgs,
    drafted: Draft,
    manifest: Manifest,
    /// Kernels with the same parameters that do not compute what the first one does.
    differing: Vec<String>,
    /// How the kernels fail with sizes that the source's launch does not pass.
    failing: Option<String>,
}

impl Chosen {
    fn sizes(&self) -> SizesFrom {
        if self.failing.is_some() { SizesFrom::Launch } else { SizesFrom::Kernels }
    }
}

struct Trial<'a> {
    names: &'a Names<'a>,
    folder: &'a Path,
    of_reference: &'a Path,
    interrupt: &'a Interrupt,
}

impl Trial<'_> {
    fn drafted(&self, args: &TryArgs, sizes: SizesFrom) -> Result<(Draft, Manifest), Failure> {
        let drafted = draft(&args.sources, &args.kernels, self.names, sizes)?;
        self.write_reference(&drafted)?;
        let project = project(args)?.with_folder(self.folder);
        let source = Arc::new(SourceText { path: TRIED.into(), text: drafted.text() });
        let manifest = runner_manifest::parse_within(&source, project)
            .map_err(|faults| Console::new(crate::cli::ColorChoice::Never).faults(&faults))?;
        Ok((drafted, manifest))
    }

    /// Writes the reference of the draft that is parsed or run next.
    fn write_reference(&self, drafted: &Draft) -> Result<(), Failure> {
        drafted.reference().map_or(Ok(()), |(_, text)| write_new("TMPDIR", self.of_reference, text, true))
    }

    /// Chooses kernels and sizes. Kernels that only share their parameters are compared if they give the same results,
    /// and sizes of the source's launch are used if the kernels fail with others.
    fn choose(&self, args: &TryArgs, console: &mut Console) -> Result<Chosen, Failure> {
        let (drafted, manifest) = self.drafted(args, SizesFrom::Kernels)?;
        let mut chosen = Chosen { args: args.clone(), drafted, manifest, differing: Vec::new(), failing: None };
        // With other kernels, the sizes may be others, too.
        let mut may_differ = is_guess(&args.sources, &args.kernels, &chosen.drafted);
        while may_differ && chosen.drafted.compares() {
            may_differ = self.leave_out(&mut chosen, console)?;
        }
        let exact = self.drafted(&chosen.args, SizesFrom::Launch).ok().filter(|(drafted, _)| drafted.is_of_launch());
        if let Some((drafted, manifest)) = exact
            && let Some(fault) = fault(&self.probe(&chosen.args, (&chosen.drafted, &chosen.manifest), console)?)
            && fault_is_absent(&self.probe(&chosen.args, (&drafted, &manifest), console)?)
        {
            (chosen.drafted, chosen.manifest, chosen.failing) = (drafted, manifest, Some(fault));
        }
        Ok(chosen)
    }

    /// Leaves out the kernels that do not give the results of the first one, or all others if that fails. Returns whether
    /// there were any.
    fn leave_out(&self, chosen: &mut Chosen, console: &mut Console) -> Result<bool, Failure> {
        let cases = self.probe(&chosen.args, (&chosen.drafted, &chosen.manifest), console)?;
        let is_same = |name: &str| !cases.iter().any(|case| case.case.key.variant == name && case.outcome.is_failure());
        let names: Vec<String> = chosen.drafted.names().map(str::to_owned).collect();
        let Some((first, others)) = names.split_first() else { return Ok(false) };
        let is_first_sound = is_same(first);
        let (same, differing): (Vec<&String>, Vec<&String>) =
            others.iter().partition(|name| is_first_sound && is_same(name));
        if differing.is_empty() {
            return Ok(false);
        }
        if is_first_sound {
            chosen.differing.extend(differing.into_iter().cloned());
        }
        chosen.args.kernels.kernel = std::iter::once(first).chain(same).cloned().collect();
        (chosen.drafted, chosen.manifest) = self.drafted(&chosen.args, SizesFrom::Kernels)?;
        Ok(true)
    }

    /// Outcomes of a silent run.
    fn probe(
        &self,
        args: &TryArgs,
        (drafted, manifest): (&Draft, &Manifest),
        console: &mut Console,
    ) -> Result<Vec<CaseRecord>, Failure> {
        self.write_reference(drafted)?;
        let folder = tempfile::tempdir().map_err(|error| {
            Failure::environment(format!("cannot create a temporary folder: {error}; set TMPDIR to a writable folder"))
        })?;
        let options = RunOptions::of_probe(args, folder.path(), &[])?;
        run_one(ManifestRun { manifest, options: &options }, self.interrupt, console)?;
        let records = journal::read_records(&folder.path().join(journal::RECORDS_FILE));
        Ok(records.map(|records| records.cases).unwrap_or_default())
    }
}

/// How the first case that a size may have made fail has failed.
fn fault(cases: &[CaseRecord]) -> Option<String> {
    cases.iter().find_map(|case| match &case.outcome {
        Outcome::Trap { message } => Some(message.clone()),
        Outcome::TimedOut { .. } => Some("it does not end in time".to_owned()),
        Outcome::Invalid { limit } => Some(limit.clone()),
        Outcome::OutOfMemory { .. } => Some("its buffers do not fit in memory".to_owned()),
        _ => None,
    })
}

fn fault_is_absent(cases: &[CaseRecord]) -> bool {
    !cases.is_empty() && !cases.iter().any(|case| case.outcome.is_failure())
}

/// Project with all sources on the command line; it must contain them and everything that they include.
fn project(args: &TryArgs) -> Result<Project, Failure> {
    let mut projects = Vec::new();
    for source in &args.sources {
        projects.push(args.trust.reach.project_of_source(&compiled(&file_of(source)))?);
    }
    for folder in &args.kernels.include_paths {
        let project = Project::at(folder)
            .map_err(|error| Failure::usage(format!("--include-path {}: {error}; name a folder", folder.display())))?;
        projects.push(project);
    }
    Ok(projects.into_iter().reduce(|all, project| all.and(&project)).unwrap_or_default())
}
