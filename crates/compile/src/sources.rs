//! Source files of a unit, read without compiling. Their hash tells whether a stored result is current.

use std::path::PathBuf;
use std::sync::Arc;

use super::key;
use super::options::UnitOptions;
use runner_cuda_source::includes::{Input, Scanner, SearchPath};
use runner_files::project::Project;
use runner_files::regular;
use runner_types::{CompileUnit, SourceForm, sha256_hex};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Hash as in [`Compiled::source`](runner_types::Compiled::source).
    pub hash: String,
    /// Hash of the found files only, for a compiler that has the others itself.
    pub hash_of_found: String,
    /// Hash as in [`Compiled::options`](runner_types::Compiled::options).
    pub options: String,
    /// Name and text, the source first; includes under their `#include` name.
    pub files: Vec<(String, Arc<str>)>,
    pub paths: Vec<PathBuf>,
    /// Whether all included files were found.
    pub is_whole: bool,
}

/// Reads the sources of units, each file once.
#[derive(Debug)]
pub struct SourceReader {
    scanner: Scanner,
    toolkit: Vec<PathBuf>,
}

impl SourceReader {
    /// Reader for the files of a project. `toolkit` lists the folders of the compiler's headers, which are not sources.
    pub fn new(project: Project, toolkit: Vec<PathBuf>) -> Self {
        Self { scanner: Scanner::confined_to(project), toolkit }
    }

    /// Reads the source of a unit and its includes. `None` if the source cannot be read or an option is not allowed.
    pub fn read(&self, unit: &CompileUnit) -> Option<Sources> {
        let mut all = self.of_source(unit)?;
        if unit.linked.is_empty() {
            return Some(all);
        }
        let mut hashes = vec![std::mem::take(&mut all.hash)];
        let mut found = vec![std::mem::take(&mut all.hash_of_found)];
        for source in &unit.linked {
            let other = self.of_source(&CompileUnit { source: source.clone(), ..unit.clone() })?;
            hashes.push(other.hash);
            found.push(other.hash_of_found);
            all.files.extend(other.files);
            all.paths.extend(other.paths);
            all.is_whole &= other.is_whole;
        }
        // The compiled parts are hashed in the same way.
        let [hash, hash_of_found] = [hashes, found].map(|hashes| sha256_hex(hashes.join("\n").as_bytes()));
        Some(Sources { hash, hash_of_found, ..all })
    }

    fn of_source(&self, unit: &CompileUnit) -> Option<Sources> {
        let own = unit.source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if unit.form() != SourceForm::Cuda {
            let code = regular::read(&unit.source).ok()?;
            let hash = sha256_hex(&code);
            return Some(Sources {
                hash_of_found: hash.clone(),
                hash,
                options: String::new(),
                files: vec![(own, String::from_utf8_lossy(&code).into())],
                paths: vec![unit.source.clone()],
                is_whole: true,
            });
        }
        let options = UnitOptions::parse(unit).ok()?;
        let macros: Vec<String> = unit.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let path = SearchPath { user: &options.include_dirs, toolkit: &self.toolkit };
        let inputs = self.scanner.inputs(&unit.source, &options.pre_includes, &macros, path).ok()?;
        let found: Vec<Input> = inputs.files.iter().filter(|file| file.content.is_some()).cloned().collect();
        let file = |input: &Input| {
            let name = if input.name.is_empty() { own.clone() } else { input.name.clone() };
            Some((name, Arc::clone(&input.content.as_ref()?.text)))
        };
        Some(Sources {
            hash: key::hash_of(&inputs.files),
            hash_of_found: key::hash_of(&found),
            options: key::hash_of_options(&options, unit),
            files: inputs.files.iter().filter_map(file).collect(),
            paths: inputs.paths().map(PathBuf::from).collect(),
            is_whole: inputs.whole && inputs.outside.is_empty(),
        })
    }
}

/// Reads the source of a unit and its includes within the project. `toolkit` lists the folders of the compiler's
/// headers, which are not sources. `None` if the source cannot be read or an option is not allowed.
pub fn sources(unit: &CompileUnit, project: &Project, toolkit: &[PathBuf]) -> Option<Sources> {
    SourceReader::new(project.clone(), toolkit.to_vec()).read(unit)
}
