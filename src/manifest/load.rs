//! Reads a manifest's file.

use std::path::Path;
use std::sync::Arc;

use toml::de::DeTable;

use super::files::reason;
use super::raw::RawManifest;
use super::read::{Reader, Table};
use super::validate::validate;
use crate::model::{Diagnostic, Diagnostics, Manifest, SourceText};

/// Reads and validates a manifest. The error holds every fault that was found, each with its place.
pub fn load(path: &Path) -> Result<Manifest, Diagnostics> {
    let source = |text| Arc::new(SourceText { path: path.to_owned(), text });
    let unreadable = |fault: Diagnostic| Diagnostics::new(source(String::new()), vec![fault]);
    let bytes = std::fs::read(path).map_err(|error| {
        let fault = Diagnostic::whole(format!("cannot read the manifest: {}", reason(&error)));
        unreadable(fault.hint("name a manifest, a file such as experiments/reduce.toml"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        unreadable(Diagnostic::whole(format!("the manifest is not UTF-8: byte {place} is wrong")))
    })?;
    parse(&source(text))
}

/// Validates a manifest's text; files are looked for beside its path.
pub fn parse(source: &Arc<SourceText>) -> Result<Manifest, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        let items = errors.iter().map(syntax).collect();
        return Err(Diagnostics::new(Arc::clone(source), items));
    }
    let mut reader = Reader::new(&source.text);
    let raw = RawManifest::from_table(document.get_ref(), None, &mut reader);
    let (manifest, faults) = validate(&raw, source, reader.found);
    if faults.is_empty() { Ok(manifest) } else { Err(Diagnostics::new(Arc::clone(source), faults)) }
}

/// A fault of the TOML itself.
fn syntax(error: &toml::de::Error) -> Diagnostic {
    let message = error.message();
    match error.span() {
        Some(span) => Diagnostic::at(span, message).label("not TOML"),
        None => Diagnostic::whole(message),
    }
}
