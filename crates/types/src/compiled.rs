//! Requests to the compiler and their results.
//!
//! They are data, since compilers run in other processes and results are cached on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CompileSettings, ToolkitInfo};

/// Content address of a compiled unit: SHA-256 over source, included files, options, names, architecture, toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CompileKey(pub String);

impl fmt::Display for CompileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One translation unit: a source with one set of options, and the kernels needed from it.
///
/// All launches of a variant with the same source and options share a unit, so that they share its `__device__`
/// variables. Different variants never share one, so that an error in a template affects only its variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompileUnit {
    /// CUDA C++ file, or a file that another compiler made.
    pub source: PathBuf,
    /// C++ name expressions of kernels, sorted.
    pub kernels: Vec<String>,
    /// C++ names of `__device__` variables, sorted.
    pub symbols: Vec<String>,
    pub defines: Vec<(String, String)>,
    /// Options of the manifest in order, placeholders filled in.
    pub options: Vec<String>,
    pub include_paths: Vec<PathBuf>,
    #[serde(flatten)]
    pub settings: CompileSettings,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub compiler: KernelCompiler,
    /// Further sources, compiled alike and linked with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<PathBuf>,
    /// Set if `kernels` are host functions, which nvcc builds into a shared library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
}

impl CompileUnit {
    /// A unit of kernels of a source, without further options.
    pub fn from_kernels<S: Into<String>>(source: impl Into<PathBuf>, kernels: impl IntoIterator<Item = S>) -> Self {
        Self { source: source.into(), kernels: kernels.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The author's file that the compiler knew by `path`; `None` for other files. Cached code may have been compiled
    /// elsewhere, so the end of the path is looked up next to the source and in the include folders.
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

    /// Whether the manifest's options let the code flush subnormal results of f32 to zero.
    pub fn flushes_subnormals(&self) -> bool {
        let flushes = |option: &String| match option.trim_start_matches('-') {
            "use_fast_math" | "ffast-math" | "fgpu-flush-denormals-to-zero" | "ftz=true" => Some(true),
            "ftz=false" => Some(false),
            _ => None,
        };
        self.options.iter().rev().find_map(flushes).unwrap_or(false)
    }

    /// Architecture in the manifest's options, which replaces the device's: `sm_90a`.
    pub fn architecture(&self) -> Option<&str> {
        let named = ["-arch=", "--gpu-architecture="];
        self.options.iter().rev().find_map(|option| named.iter().find_map(|name| option.strip_prefix(name)))
    }
}

/// What compiles a CUDA C++ source.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KernelCompiler {
    /// The toolkit's library.
    #[default]
    Nvrtc,
    /// The toolkit's program.
    Nvcc,
    /// LLVM's program, with the headers and the assembler of a toolkit.
    Clang,
}

impl KernelCompiler {
    /// Name in manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Kind of a source file, by its extension.
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

/// Libraries to link with host functions, besides the CUDA runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plugin {
    /// Libraries as the linker names them, e.g. `cublas`.
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

/// Resources of a kernel, from its cubin. Absent fields are unknown, since PTX does not state registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Static shared memory per block, in bytes.
    pub shared_static: Option<u32>,
    /// Local memory (the stack frame) per thread, in bytes.
    pub local: Option<u32>,
    /// Bytes of spilled registers that each thread stores to local memory.
    pub spill_stores: Option<u32>,
    /// Bytes of spilled registers that each thread loads from local memory.
    pub spill_loads: Option<u32>,
    /// Maximum number of threads per block in a launch.
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
    /// Instruction counts of each kernel's machine code by name expression, such as `BAR 2 LDG 4`, with a list of the
    /// instructions if it is short. Empty if unknown; known for PTX in `code` too if an assembler ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, String>,
    /// The machine code that was made of the PTX in `code`; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<PathBuf>,
    /// The machine instructions of its kernels, where `code` is PTX for the simulator; `None` if they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<ListedCode>,
    /// The toolkit whose compiler built it.
    pub toolkit: ToolkitInfo,
    pub log: String,
    /// Library to link before a GPU can load code that launches kernels itself: the toolkit's `libcudadevrt.a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<PathBuf>,
    /// Code of every source if there are several, `code` first. They are linked when they are loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CodePart>,
    /// Whether it came from the cache in this run.
    #[serde(skip)]
    pub cached: bool,
}

/// The machine instructions of a unit's kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedCode {
    /// The file that lists them.
    File(PathBuf),
    /// Why they are not known, and what to do.
    Unknown(String),
}

/// The code of one of several sources that are linked.
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
