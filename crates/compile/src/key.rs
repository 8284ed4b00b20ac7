//! The identity of a unit: a hash of everything on which its code depends.
//!
//! The key contains no path, so it is the same in every checkout and can be committed. The cache address also covers
//! the paths, which line tables and messages contain.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::library_headers::LibraryHeaders;
use super::options::{Target, UnitOptions};
use super::replaced::{self, Replaced};
use super::toolkit::Toolkit;
use runner_cuda_source::includes::{Input, Scanner, SearchPath};
use runner_files::regular::Version;
use runner_types::{CompileKey, CompileUnit, KernelCompiler, hex};

/// Increase this when the same inputs produce different code.
const REVISION: u32 = 1;

#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub key: CompileKey,
    /// Name of the cache entry.
    pub address: String,
    /// Name of the entry for all kernels of the file; `None` if the code depends on which kernels are requested.
    pub file_address: Option<String>,
    pub source: Arc<str>,
    /// Source with macros overridden by the manifest, if any.
    pub replaced: Option<Replaced>,
    /// Paths of the source and of its includes.
    pub files: Vec<PathBuf>,
    /// Versions of these files.
    pub versions: Vec<Version>,
    /// Whether the source includes files outside the toolkit.
    pub includes_files: bool,
    /// Hash of the source and of its includes outside the toolkit.
    pub source_hash: String,
    /// Hash of the compiler options that the manifest sets.
    pub options_hash: String,
    /// Whether all includes could be resolved. If not, the key is new each time.
    pub whole: bool,
    pub options: UnitOptions,
    /// Whether the source or an include needs a header that neither the project nor the toolkit has: a host compiler's,
    /// or a missing one.
    pub includes_host_headers: bool,
    /// Libraries whose headers it includes and the toolkit lacks.
    pub libraries: Vec<&'static LibraryHeaders>,
    /// Folders of these headers, once they are needed.
    pub headers: Vec<PathBuf>,
}

impl Identity {
    /// Reads the source and its includes. Fails if the source cannot be read.
    pub fn compute(
        unit: &CompileUnit,
        options: UnitOptions,
        target: Target,
        compiler: &Compiler<'_>,
        scanner: &Scanner,
    ) -> io::Result<Self> {
        let path = SearchPath { user: &options.include_dirs, toolkit: compiler.include_dirs };
        let macros: Vec<String> = unit.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let inputs = scanner.inputs(&unit.source, &options.pre_includes, &macros, path)?;
        scanner.confine(&inputs).map_err(io::Error::other)?;
        let libraries = unit.plugin.as_ref().map(|plugin| &plugin.libraries);
        let assembler = (!options.assembler.is_empty()).then_some(&options.assembler);
        let replaced = replaced::replace(&inputs.source, &unit.defines);
        let absent = inputs.files.iter().filter(|file| file.content.is_none()).map(|file| file.name.as_str());
        // Linking with a library needs an installed toolkit, which has its headers.
        let is_linked = libraries.is_some_and(|libraries| !libraries.is_empty());
        let headers = if is_linked { Vec::new() } else { LibraryHeaders::find(&absent.collect::<Vec<_>>()) };
        let key_with = |kernels: &Vec<String>| {
            let mut key = Fields::new();
            key.add(REVISION.to_string());
            key.add(&compiler.identity);
            key.add(target.identity());
            key.add(options.architecture.as_deref().unwrap_or("-"));
            for list in [&options.stable, kernels, &unit.symbols].into_iter().chain(libraries).chain(assembler) {
                key.add(list.len().to_string());
                for item in list {
                    key.add(item);
                }
            }
            if replaced.is_some() {
                key.add("replaced definitions");
            }
            for library in &headers {
                key.add(library.name);
                key.add(library.set.build);
            }
            for file in &inputs.files {
                key.add(&file.name);
                key.add(match &file.content {
                    Some(content) => hex(&content.digest),
                    None => "absent".to_owned(),
                });
            }
            key
        };
        let mut key = key_with(&unit.kernels);
        if !inputs.whole {
            key.add(nonce());
        }
        let key = key.finish();
        let address_of = |key: &str| {
            let mut address = Fields::new();
            address.add(key);
            address.add(unit.source.as_os_str().as_encoded_bytes());
            if unit.compiler != KernelCompiler::Nvrtc {
                // nvcc and clang write the absolute path into the code.
                let whole = std::path::absolute(&unit.source).unwrap_or_default();
                address.add(whole.as_os_str().as_encoded_bytes());
            }
            for dir in options.include_dirs.iter().map(PathBuf::as_path).chain(compiler.root) {
                address.add(dir.as_os_str().as_encoded_bytes());
            }
            address.finish()
        };
        let has_whole_file = inputs.whole
            && unit.compiler == KernelCompiler::Nvrtc
            && unit.plugin.is_none()
            && unit.symbols.is_empty()
            && !unit.kernels.is_empty()
            && unit.kernels.iter().all(|kernel| is_plain(kernel));
        let file_address = has_whole_file.then(|| {
            let mut file = key_with(&Vec::new());
            file.add("whole file");
            address_of(&file.finish())
        });
        Ok(Self {
            address: address_of(&key),
            file_address,
            key: CompileKey(key),
            files: inputs.paths().map(Path::to_owned).collect(),
            versions: inputs.versions().collect(),
            includes_files: inputs.files.iter().skip(1).any(|file| file.content.is_some()),
            replaced,
            source: inputs.source,
            source_hash: hash_of(&inputs.files),
            options_hash: hash_of_options(&options, unit),
            whole: inputs.whole,
            includes_host_headers: inputs.files.iter().any(|file| file.content.is_none()),
            libraries: headers,
            headers: Vec::new(),
            options,
        })
    }

