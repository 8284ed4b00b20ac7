//! `runner try`: compares kernels without a manifest.

mod remedy;

use std::path::Path;
use std::sync::Arc;

use super::kernels::{
    Names, draft, experiment_name, file_of, names_kernels, reference_name, source_name, write_reference,
};
use crate::cli::TryArgs;
use crate::cli::options::{RunOptions, TRIED};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use crate::session::{ManifestRun, interrupt, run_one};
use remedy::Remedy;
use runner_files::project::Project;
use runner_manifest::draft::Draft;
use runner_types::SourceText;

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
    let drafted = draft(&args.sources, &args.kernels, &names)?;
    write_reference("TMPDIR", &of_reference, &drafted, (true, console))?;
    let project = project(args)?.with_folder(folder.path());
    let parse = |drafted: &Draft| {
        let source = Arc::new(SourceText { path: TRIED.into(), text: drafted.text() });
        runner_manifest::parse_within(&source, project.clone())
    };
    let manifest = parse(&drafted).map_err(|faults| console.faults(&faults))?;
    if let Some(path) = &args.save {
        let experiment = experiment_name(path);
        let reference = args.trust.allow_host_code.then(|| reference_name(path));
        let names = Names { experiment: &experiment, source: &|source| source_name(source, path), reference };
        let saved = draft(&args.sources, &args.kernels, &names)?;
        write_new("--save", path, &saved.commented(), false)?;
        write_reference("--save", path, &saved, (false, console))?;
        console.say(&format!("wrote {}", path.display()));
    }
    for line in drafted.assumptions() {
        console.say(&line);
    }
    let options = RunOptions::of_try(args, folder.path())?;
    let interrupt = interrupt()?;
    let ended = run_one(ManifestRun { manifest: &manifest, options: &options }, &interrupt, console)?;
    if ended.exit == Exit::CaseFailed && !args.display.quiet {
        let manifest_of = |args: &TryArgs| {
            let drafted = draft(&args.sources, &args.kernels, &names).ok()?;
            let manifest = parse(&drafted).ok()?;
            Some((drafted, manifest))
        };
        let remedy = Remedy { args, manifest_of: &manifest_of, interrupt: &interrupt };
        let reports = args.out.as_deref().unwrap_or(folder.path());
        if let Some(sentence) = remedy.find(&drafted, reports, console) {
            console.print(&format!("{sentence}\n"))?;
        } else if let Some(baseline) = drafted
            .baseline()
            .filter(|_| drafted.compares() && args.sources.len() == 1 && !names_kernels(&args.sources, &args.kernels))
        {
            console.print(&format!(
                "Kernels with the same parameters were compared. If they do different things, try one alone with -k \
                 {baseline}.\n"
            ))?;
        }
    }
    Ok(ended.exit)
}

/// Project with all sources on the command line; it must contain them and everything that they include.
fn project(args: &TryArgs) -> Result<Project, Failure> {
    let mut projects = Vec::new();
    for source in &args.sources {
        projects.push(args.trust.reach.project_of_source(&file_of(source))?);
    }
    for folder in &args.kernels.include_paths {
        let project = Project::at(folder)
            .map_err(|error| Failure::usage(format!("--include-path {}: {error}; name a folder", folder.display())))?;
        projects.push(project);
    }
    Ok(projects.into_iter().reduce(|all, project| all.and(&project)).unwrap_or_default())
}
