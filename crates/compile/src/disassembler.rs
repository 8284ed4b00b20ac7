//! Reads the machine code of kernels with nvdisasm: that of this machine, or the fetched one. What it prints is kept in
//! the cache, because it takes more than half a second for the smallest file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sass::{Cubin, Listing, SassError, Tables};

use super::cache::Cache;
use super::fetch::{self, FetchError, NVDISASM, find_program};
use super::locate::Network;
use super::pinned;
use super::program::{self, Bounds};
use crate::model::{CompileFailure, sha256_hex};
use crate::programs::Programs;

/// The time that printing one file may take.
const LIMIT: Duration = Duration::from_mins(2);

/// Why there is no nvdisasm, and what to do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant describes it")]
pub enum DisassemblerError {
    #[error(
        "nvdisasm is not found on the search path, in CUDA_HOME or in /usr/local/cuda/bin, and --offline forbids \
         fetching it ({mb} MB): install it (it comes with the CUDA toolkit), or run once without --offline"
    )]
    Offline { mb: u32 },
    #[error("nvdisasm is not found on this machine, and cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
}

/// The program nvdisasm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disassembler {
    path: PathBuf,
    cache: Cache,
}

impl Disassembler {
    /// Returns the program. If this machine has none, the pinned one is fetched into the cache; `say` receives lines of
    /// progress meanwhile.
    pub fn ensure(
        programs: &Programs,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, DisassemblerError> {
        let set = pinned::NVDISASM;
        let known = programs.find(NVDISASM).or_else(|| find_program(&cache.nvdisasm_dir(set), NVDISASM).ok());
        if let Some(path) = known {
            return Ok(Self { path, cache: cache.clone() });
        }
        if network == Network::Forbidden {
            return Err(DisassemblerError::Offline { mb: set.download_mb });
        }
        let place = fetch::fetch_nvdisasm(set, cache, say)?;
        let path = find_program(&place, NVDISASM).map_err(|reason| FetchError::Incomplete { place, reason })?;
        Ok(Self { path, cache: cache.clone() })
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the machine code of these kernels of a cubin, by their mangled names, with that of the functions that they
    /// call and the lines it comes from.
    pub fn list(&self, cubin: &Path, kernels: &[&str]) -> Result<Vec<Listing>, CompileFailure> {
        let bytes = fs::read(cubin).map_err(|error| unreadable(cubin, &error))?;
        let address = self.address(&bytes);
        let json = if let Some(json) = self.cache.load_listing(&address) {
            json
        } else {
            let json = self.print(cubin)?;
            // The next call prints it again if it cannot be kept.
            let _ = self.cache.store_listing(&address, &json);
            json
        };
        join(&bytes, &json, kernels).map_err(|error| failed(error.to_string()))
    }

    /// Returns the address in the cache of what this program prints of a cubin. It changes with the file of the program.
    fn address(&self, cubin: &[u8]) -> String {
        sha256_hex(format!("{} {}", sha256_hex(cubin), program::identity(&self.path)).as_bytes())
    }

    /// Returns what the program prints of a cubin.
    fn print(&self, cubin: &Path) -> Result<Vec<u8>, CompileFailure> {
        let folder = tempfile::tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
        let place = folder.path().join("code.json");
        let output = File::create(&place).map_err(|e| failed(format!("cannot write {}: {e}", place.display())))?;
        let mut command = Command::new(&self.path);
        command.arg("-json").arg(cubin);
        let stop = AtomicBool::new(false);
        let bounds = Bounds { readable: vec![cubin.to_owned()], folder: folder.path(), limit: LIMIT, stop: &stop };
        program::run_into(&mut command, output.into(), &bounds)?;
        fs::read(&place).map_err(|error| unreadable(&place, &error))
    }
}

fn failed(summary: String) -> CompileFailure {
    CompileFailure { summary, log: String::new() }
}

fn unreadable(path: &Path, error: &std::io::Error) -> CompileFailure {
    failed(format!("cannot read {}: {error}", path.display()))
}

fn join(cubin: &[u8], json: &[u8], kernels: &[&str]) -> Result<Vec<Listing>, SassError> {
    let cubin = Cubin::parse(cubin)?;
    let all = cubin.functions();
    let kernels = all.iter().filter(|function| kernels.contains(&function.name.as_str()));
    let sections: Vec<usize> = kernels.map(|function| function.section).collect();
    let of_sections = all.iter().filter(|function| sections.contains(&function.section));
    let names: Vec<&str> = of_sections.map(|function| function.name.as_str()).collect();
    let text = sass::read_disassembly(json, |name| names.contains(&name))?;
    Listing::join(&cubin, &text, &Tables::read(&cubin)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../../fuzz/corpus/cubin/lines.cubin");

    #[test]
    fn a_cubin_is_printed_once_by_each_program() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cubin) = (dir.path().join("nvdisasm"), dir.path().join("k.cubin"));
        fs::write(&cubin, CUBIN).unwrap();
        let then = SystemTime::now() - Duration::from_hours(1);
        let install = |prints: &str, written: SystemTime| {
            fs::write(&path, format!("#!/bin/sh\necho '{prints}'\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            File::options().append(true).open(&path).unwrap().set_modified(written).unwrap();
        };
        let program = Disassembler { path: path.clone(), cache: Cache::at(dir.path().join("cache")) };
        install("[{}, []]", then);
        assert_eq!(program.list(&cubin, &[]).unwrap(), []);
        // What would be printed now is no listing, but nothing is printed.
        install("[{}, [?]", then);
        assert_eq!(program.list(&cubin, &[]).unwrap(), []);
        let newer = then + Duration::from_secs(1);
        install("[{}, [?]", newer);
        assert!(program.list(&cubin, &[]).is_err(), "another program prints for itself");
    }
}
