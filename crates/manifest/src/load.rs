//! Loads a manifest from its file: reads it, parses the TOML and validates it within a project.
//!
//! Faults are collected, so that the user sees all of them at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::DeTable;

use super::files::reason;
use super::raw::RawManifest;
use super::read::Reader;
use super::validate::validate;
use runner_experiment::{Manifest, PackageSpec};
use runner_files::project::Project;
use runner_files::regular;
use runner_lang::diagnostics::nearest;
use runner_lang::diagnostics::{Diagnostic, Diagnostics};
use runner_types::SourceText;

const MOST_SYNTAX_FAULTS: usize = 100;

const LONGEST: u64 = 8 << 20;

const HINT: &str = "name a manifest, a TOML file such as experiments/reduce.toml";

/// Reads and validates a manifest within its own project. The error contains every fault with its location.
pub fn load(path: &Path) -> Result<Manifest, Diagnostics> {
    load_within(path, Project::from_manifest(path))
}

/// Reads and validates a manifest whose files are in `project`.
pub fn load_within(path: &Path, project: Project) -> Result<Manifest, Diagnostics> {
    let source = |text| Arc::new(SourceText { path: path.to_owned(), text });
    let unreadable = |fault: Diagnostic| Diagnostics::new(source(String::new()), vec![fault]);
    let bytes = regular::read_up_to(path, LONGEST).map_err(|error| {
        let fault = Diagnostic::whole(format!("cannot read the manifest: {}", reason(&error)));
        if path.is_file() {
            return unreadable(fault);
        }
        let intended = intended(path).map(|intended| format!("did you mean `{}`?", intended.display()));
        unreadable(fault.hint(intended.as_deref().unwrap_or(HINT)))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        unreadable(Diagnostic::whole(format!("the manifest is not UTF-8: byte {place} is invalid")))
    })?;
    parse_within(&source(text), project)
}

/// The manifest that a wrong path probably refers to: the same name with the extension `.toml`, or the most similar
/// name in the folder.
fn intended(path: &Path) -> Option<PathBuf> {
    let with_extension = path.with_extension("toml");
    if with_extension.is_file() {
        return Some(with_extension);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
    let is_manifest = |name: &&str| Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let manifests = names.iter().map(String::as_str).filter(is_manifest);
    nearest(with_extension.file_name()?.to_str()?, manifests).map(|name| path.with_file_name(name))
}

/// Validates a manifest's text. Files are looked up relative to its path, within its own project.
pub fn parse(source: &Arc<SourceText>) -> Result<Manifest, Diagnostics> {
    parse_within(source, Project::from_manifest(&source.path))
}

/// Published packages that a manifest uses, including those not in the cache yet. Empty if the manifest cannot be read.
pub fn packages(path: &Path) -> Vec<PackageSpec> {
    let text = regular::read_up_to(path, LONGEST).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let source = Arc::new(SourceText { path: path.to_owned(), text: text.unwrap_or_default() });
    let (document, _) = DeTable::parse_recoverable(&source.text);
    let mut reader = Reader::new(&source.text);
    let raw = RawManifest::from_document(document.get_ref(), &mut reader);
    if raw.packages.is_none() {
        return Vec::new();
    }
    validate(&raw, &source, Project::from_manifest(path), reader.found).0.packages
}

/// Validates a manifest's text. Files must be in `project`.
pub fn parse_within(source: &Arc<SourceText>, project: Project) -> Result<Manifest, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    if let Some(first) = errors.first() {
        let is_toml = source.path.extension().is_some_and(|extension| extension == "toml");
        // If the file is probably not TOML, the first fault is enough.
        let items = if is_toml {
            errors.iter().take(MOST_SYNTAX_FAULTS).map(syntax).collect()
        } else {
            vec![syntax(first).hint(HINT)]
        };
        return Err(Diagnostics::new(Arc::clone(source), items));
    }
    let mut reader = Reader::new(&source.text);
    let raw = RawManifest::from_document(document.get_ref(), &mut reader);
    let (manifest, (faults, omitted)) = validate(&raw, source, project, reader.found);
    if faults.is_empty() {
        Ok(manifest)
    } else {
        Err(Diagnostics { omitted, ..Diagnostics::new(Arc::clone(source), faults) })
    }
}

fn syntax(error: &toml::de::Error) -> Diagnostic {
    let message = error.message();
    match error.span() {
        Some(span) => Diagnostic::at(span, message).label("not TOML"),
        None => Diagnostic::whole(message),
    }
}
