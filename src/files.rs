//! Files that options name: manifests to read and results to write.

use std::path::Path;

use crate::cli::ReachArgs;
use crate::console::Console;
use crate::failure::Failure;
use runner_compile::package::{check_package, fetch_package};
use runner_compile::{Cache, Network};
use runner_experiment::Manifest;
use runner_files::atomic;

/// Loads a manifest, or reports all its faults. Fetches its packages first, if the network may be used.
pub fn load_manifest(
    path: &Path,
    reach: &ReachArgs,
    network: Network,
    console: &mut Console,
) -> Result<Manifest, Failure> {
    let _span = tracing::info_span!("read the manifest", file = %path.display()).entered();
    for package in runner_manifest::packages(path) {
        let cache = Cache::locate().map_err(Failure::environment)?;
        match network {
            Network::Allowed => fetch_package(&package, &cache, &mut |line| console.say(line)).map(drop),
            Network::Forbidden => check_package(&package, &cache),
        }
        .map_err(Failure::environment)?;
    }
    runner_manifest::load_within(path, reach.project_of(path)?).map_err(|faults| console.faults(&faults))
}

/// Refuses a folder that the user did not name and that is reached through a symbolic link in the checkout.
pub fn refuse_path_outside(dir: &Path) -> Result<(), Failure> {
    let Ok(here) = std::fs::canonicalize(".") else { return Ok(()) };
    let there = dir.ancestors().find_map(|above| std::fs::canonicalize(above).ok());
    match there.filter(|there| !there.starts_with(&here)) {
        None => Ok(()),
        Some(there) => Err(Failure::usage(format!(
            "{} is a symbolic link to {}: to write results there, pass that folder with --out",
            dir.display(),
            there.display()
        ))),
    }
}

/// Writes the file that `--out` names.
pub fn write_out(path: &Path, text: &str) -> Result<(), Failure> {
    write_file("--out", path, text)
}

/// Writes a file that an option names or would name. Overwrites an existing one only if forced.
pub fn write_new(option: &str, path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if !force && path.exists() {
        let path = path.display();
        return Err(Failure::usage(format!("{path} exists; name another file with {option}, or remove it")));
    }
    write_file(option, path, text)
}

pub fn write_file(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: atomic::WriteError| {
        Failure::environment(format!("{option} {}: {error}; name a writable file", path.display()))
    };
    atomic::write_named(path, text.as_bytes()).map_err(refused)
}
