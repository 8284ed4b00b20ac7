//! Assembles PTX into machine code for display, as a driver would before running it. Uses the machine's ptxas or the
//! one in the fetched nvcc package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::cache::Cache;
use super::fetch::{FetchError, NVCC, Network, PTXAS, ensure_program};
use super::pinned::{self, NEWEST};
use super::program::{self, Bounds};
use runner_files::regular;
use runner_process::programs::Programs;
use runner_types::{CodeKind, CompileFailure, CompileUnit, Compiled, sha256_hex};

const LIMIT: Duration = Duration::from_mins(2);

/// Why there is no ptxas, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum AssemblerError {
    #[error(
        "ptxas, which assembles PTX, was not found on the search path, in CUDA_HOME or in /usr/local/cuda/bin, and \
         --offline forbids fetching it ({mb} MB): install it (it comes with the CUDA toolkit), or run once without \
         --offline"
    )]
    Offline { mb: u32 },
    #[error("ptxas, which assembles PTX, was not found on this machine and cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
    #[error("ptxas, which assembles PTX, was not found on this machine, and there is no package for it")]
    NoPackage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembler {
    path: PathBuf,
    cache: Cache,
}

impl Assembler {
    /// Finds ptxas; if the machine has none, fetches the pinned nvcc, which includes it. Progress goes to `say`.
    pub fn ensure(
        programs: &Programs,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, AssemblerError> {
        let set = pinned::nvcc(NEWEST.build).ok_or(AssemblerError::NoPackage)?;
        let offline = AssemblerError::Offline { mb: set.download_mb };
        let fetched = || ensure_program((NVCC, PTXAS), set, cache, (network, offline), say);
        let path = programs.find(PTXAS).map_or_else(fetched, Ok)?;
        Ok(Self { path, cache: cache.clone() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Assembles a unit that was compiled to PTX, with line tables.
    pub fn assemble(
        &self,
        unit: &CompileUnit,
        compiled: &Compiled,
        compute_capability: (u32, u32),
    ) -> Result<Compiled, CompileFailure> {
        let (major, minor) = compute_capability;
        let own = unit.architecture().filter(|name| name.starts_with("sm_"));
        let architecture = own.map_or_else(|| format!("sm_{major}{minor}"), str::to_owned);
        let mut arguments = vec![format!("-arch={architecture}"), "--generate-line-info".to_owned()];
        arguments.extend(unit.settings.max_registers.map(|registers| format!("--maxrregcount={registers}")));
        let ptx = regular::read_data(&compiled.code, regular::LONGEST_DATA)
            .map_err(|error| failed(format!("cannot read {}: {error}", compiled.code.display())))?;
        let program = program::identity(&self.path);
        let address = sha256_hex(format!("{} {program} {arguments:?}", sha256_hex(&ptx)).as_bytes());
        if let Some(known) = self.cache.load(&address) {
            return Ok(known);
        }
        let folder = tempfile::tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
        let place = folder.path().join("code.cubin");
        let mut command = Command::new(&self.path);
        command.args(&arguments).arg("-o").arg(&place).arg(&compiled.code);
        let stop = AtomicBool::new(false);
        let bounds = Bounds { readable: vec![compiled.code.clone()], folder: folder.path(), limit: LIMIT, stop: &stop };
        let log = program::run(&mut command, &bounds)?;
        let code = fs::read(&place).map_err(|error| failed(format!("ptxas wrote no code: {error}")))?;
        let assembled = Compiled { kind: CodeKind::Cubin, log, ..compiled.clone() };
        self.cache.store(&address, &code, assembled).map_err(|error| failed(error.to_string()))
    }
}

fn failed(summary: String) -> CompileFailure {
    CompileFailure { summary, log: String::new() }
}
