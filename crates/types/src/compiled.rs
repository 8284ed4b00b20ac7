//! Requests to the compiler and their results.
//!
//! They are plain data, since compilers run in other processes and results are cached on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CompileSettings;

/// Content address of a compiled unit: SHA-256 over source, included files, options, names, architecture, toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CompileKey(pub String);

impl fmt::Display for CompileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A translation unit: a source with one set of options, and the kernels needed from it.
///
/// All launches of a variant with the same source and options share a unit, so that they share its `__device__`
/// variables. Different variants never share one, so that an error in a template affects only its variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompileUnit {
    /// CUDA C++ file, or output of another compiler (PTX or machine code).
    pub source: PathBuf,
    /// C++ name expressions of kernels, sorted.
    pub kernels: Vec<String>,
    /// C++ names of `__device__` variables, sorted.
    pub symbols: Vec<String>,
    pub defines: Vec<(String, String)>,
    /// Options from the manifest in order, with placeholders filled in.
    pub options: Vec<String>,
    pub include_paths: Vec<PathBuf>,
    #[serde(flatten)]
    pub settings: CompileSettings,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub compiler: KernelCompiler,
    /// Additional sources, compiled with the same options and linked with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<PathBuf>,
    /// Set if `kernels` are host functions, which nvcc builds into a shared library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
}

impl CompileUnit {
    /// A unit with default options.
    pub fn from_kernels<S: Into<String>>(source: impl Into<PathBuf>, kernels: impl IntoIterator<Item = S>) -> Self {
        Self { source: source.into(), kernels: kernels.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The author's file that the compiler called `path`; `None` for other files. Cached code may have been compiled in
    /// another folder, so the end of the path is looked up next to the source and in the include folders.
    pub fn find_own(&self, path: &str) -> Option<PathBuf> {
        if path == self.source.to_str()? {
            return Some(self.source.clone());
        }
        let parts: Vec<_> = Path::new(path).components().collect();
        let folders = || self.source.parent().into_iter().chain(self.include_paths.iter().map(PathBuf::as_path));
        let plain = |end: &Path| end.components().all(|part| matches!(part, Component::Normal(_)));
        (0..parts.len()).find_map(|from| {
            let end: PathBuf = parts[from..].iter().collect();
            folders().filter(|_| plain(&end)).map(|folder| folder.join(&end)).find(|file| file.is_file())
        })
    }

    pub fn form(&self) -> SourceForm {
        SourceForm::from_path(&self.source)
    }

    /// Whether the manifest's options allow the code to flush subnormal f32 results to zero.
    pub fn flushes_subnormals(&self) -> bool {
        let flushes = |option: &String| match option.trim_start_matches('-') {
            "use_fast_math" | "ffast-math" | "fgpu-flush-denormals-to-zero" | "ftz=true" => Some(true),
            "ftz=false" => Some(false),
            _ => None,
        };
        self.options.iter().rev().find_map(flushes).unwrap_or(false)
    }

    /// Architecture from the manifest's options, e.g. `sm_90a`, which overrides the device's.
    pub fn architecture(&self) -> Option<&str> {
        let named = ["-arch=", "--gpu-architecture="];
        self.options.iter().rev().find_map(|option| named.iter().find_map(|name| option.strip_prefix(name)))
    }
}

/// Compiler for CUDA C++ sources.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KernelCompiler {
    /// NVRTC, the toolkit's compiler library.
    #[default]
    Nvrtc,
    /// nvcc, the toolkit's compiler program.
    Nvcc,
    /// LLVM's clang, with the headers and the assembler of a toolkit.
    Clang,
}

impl KernelCompiler {
    /// Name in manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Kind of a source file, from its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    Cuda,
    /// PTX from another compiler (`.ptx`).
    Ptx,
    /// Machine code from another compiler (`.cubin`, `.fatbin`).
    MachineCode,
}

impl SourceForm {
    pub fn from_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ptx") => Self::Ptx,
            Some("cubin" | "fatbin") => Self::MachineCode,
            _ => Self::Cuda,
        }
    }
}

/// Shared library of host functions, linked with the CUDA runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plugin {
    /// Further libraries to link, as the linker names them, e.g. `cublas`.
    pub libraries: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeKind {
    /// Machine code for one architecture.
    Cubin,
    /// PTX, for a GPU newer than the compiler and for the simulator.
    Ptx,
    /// Shared library of host functions.
    Plugin,
}

/// Resources of a kernel, from its cubin. Absent fields are unknown, e.g. registers if there is only PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelResources {
    pub registers: Option<u32>,
    /// Static shared memory per block, in bytes.
    pub shared_static: Option<u32>,
    /// Local memory (the stack frame) per thread, in bytes.
    pub local: Option<u32>,
    /// Bytes of spilled registers that each thread stores to local memory.
    pub spill_stores: Option<u32>,
    /// Bytes of spilled registers that each thread loads from local memory.
    pub spill_loads: Option<u32>,
    /// Maximum threads per block in a launch.
    pub max_threads: Option<u32>,
    /// Blocks per cluster along each axis, if the kernel was compiled for clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    pub key: CompileKey,
    /// SHA-256 of the source and of every project file that it includes; empty if unknown.
    #[serde(default)]
    pub source: String,
    /// SHA-256 of the manifest's compiler options, without paths; empty if unknown.
    #[serde(default)]
    pub options: String,
    pub kind: CodeKind,
    /// Cached cubin, PTX or library.
    pub code: PathBuf,
    /// Mangled name of each kernel, by name expression.
    pub kernels: BTreeMap<String, String>,
    /// Mangled name of each `__device__` variable, by name expression.
    pub symbols: BTreeMap<String, String>,
    /// Resources of each kernel, by name expression.
    pub resources: BTreeMap<String, KernelResources>,
    /// Hash of each kernel's machine code without line information, by name expression; empty if unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
    /// Opcode counts of each kernel's machine code, such as `BAR 2 LDG 4`, by name expression; short kernels also list
    /// their instructions. Empty if unknown. Also known for PTX in `code` if an assembler ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, String>,
    /// Machine code assembled from the PTX in `code`, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<PathBuf>,
    /// Machine instructions of the kernels if `code` is PTX for the simulator; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<ListedCode>,
    /// Toolkit whose compiler built the unit.
    pub toolkit: ToolkitInfo,
    pub log: String,
    /// The toolkit's `libcudadevrt.a`, which must be linked before a GPU can load kernels that launch kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<PathBuf>,
    /// Code of each source if there are several, `code` first. Linked when loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CodePart>,
    /// Whether this run found it in the cache.
    #[serde(skip)]
    pub cached: bool,
}

/// Disassembly of a unit's kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedCode {
    /// Path of the listing.
    File(PathBuf),
    /// Why there is no listing, and what to do about it.
    Unknown(String),
}

/// Code of one source of a unit with several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePart {
    /// Source file name, for messages.
    pub source: String,
    /// Cached cubin or PTX.
    pub code: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileFailure {
    /// One line: the first error, or how the compiler failed (killed at its limit, crashed).
    pub summary: String,
    /// Complete log of the compiler.
    pub log: String,
}

/// Version of the compiler that built the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolkitInfo {
    /// NVRTC version, e.g. `(13, 0)`.
    pub version: (u32, u32),
    /// Full version of the package or toolkit if known, e.g. `13.0.88`.
    pub build: Option<String>,
}
