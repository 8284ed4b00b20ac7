//! Finds compute-sanitizer, either the machine's or a fetched one.

use std::path::PathBuf;

use super::cache::Cache;
use super::fetch::{FetchError, Network, SANITIZER, ensure_program};
use super::locate::{Requirement, ToolkitError};
use super::pinned;
use runner_process::programs::Programs;

#[derive(Debug, thiserror::Error)]
pub enum SanitizerError {
    #[error(
        "compute-sanitizer was not found on the search path, in CUDA_HOME or in /usr/local/cuda/bin, and --offline \
         forbids fetching it: install it (it comes with the CUDA toolkit), or run once without --offline"
    )]
    Offline,
    #[error("compute-sanitizer was not found on this machine and cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Toolkit(#[from] ToolkitError),
}

/// Path of compute-sanitizer. If the machine has none, fetches the pinned one; progress goes to `say`.
pub fn ensure(
    want: Requirement,
    programs: &Programs,
    cache: &Cache,
    network: Network,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, SanitizerError> {
    if let Some(program) = programs.find(SANITIZER) {
        return Ok(program);
    }
    let set = pinned::sanitizer(want.pinned()?.major);
    ensure_program((SANITIZER, SANITIZER), set, cache, (network, SanitizerError::Offline), say)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::fs;

    use super::*;

    const HOPPER: Requirement = Requirement::Gpu { driver: (13, 0), compute_capability: (9, 0) };

    fn ensured(programs: &Programs, cache: &Cache) -> Result<PathBuf, String> {
        let mut said = Vec::new();
        let found = ensure(HOPPER, programs, cache, Network::Forbidden, &mut |line| said.push(line.to_owned()));
        assert!(said.is_empty(), "nothing is fetched: {said:?}");
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn the_machines_program_comes_before_the_fetched_one_and_offline_there_may_be_none() {
        let (own, fetched) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (programs, cache) = (Programs::in_dirs([own.path()]), Cache::at(fetched.path()));
        let refusal = ensured(&programs, &cache).unwrap_err();
        assert!(refusal.contains("--offline forbids fetching it"), "{refusal}");

        let bin = fetched.path().join("toolkit/sanitizer-13.0.85/nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(SANITIZER), "").unwrap();
        assert_eq!(ensured(&programs, &cache), Ok(bin.join(SANITIZER)));

        fs::write(own.path().join(SANITIZER), "").unwrap();
        assert_eq!(ensured(&programs, &cache), Ok(own.path().join(SANITIZER)));
    }
}
