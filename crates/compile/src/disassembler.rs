//! Prints the machine code of kernels with nvdisasm: that of this machine, or the fetched one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::cache::Cache;
use super::fetch::{self, FetchError, NVDISASM, find_program};
use super::locate::Network;
use super::pinned;
use super::program::{self, Bounds};
use crate::model::CompileFailure;
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
            return Ok(Self { path });
        }
        if network == Network::Forbidden {
            return Err(DisassemblerError::Offline { mb: set.download_mb });
        }
        let place = fetch::fetch_nvdisasm(set, cache, say)?;
        let path = find_program(&place, NVDISASM).map_err(|reason| FetchError::Incomplete { place, reason })?;
        Ok(Self { path })
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the machine code of these kernels of a cubin, by their mangled names, as text.
    pub fn print(&self, cubin: &Path, kernels: &[&str]) -> Result<String, CompileFailure> {
        let failed = |summary: String| CompileFailure { summary, log: String::new() };
        let folder = tempfile::tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
        let place = folder.path().join("code.sass");
        let output = File::create(&place).map_err(|e| failed(format!("cannot write {}: {e}", place.display())))?;
        let mut command = Command::new(&self.path);
        command.arg("--print-code").arg(cubin);
        let stop = AtomicBool::new(false);
        let bounds = Bounds { readable: vec![cubin.to_owned()], folder: folder.path(), limit: LIMIT, stop: &stop };
        program::run_into(&mut command, output.into(), &bounds)?;
        let text = fs::read(&place).map_err(|e| failed(format!("cannot read {}: {e}", place.display())))?;
        Ok(of_kernels(&String::from_utf8_lossy(&text), kernels))
    }
}

/// Returns the sections of nvdisasm's text that hold the code of these kernels.
fn of_kernels(text: &str, kernels: &[&str]) -> String {
    let mut wanted = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        // `//--------------------- .text._Z3addPf          --------------------------`
        if let Some(title) = line.strip_prefix("//-----") {
            let section = title.trim_matches(['-', ' ', '\t']);
            wanted = section.strip_prefix(".text.").is_some_and(|kernel| kernels.contains(&kernel));
        }
        if wanted {
            lines.push(line.trim_end());
        }
    }
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is from nvdisasm 13.2, shortened.
    const LISTING: &str = "\
\t.headerflags\t@\"EF_CUDA_SM90\"

//--------------------- .text._Z3addPf            --------------------------
\t.section\t.text._Z3addPf,\"ax\",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   EXIT ;

//--------------------- .text._Z3addPfi           --------------------------
        /*0000*/                   EXIT ;

//--------------------- .nv.shared._Z3addPf       --------------------------
\t.section\t.nv.shared._Z3addPf
";

    #[test]
    fn only_the_code_of_the_named_kernels_is_kept() {
        let code = of_kernels(LISTING, &["_Z3addPf"]);
        assert!(code.starts_with("//--------------------- .text._Z3addPf "), "{code}");
        assert!(code.ends_with("/*0010*/                   EXIT ;"), "{code}");
        assert!(!code.contains("_Z3addPfi") && !code.contains("nv.shared"), "{code}");
        assert_eq!(of_kernels(LISTING, &["_Z3subPf"]), "");
    }
}