    /// Whether no file was written between the two. The same content is not enough: a compiler that ran meanwhile may
    /// have read another one.
    pub fn is_unchanged(&self, now: &Self) -> bool {
        self.key == now.key && self.versions == now.versions
    }
}

/// Whether a name is a kernel in the global namespace that is not a template instance.
fn is_plain(kernel: &str) -> bool {
    let first = kernel.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && kernel.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Hash of a source and of its includes outside the toolkit.
pub(super) fn hash_of(files: &[Input]) -> String {
    let mut fields = Fields::new();
    for file in files {
        fields.add(&file.name);
        fields.add(file.content.as_ref().map_or_else(|| "absent".to_owned(), |content| hex(&content.digest)));
    }
    fields.finish()
}

/// Hash of the compiler options that the manifest sets.
pub(super) fn hash_of_options(options: &UnitOptions, unit: &CompileUnit) -> String {
    let libraries = unit.plugin.iter().flat_map(|plugin| &plugin.libraries);
    let mut fields = Fields::new();
    fields.add(options.architecture.as_deref().unwrap_or("-"));
    for item in options.stable.iter().chain(&options.assembler).chain(libraries) {
        fields.add(item);
    }
    fields.finish()
}

/// Properties of the compiler on which the code depends.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub identity: String,
    /// The compiler's own headers, which `identity` covers.
    pub include_dirs: &'a [PathBuf],
    /// The compiler's folder, if its output contains the path.
    pub root: Option<&'a Path>,
}

impl<'a> Compiler<'a> {
    pub fn nvrtc(toolkit: &'a Toolkit) -> Self {
        Self { identity: nvrtc_identity(toolkit), include_dirs: &toolkit.include_dirs, root: None }
    }
}

/// Full version of NVRTC. If only major and minor are known, the library's size distinguishes builds.
fn nvrtc_identity(toolkit: &Toolkit) -> String {
    let (major, minor) = toolkit.info.version;
    match &toolkit.info.build {
        Some(build) => build.clone(),
        None => format!("{major}.{minor} of {} bytes", fs::metadata(&toolkit.library).map_or(0, |meta| meta.len())),
    }
}

/// A unique value, so that a unit that cannot be identified is never found in the cache.
fn nonce() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{} {}", std::process::id(), since.as_nanos())
}

/// Hashes a list of fields with their lengths, so that different lists have different hashes.
struct Fields(Sha256);

impl Fields {
    fn new() -> Self {
        Self(Sha256::new())
    }

    fn add(&mut self, field: impl AsRef<[u8]>) {
        let field = field.as_ref();
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_one_without_namespaces_and_arguments() {
        assert!(["k", "_k2", "badd_f32"].into_iter().all(is_plain));
        assert!(!["ns::k", "k<int>", "2k", "", "k "].into_iter().any(is_plain));
    }
}
