//! `runner run`: from the manifest to the report.

mod devices;
mod several;
mod watch;

use std::path::Path;

use super::show::write_pages;
use crate::cli::RunArgs;
use crate::cli::options::{RunOptions, network};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::{load_manifest, manifests_below};
use crate::session::{Ended, ManifestRun, compare, interrupt, run_one};
use runner_experiment::Manifest;
use runner_workers::{Interrupt, Urgency};

pub use several::load_all;

/// Runs one experiment. If the simulator counts per line, adds source pages of each kernel to the report.
fn run_with_pages(
    mut options: RunOptions,
    manifest: &Manifest,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Ended, Failure> {
    let is_wanted = options.passes.lines && options.shard.is_none() && options.against.against.is_none();
    // Without a temporary folder there are no pages.
    let counted = tempfile::tempdir().ok().filter(|_| is_wanted);
    options.line_counts = counted.as_ref().map(|folder| folder.path().to_owned());
    let run = ManifestRun { manifest, options: &options };
    let ended = run_one(run, interrupt, console)?;
    if let Some(folder) = counted.filter(|_| interrupt.urgency() == Urgency::None)
        && let Err(failure) = write_pages(run, folder.path(), console)
    {
        console.say(&format!("no pages with sources: {}", failure.message));
    }
    Ok(ended)
}

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    let args = &with_folders(args)?;
    if args.watch {
        return watch::run(args, console);
    }
    if let Some(named) = &args.devices {
        return devices::run(args, named, console);
    }
    let [manifest] = args.manifests.as_slice() else { return several::run(args, console) };
    // With a folder, the page also lists the experiments that are gone.
    if !args.folders.is_empty() {
        return several::run(args, console);
    }
    let options = RunOptions::of_run(args, manifest)?;
    let manifest = load_manifest(manifest, &args.trust.reach, network(args.offline), console)?;
    let ended = run_with_pages(options, &manifest, &interrupt()?, console)?;
    ended.both.map_or(Ok(ended.exit), |both| compare(vec![both], Vec::new(), args, console))
}

/// The arguments with folders replaced by the manifests in them. With a base, a folder may be gone.
fn with_folders(args: &RunArgs) -> Result<RunArgs, Failure> {
    let is_compared = args.against.against.is_some();
    let is_folder = |path: &Path| {
        path.is_dir() || (is_compared && !path.exists() && path.extension().is_none_or(|extension| extension != "toml"))
    };
    let (mut manifests, mut folders) = (Vec::new(), Vec::new());
    for path in &args.manifests {
        if !is_folder(path) {
            manifests.push(path.clone());
            continue;
        }
        let below = if path.exists() { manifests_below(path) } else { Ok(Vec::new()) };
        let below = below.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))?;
        if below.is_empty() && !is_compared {
            // Reading it fails and suggests a manifest.
            manifests.push(path.clone());
            continue;
        }
        manifests.extend(below);
        folders.push(path.clone());
    }
    Ok(RunArgs { manifests, folders, ..args.clone() })
}
