//! `run --watch`: runs on the simulator again whenever a file that the manifests use changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{EventKind, RecursiveMode, Watcher as _};

use crate::cli::options::{RunOptions, network};
use crate::cli::{BackendChoice, RunArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{ManifestRun, interrupt, run_one};
use runner_workers::{Interrupt, Urgency};

/// Debounce time: an editor saves a file in several steps.
const SETTLES: Duration = Duration::from_millis(200);

/// Interval for checking Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Folders that a run writes to, which are not watched.
const WRITTEN: [&str; 3] = ["reports", "target", ".git"];

/// Extensions of files that a run reads and never writes.
const SOURCES: [&str; 9] = ["toml", "cu", "cuh", "h", "hpp", "cpp", "inl", "ptx", "py"];

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut args = RunArgs { watch: false, ..args.clone() };
    if args.target.backend == BackendChoice::Cuda {
        return Err(Failure::usage("--watch runs on the simulator: remove --backend cuda"));
    }
    args.target.backend = BackendChoice::Sim;
    let unwatched = |error: notify::Error| Failure::environment(format!("cannot watch files: {error}"));
    let (sender, changes) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event| drop(sender.send(event))).map_err(unwatched)?;
    for folder in folders(&args.manifests) {
        watcher.watch(&folder, RecursiveMode::Recursive).map_err(unwatched)?;
    }
    let interrupt = interrupt()?;
    loop {
        for manifest in &args.manifests {
            match once(&args, manifest, &interrupt, console) {
                Ok(Exit::Interrupted) => return Ok(Exit::Interrupted),
                Ok(_) => {}
                Err(failure) => console.fail(&failure),
            }
        }
        // Files written by the run itself must not trigger another run.
        let mut is_changed = changes.try_iter().any(|event| is_change(&event) && is_of_source(&event));
        console.say("waiting for changes; press Ctrl-C to stop");
        while !is_changed {
            if interrupt.urgency() != Urgency::None {
                return Ok(Exit::Interrupted);
            }
            match changes.recv_timeout(LOOK) {
                Ok(event) => is_changed = is_change(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::environment("the file watcher stopped: restart the command"));
                }
            }
        }
        while changes.recv_timeout(SETTLES).is_ok() {}
    }
}

fn once(args: &RunArgs, manifest: &Path, interrupt: &Interrupt, console: &mut Console) -> Result<Exit, Failure> {
    let options = RunOptions::of_run(args, manifest)?;
    let manifest = load_manifest(manifest, &args.trust.reach, network(args.offline), console)?;
    Ok(run_one(ManifestRun { manifest: &manifest, options: &options }, interrupt, console)?.exit)
}

/// Folders of the manifests, and the kernel folders next to them.
fn folders(manifests: &[PathBuf]) -> BTreeSet<PathBuf> {
    let folders = |manifest: &PathBuf| {
        let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let kernels = folder.join("..").join("kernels");
        [folder.to_owned()].into_iter().chain(kernels.is_dir().then_some(kernels)).collect::<Vec<_>>()
    };
    manifests.iter().flat_map(folders).collect()
}

/// Whether the content of a user's file changed.
fn is_change(event: &notify::Result<notify::Event>) -> bool {
    let Ok(event) = event else { return false };
    let is_written =
        |path: &PathBuf| path.components().any(|part| WRITTEN.iter().any(|name| part.as_os_str() == *name));
    matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_))
        && !event.paths.iter().all(is_written)
}

/// Whether the event concerns a file that runs never write.
fn is_of_source(event: &notify::Result<notify::Event>) -> bool {
    let is_source = |path: &PathBuf| path.extension().is_some_and(|found| SOURCES.iter().any(|known| found == *known));
    event.as_ref().is_ok_and(|event| event.paths.iter().any(is_source))
}
