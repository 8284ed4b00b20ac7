//! Requests to the compiler and their results.

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
/// variables. Different variants never share one, so that an error in a template affects its variant only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompileUnit {
    /// The path of the CUDA C++ file, or of code that another compiler made.
    pub source: PathBuf,
    /// C++ name expressions of kernels, sorted.
    pub kernels: Vec<String>,
    /// C++ names of `__device__` variables, sorted.
    pub symbols: Vec<String>,
    /// The value of each macro, with placeholders filled in.
    pub defines: Vec<(String, String)>,
    /// The options of the manifest, with placeholders filled in, in order.
    pub options: Vec<String>,
    /// Folders to search for included files, in order.
    pub include_paths: Vec<PathBuf>,
    /// The numbers and switches that the compiler gets.
    #[serde(flatten)]
    pub settings: CompileSettings,
    /// What compiles the kernels.
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
    /// Returns a unit of kernels of a source, compiled without further options.
    pub fn from_kernels<S: Into<String>>(source: impl Into<PathBuf>, kernels: impl IntoIterator<Item = S>) -> Self {
        Self { source: source.into(), kernels: kernels.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Returns the file of the author that the compiler knew by a path; `None` for a file of others. The code may come from
    /// the cache and have been compiled elsewhere, so the end of the path is looked for beside the source and in the folders
    /// of its includes.
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

    /// Returns what the source is.
    pub fn form(&self) -> SourceForm {
        SourceForm::from_path(&self.source)
    }

    /// Returns the architecture in the manifest's options, in place of the device's: `sm_90a`.
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
    /// Returns the name that the compiler has in manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a source file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// The source is CUDA C++.
    Cuda,
    /// The source is PTX of another compiler (`.ptx`).
    Ptx,
    /// The source is machine code of another compiler (`.cubin`, `.fatbin`).
    MachineCode,
}

impl SourceForm {
    /// Returns the form of a file.
    pub fn from_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ptx") => Self::Ptx,
            Some("cubin" | "fatbin") => Self::MachineCode,
            _ => Self::Cuda,
        }
    }
}

/// The libraries that a shared library of host functions is linked with, besides the CUDA runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plugin {
    /// The libraries as the linker names them: `cublas`.
    pub libraries: Vec<String>,
}

/// The form of code: machine code, PTX or a host library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeKind {
    /// The code is machine code for one architecture.
    Cubin,
    /// The code is PTX, for a GPU newer than the compiler, and for the simulator.
    Ptx,
    /// A shared library of host functions.
    Plugin,
}

/// Resources of a kernel, from its cubin. Absent fields are unknown (PTX does not state registers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelResources {
    /// The number of registers that each thread has.
    pub registers: Option<u32>,
    /// The bytes of static shared memory that each block has.
    pub shared_static: Option<u32>,
    /// The bytes of local memory (the stack frame) that each thread has.
    pub local: Option<u32>,
    /// Bytes of spilled registers that each thread stores to local memory.
    pub spill_stores: Option<u32>,
    /// Bytes of spilled registers that each thread loads from local memory.
    pub spill_loads: Option<u32>,
    /// The most threads per block with which the kernel can be launched.
    pub max_threads: Option<u32>,
    /// Blocks per cluster along each axis, if the kernel was compiled for clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
}

/// A compiled unit, on disk in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// The address that the code has in the cache.
    pub key: CompileKey,
    /// SHA-256 of the source and of every project file that it includes; empty if unknown.
    #[serde(default)]
    pub source: String,
    /// The SHA-256 of the manifest's compiler options, without paths; empty if unknown.
    #[serde(default)]
    pub options: String,
    /// What the file in `code` holds.
    pub kind: CodeKind,
    /// The cached cubin or PTX.
    pub code: PathBuf,
    /// The mangled name of each kernel, by its name expression.
    pub kernels: BTreeMap<String, String>,
    /// The mangled name of each `__device__` variable, by its name expression.
    pub symbols: BTreeMap<String, String>,
    /// The resources of each kernel, by its name expression.
    pub resources: BTreeMap<String, KernelResources>,
    /// The hash of the machine code of each kernel, by its name expression, without what tells lines of the source; empty
    /// if unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
    /// How many instructions of each operation the machine code of each kernel has, such as `BAR 2 LDG 4`, with a list of them
    /// if it is not too long, by its name expression; empty if unknown. Known also where `code` is PTX, if an assembler ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, String>,
    /// The toolkit whose compiler built it.
    pub toolkit: ToolkitInfo,
    /// Warnings of the compiler.
    pub log: String,
    /// The library that the code must be linked with before a GPU can load it, if it launches kernels itself: the
    /// toolkit's `libcudadevrt.a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<PathBuf>,
    /// The code of every source, that in `code` first, if there are several: they are linked where they are loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CodePart>,
    /// Whether it came from the cache, in this run.
    #[serde(skip)]
    pub cached: bool,
}

/// The code of one of several sources that are linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePart {
    /// The name of the source file, for messages.
    pub source: String,
    /// The cached cubin or PTX.
    pub code: PathBuf,
}

/// Why a unit did not compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileFailure {
    /// One line: the first error, or how the compiler failed (killed at its limit, crashed).
    pub summary: String,
    /// The whole log of the compiler.
    pub log: String,
}
