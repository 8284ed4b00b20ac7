//! Files that a unit is compiled from, read without compiling. A stored result is known to be current by their hash.

use std::path::PathBuf;
use std::sync::Arc;

use super::key;
use super::options::UnitOptions;
use crate::includes::{Scanner, SearchPath};
use crate::model::{CompileUnit, sha256_hex};
use crate::project::Project;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Hash as in [`Compiled::source`](crate::model::Compiled::source).
    pub hash: String,
    /// Name and text, the source first; includes under their `#include` name.
    pub files: Vec<(String, Arc<str>)>,
    pub paths: Vec<PathBuf>,
    /// Whether all included files were found.
    pub is_whole: bool,
}

/// Reads the source of a unit and its includes from the project, without `toolkit`, the compiler's headers. `None` if
/// the source is unreadable or an option is not allowed.
pub fn sources(unit: &CompileUnit, project: &Project, toolkit: &[PathBuf]) -> Option<Sources> {
    let mut all = of_source(unit, project, toolkit)?;
    if unit.linked.is_empty() {
        return Some(all);
    }
    let mut hashes = vec![std::mem::take(&mut all.hash)];
    for source in &unit.linked {
        let other = of_source(&CompileUnit { source: source.clone(), ..unit.clone() }, project, toolkit)?;
        hashes.push(other.hash);
        all.files.extend(other.files);
        all.paths.extend(other.paths);
        all.is_whole &= other.is_whole;
    }
    // The compiled parts are hashed in the same way.
    Some(Sources { hash: sha256_hex(hashes.join("\n").as_bytes()), ..all })
}

fn of_source(unit: &CompileUnit, project: &Project, toolkit: &[PathBuf]) -> Option<Sources> {
    let options = UnitOptions::parse(unit).ok()?;
    let macros: Vec<String> = unit.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let path = SearchPath { user: &options.include_dirs, toolkit };
    let inputs =
        Scanner::confined_to(project.clone()).inputs(&unit.source, &options.pre_includes, &macros, path).ok()?;
    let own = unit.source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let file = |input: &crate::includes::Input| {
        let name = if input.name.is_empty() { own.clone() } else { input.name.clone() };
        Some((name, Arc::clone(&input.content.as_ref()?.text)))
    };
    let is_whole = inputs.whole && inputs.outside.is_empty();
    let paths = inputs.paths().map(PathBuf::from).collect();
    let files = inputs.files.iter().filter_map(file).collect();
    Some(Sources { is_whole, hash: key::hash_of(&inputs.files), files, paths })
}
