//! `runner templates`: lists and exports the templates of pages; and reads that of a manifest.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::cli::{TemplatesAction, TemplatesArgs};
use super::{Console, Exit, Failure};
use crate::atomic;
use crate::experiment::Manifest;
use crate::model::{Diagnostic, Diagnostics, PageTemplate};
use crate::regular;
use crate::render::{SHIPPED, Templates};

/// The extension of templates.
const EXTENSION: &str = "tera";

pub fn run(args: &TemplatesArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.action {
        TemplatesAction::List => {
            for (name, what, _) in SHIPPED {
                console.print(&format!("{:<17} {what}\n", format!("{name}.{EXTENSION}")))?;
            }
        }
        TemplatesAction::Export { dir } => {
            for (name, _, text) in SHIPPED {
                let path = dir.join(format!("{name}.{EXTENSION}"));
                if fs::read_to_string(&path).is_ok_and(|there| there != text) {
                    return Err(Failure::usage(format!(
                        "{} is there and differs: name another folder",
                        path.display()
                    )));
                }
                atomic::write(&path, text.as_bytes()).map_err(|error| Failure::environment(error.to_string()))?;
                console.say(&format!("wrote {}", path.display()));
            }
        }
    }
    Ok(Exit::Success)
}

/// The template that a manifest names. It must parse.
pub fn of_manifest(manifest: &Manifest, console: &Console) -> Result<Option<PageTemplate>, Failure> {
    let Some((path, span)) = &manifest.template else { return Ok(None) };
    let refused = |message: String, hint: &str| {
        let fault = Diagnostic::at(span.clone(), message).hint(hint);
        Failure::faults(&Diagnostics::new(Arc::clone(&manifest.source), vec![fault]), console)
    };
    let read = read(path).map_err(|failure| {
        refused(
            failure.message,
            "docs/reference/templates.md describes templates; the path is relative to the manifest",
        )
    })?;
    Ok(Some(read))
}

/// A template from a file. Its syntax is checked; what it uses is only known when a page is made.
pub fn read(path: &Path) -> Result<PageTemplate, Failure> {
    let text = regular::read_text(path)
        .map_err(|error| Failure::usage(format!("cannot read the template {}: {error}", path.display())))?;
    let template = PageTemplate { path: path.display().to_string(), text };
    Templates::with(Some(&template)).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(template)
}
