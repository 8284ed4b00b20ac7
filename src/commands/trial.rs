//! `runner try`: compares kernels without a manifest.

use std::path::Path;
use std::sync::Arc;

use super::kernels::{draft, experiment_name, file_of, source_name};
use crate::cli::TryArgs;
use crate::cli::options::{RunOptions, TRIED};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use crate::session::{ManifestRun, interrupt, run_one};
use runner_files::project::Project;
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
    let drafted = draft(&args.sources, &args.kernels, &name, absolute)?;
    let source = Arc::new(SourceText { path: TRIED.into(), text: drafted.text() });
    let manifest = runner_manifest::parse_within(&source, project(args)?).map_err(|faults| console.faults(&faults))?;
    if let Some(path) = &args.save {
        let saved = draft(&args.sources, &args.kernels, &experiment_name(path), |source| source_name(source, path))?;
        write_new("--save", path, &saved.commented(), false)?;
        console.say(&format!("wrote {}", path.display()));
    }
    for line in drafted.assumptions() {
        console.say(&line);
    }
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::environment(format!(
            "cannot create a temporary folder: {error}; set TMPDIR to one that can be written"
        ))
    })?;
    let options = RunOptions::of_try(args, folder.path())?;
    run_one(ManifestRun { manifest: &manifest, options: &options }, &interrupt()?, console).map(|ended| ended.exit)
}

/// Project of all sources on the command line, which must contain them and what they include.
fn project(args: &TryArgs) -> Result<Project, Failure> {
    let mut projects = Vec::new();
    for source in &args.sources {
        projects.push(args.reach.project_of(&file_of(source))?);
    }
    for folder in &args.kernels.include_paths {
        let project = Project::at(folder)
            .map_err(|error| Failure::usage(format!("--include-path {}: {error}; name a folder", folder.display())))?;
        projects.push(project);
    }
    Ok(projects.into_iter().reduce(|all, project| all.and(&project)).unwrap_or_default())
}
