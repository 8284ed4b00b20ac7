//! Lists the machine code of kernels with nvdisasm, either the machine's or a fetched one. Listings are cached per
//! kernel, because nvdisasm takes half a second for the smallest file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sass::{Cubin, Listing, SassError, Tables};

use super::cache::Cache;
use super::fetch::{FetchError, NVDISASM, Network, ensure_program};
use super::pinned;
use super::program::{self, Bounds};
use runner_files::regular;
use runner_process::programs::Programs;
use runner_types::{CompileFailure, sha256_hex};

const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug, thiserror::Error)]
pub enum DisassemblerError {
    #[error(
        "nvdisasm was not found on the search path, in CUDA_HOME or in /usr/local/cuda/bin, and --offline forbids \
         fetching it ({mb} MB): install it (it comes with the CUDA toolkit), or run once without --offline"
    )]
    Offline { mb: u32 },
    #[error("nvdisasm was not found on this machine and cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disassembler {
    path: PathBuf,
    cache: Cache,
}

impl Disassembler {
    /// Finds nvdisasm; if the machine has none, fetches the pinned one. Progress goes to `say`.
    pub fn ensure(
        programs: &Programs,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, DisassemblerError> {
        let set = pinned::NVDISASM;
        let offline = DisassemblerError::Offline { mb: set.download_mb };
        let fetched = || ensure_program((NVDISASM, NVDISASM), set, cache, (network, offline), say);
        let path = programs.find(NVDISASM).map_or_else(fetched, Ok)?;
        Ok(Self { path, cache: cache.clone() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Listings of kernels in a cubin, by mangled name, with the functions that they call and the source lines.
    pub fn list(&self, cubin: &Path, kernels: &[&str]) -> Result<Vec<Listing>, CompileFailure> {
        let bytes = regular::read_data(cubin, regular::LONGEST_DATA).map_err(|error| unreadable(cubin, &error))?;
        self.list_bytes((cubin, &bytes), kernels)
    }

    /// Cache file with the result of [`list`](Self::list), for all kernels if `kernels` is `None`. Fails if the cubin
    /// is for another compute capability.
    pub fn list_into_cache(
        &self,
        cubin: &Path,
        kernels: Option<&[&str]>,
        capability: (u32, u32),
    ) -> Result<PathBuf, CompileFailure> {
        let bytes = regular::read_data(cubin, regular::LONGEST_DATA).map_err(|error| unreadable(cubin, &error))?;
        let parsed = Cubin::parse(&bytes).map_err(|error| failed(error.to_string()))?;
        let (major, minor) = capability;
        if parsed.architecture() != 10 * major + minor {
            let made = parsed.architecture();
            return Err(failed(format!(
                "the compiler generates machine code for sm_{made}, not for sm_{major}{minor}"
            )));
        }
        let all: Vec<&str> = parsed.functions().iter().map(|function| function.name.as_str()).collect();
        let kernels = kernels.unwrap_or(&all);
        let address = self.address(&bytes, kernels);
        if self.cache.load_listing(&address).is_none() {
            self.make_listing(&address, (cubin, &bytes), kernels)?;
        }
        Ok(self.cache.listing_file(&address))
    }

    fn list_bytes(&self, (cubin, bytes): (&Path, &[u8]), kernels: &[&str]) -> Result<Vec<Listing>, CompileFailure> {
        let address = self.address(bytes, kernels);
        let kept = self.cache.load_listing(&address).and_then(|json| serde_json::from_slice(&json).ok());
        if let Some(listings) = kept {
            return Ok(listings);
        }
        self.make_listing(&address, (cubin, bytes), kernels)
    }

    fn make_listing(
        &self,
        address: &str,
        code: (&Path, &[u8]),
        kernels: &[&str],
    ) -> Result<Vec<Listing>, CompileFailure> {
        let listings = self.join(code, kernels)?;
        if let Ok(json) = serde_json::to_vec(&listings) {
            // If it cannot be stored, the next call lists the code again.
            let _ = self.cache.store_listing(address, &json);
        }
        Ok(listings)
    }

    /// Cache address of the kernels' machine code. It changes if the nvdisasm binary changes.
    fn address(&self, cubin: &[u8], kernels: &[&str]) -> String {
        let mut kernels = kernels.to_vec();
        kernels.sort_unstable();
        let parts = [&sha256_hex(cubin), &program::identity(&self.path), &kernels.join(" ")];
        sha256_hex(parts.map(String::as_str).join(" ").as_bytes())
    }

    /// Joins the program's output with the cubin's words and line tables.
    fn join(&self, (path, bytes): (&Path, &[u8]), kernels: &[&str]) -> Result<Vec<Listing>, CompileFailure> {
        let damaged = |error: SassError| failed(error.to_string());
        let cubin = Cubin::parse(bytes).map_err(damaged)?;
        let wanted = cubin.functions().iter().filter(|function| kernels.contains(&function.name.as_str()));
        let symbols: Vec<String> = wanted.map(|function| function.symbol.to_string()).collect();
        if symbols.is_empty() {
            return Ok(Vec::new());
        }
        let text = sass::read_disassembly(&self.print(path, &symbols)?).map_err(damaged)?;
        Listing::join(&cubin, &text, &Tables::read(&cubin).map_err(damaged)?).map_err(damaged)
    }

    /// Disassembles functions, given by their symbol indices, and those that they call.
    fn print(&self, cubin: &Path, symbols: &[String]) -> Result<Vec<u8>, CompileFailure> {
        let folder = tempfile::tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
        let place = folder.path().join("code.json");
        let output = File::create(&place).map_err(|e| failed(format!("cannot write {}: {e}", place.display())))?;
        let mut command = Command::new(&self.path);
        command.arg("-json").arg("--cuda-function-index").arg(symbols.join(",")).arg(cubin);
        let stop = AtomicBool::new(false);
        let bounds = Bounds { readable: vec![cubin.to_owned()], folder: folder.path(), limit: LIMIT, stop: &stop };
        program::run_into(&mut command, output.into(), &bounds)?;
        regular::read_data(&place, regular::LONGEST_DATA).map_err(|error| unreadable(&place, &error))
    }
}

fn failed(summary: String) -> CompileFailure {
    CompileFailure { summary, log: String::new() }
}

fn unreadable(path: &Path, error: &std::io::Error) -> CompileFailure {
    failed(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../../fuzz/corpus/cubin/lines.cubin");

    #[test]
    fn a_kernel_is_printed_once_by_each_program() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cubin) = (dir.path().join("nvdisasm"), dir.path().join("k.cubin"));
        fs::write(&cubin, CUBIN).unwrap();
        let parsed = Cubin::parse(CUBIN).unwrap();
        let [kernel] = parsed.functions() else { panic!("{:?}", parsed.functions()) };
        let then = SystemTime::now() - Duration::from_hours(1);
        // Prints only if asked for the kernel's symbol.
        let install = |opcode: &str, written: SystemTime| {
            let instructions = vec![format!("{{\"opcode\": \"{opcode}\"}}"); kernel.words.len()].join(",");
            let function = format!("\"function-name\": \"{}\", \"start\": 0", kernel.name);
            let prints = format!("[{{}}, [{{{function}, \"sass-instructions\": [{instructions}]}}]]");
            let script = format!("#!/bin/sh\n[ \"$3\" = {} ] && echo '{prints}'\n", kernel.symbol);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            File::options().append(true).open(&path).unwrap().set_modified(written).unwrap();
        };
        let program = Disassembler { path: path.clone(), cache: Cache::at(dir.path().join("cache")) };
        let opcode = || program.list(&cubin, &[&kernel.name]).unwrap()[0].instructions[0].opcode.clone();
        install("FIRST", then);
        let first = program.list(&cubin, &[&kernel.name]).unwrap();
        assert_eq!((first[0].instructions.len(), &*first[0].instructions[0].opcode), (kernel.words.len(), "FIRST"));
        install("LATER", then);
        assert_eq!(program.list(&cubin, &[&kernel.name]).unwrap(), first, "nothing is printed again");
        install("LATER", then + Duration::from_secs(1));
        assert_eq!(opcode(), "LATER", "another program prints for itself");
        assert_eq!(program.list(&cubin, &["other"]).unwrap(), [], "the cubin has no such kernel");
    }
}
