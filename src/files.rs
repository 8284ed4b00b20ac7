//! Files that options name: manifests to read and results to write.

use std::path::{Path, PathBuf};
use std::{fs, io};

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

/// Manifests in a folder and its subfolders, in the order of their paths. Symbolic links to files are followed, and those
/// to folders are not.
pub fn manifests_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            found.extend(manifests_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "toml")
            && path.is_file()
            && runner_manifest::is_manifest(&String::from_utf8_lossy(&fs::read(&path)?))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Refuses a folder that the user did not name and that is reached through a symbolic link in the checkout.
pub fn refuse_path_outside(dir: &Path) -> Result<(), Failure> {
    let Ok(here) = fs::canonicalize(".") else { return Ok(()) };
    let there = dir.ancestors().find_map(|above| fs::canonicalize(above).ok());
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_manifests_in_it_whatever_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("deep")).unwrap();
        let names =
            ["$(touch ran).toml", "-rf.toml", "a b.toml", "deep/c.toml", "forged\n9 0 right.toml", "q`<b>&\\1.toml"];
        for name in names {
            fs::write(folder.path().join(name), "[experiment]\n").unwrap();
        }
        for (name, text) in [("data.toml", "[table]\n"), ("manifest.txt", "[experiment]\n")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(manifests_below(folder.path()).unwrap(), names.map(|name| folder.path().join(name)));
    }
}
