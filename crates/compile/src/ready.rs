//! Code from another compiler: PTX, a cubin or a fatbin in place of a CUDA C++ source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::elf;
use runner_cuda_source::ptx;
use runner_types::{
    CodeKind, CompileFailure, CompileKey, CompileUnit, Compiled, KernelResources, SourceForm, ToolkitInfo, sha256_hex,
};

/// Describes a unit whose source is already code. Fails if the code lacks a kernel of the unit.
pub(super) fn describe(unit: &CompileUnit, code: &[u8], toolkit: &ToolkitInfo) -> Result<Compiled, CompileFailure> {
    let hash = sha256_hex(code);
    let kind = if unit.form() == SourceForm::Ptx { CodeKind::Ptx } else { CodeKind::Cubin };
    let known = match kind {
        CodeKind::Ptx => Some(of_ptx(code)),
        _ => of_elf(&unit.source, code),
    };
    if let Some(known) = &known
        && let Some(missing) = unit.kernels.iter().find(|kernel| !known.contains_key(*kernel))
    {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        let summary = format!("`{}` has no kernel `{missing}`; it has {}", unit.source.display(), names.join(", "));
        return Err(CompileFailure { summary, log: String::new() });
    }
    let known = known.unwrap_or_default();
    let itself = |names: &[String]| names.iter().map(|name| (name.clone(), name.clone())).collect();
    let resources = unit.kernels.iter().map(|name| (name.clone(), known.get(name).copied().unwrap_or_default()));
    Ok(Compiled {
        key: CompileKey(sha256_hex(format!("{hash} {:?} {:?}", unit.kernels, unit.symbols).as_bytes())),
        source: hash,
        options: String::new(),
        kind,
        code: PathBuf::new(),
        kernels: itself(&unit.kernels),
        symbols: itself(&unit.symbols),
        resources: resources.collect(),
        digests: if kind == CodeKind::Cubin { elf::digests(code) } else { BTreeMap::new() },
        operations: if kind == CodeKind::Cubin { elf::operations(code) } else { BTreeMap::new() },
        toolkit: toolkit.clone(),
        log: String::new(),
        machine: None,
        listing: None,
        device_runtime: None,
        parts: Vec::new(),
        cached: false,
    })
}

fn of_ptx(code: &[u8]) -> BTreeMap<String, KernelResources> {
    let threads = |required: [u32; 3]| required.iter().product();
    let resources = |entry: ptx::Entry| {
        (entry.name, KernelResources { max_threads: entry.threads.map(threads), ..KernelResources::default() })
    };
    ptx::entries(&String::from_utf8_lossy(code)).into_iter().map(resources).collect()
}

/// Kernels of a cubin; `None` for a fatbin, which holds several, possibly compressed cubins.
fn of_elf(source: &Path, code: &[u8]) -> Option<BTreeMap<String, KernelResources>> {
    if source.extension().is_some_and(|extension| extension == "fatbin") {
        return None;
    }
    let resources = |known: elf::Attributes| KernelResources {
        registers: known.registers,
        local: known.frame,
        max_threads: known.max_threads,
        ..KernelResources::default()
    };
    Some(elf::attributes(code).into_iter().map(|(name, known)| (name, resources(known))).collect())
}
