//! What the compiler is asked for and what it gives.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ToolkitInfo;

/// Content address of a compiled unit: SHA-256 over source, included files, options, names, architecture, toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CompileKey(pub String);

impl fmt::Display for CompileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One translation unit: a source under one set of options, with the kernels wanted from it.
///
/// All launches of a variant that agree in source and options share a unit, so that they share its `__device__`
/// variables; different variants never share one, so that an error in a template costs its variant alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompileUnit {
    pub source: PathBuf,
    /// C++ name expressions of kernels, sorted.
    pub kernels: Vec<String>,
    /// C++ names of `__device__` variables, sorted.
    pub symbols: Vec<String>,
    /// `NAME` → `VALUE`, rendered.
    pub defines: Vec<(String, String)>,
    /// Rendered options of the manifest, in order.
    pub options: Vec<String>,
    pub include_paths: Vec<PathBuf>,
    pub debug: bool,
    pub max_registers: Option<u32>,
    /// Whether it is compiled to be linked with the device runtime, so that its kernels may launch kernels.
    pub relocatable: bool,
    /// Set where `kernels` are functions of the host, built by nvcc into a shared library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
}

impl CompileUnit {
    /// Kernels of a source, compiled without further options.
    pub fn of<S: Into<String>>(source: impl Into<PathBuf>, kernels: impl IntoIterator<Item = S>) -> Self {
        Self {
            source: source.into(),
            kernels: kernels.into_iter().map(Into::into).collect(),
            symbols: Vec::new(),
            defines: Vec::new(),
            options: Vec::new(),
            include_paths: Vec::new(),
            debug: false,
            max_registers: None,
            relocatable: false,
            plugin: None,
        }
    }

    /// The architecture that the manifest's options name in place of the device's: `sm_90a`.
    pub fn architecture(&self) -> Option<&str> {
        let named = ["-arch=", "--gpu-architecture="];
        self.options.iter().rev().find_map(|option| named.iter().find_map(|name| option.strip_prefix(name)))
    }
}

/// What the shared library of host functions is linked with besides the CUDA runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plugin {
    /// As the linker names them: `cublas`.
    pub libraries: Vec<String>,
}

/// Machine code, PTX or a library of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeKind {
    Cubin,
    /// For a GPU newer than the compiler, and for the simulator.
    Ptx,
    /// A shared library of host functions.
    Plugin,
}

/// What a kernel takes of an SM. From the cubin; absent fields are unknown (PTX says nothing of registers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Static shared memory, bytes a block.
    pub shared_static: Option<u32>,
    /// Local memory (stack frame), bytes a thread.
    pub local: Option<u32>,
    pub spill_stores: Option<u32>,
    pub spill_loads: Option<u32>,
    pub max_threads: Option<u32>,
    /// Blocks of a cluster along each axis, where the kernel was compiled for clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
}

/// A compiled unit, on disk in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    pub key: CompileKey,
    /// SHA-256 of the source and of every file of the project that it includes; empty where it is not known.
    #[serde(default)]
    pub source: String,
    /// SHA-256 of what the manifest asks of the compiler, paths left out; empty where it is not known.
    #[serde(default)]
    pub options: String,
    pub kind: CodeKind,
    /// The cached cubin or PTX.
    pub code: PathBuf,
    /// Name expression → mangled name, of kernels.
    pub kernels: BTreeMap<String, String>,
    /// Name expression → mangled name, of `__device__` variables.
    pub symbols: BTreeMap<String, String>,
    /// Name expression → resources.
    pub resources: BTreeMap<String, KernelResources>,
    pub toolkit: ToolkitInfo,
    /// Warnings of the compiler.
    pub log: String,
    /// The library that the code must be linked with before a GPU loads it, where it launches kernels itself: the
    /// toolkit's `libcudadevrt.a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<PathBuf>,
    /// Whether it came from the cache; a fact of this run, not of the unit.
    #[serde(skip)]
    pub cached: bool,
}

/// Why a unit did not compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileFailure {
    /// One line: the first error, or what became of the compiler (killed after its limit, crashed).
    pub summary: String,
    /// NVRTC's whole log.
    pub log: String,
}
