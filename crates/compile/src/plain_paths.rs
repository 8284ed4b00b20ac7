//! Compiles sources below folders whose names have quotes, backslashes or control characters.
//!
//! Compilers write paths into the strings of PTX as they are, so a quote ends the string, and the assembler refuses what
//! follows. Links with plain names in the cache lead to such folders. They stay, because line tables name them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::key::Identity;
use runner_files::atomic;
use runner_files::file_names::hashed_slug;
use runner_types::{CompileFailure, CompileUnit, Compiled};

/// A unit and its identity with plain paths only.
pub(super) struct PlainPaths {
    pub unit: CompileUnit,
    pub identity: Identity,
    /// Each link and the path that it stands for, as the manifest has it.
    links: Vec<(PathBuf, PathBuf)>,
}

impl PlainPaths {
    /// Creates the links that a unit needs; `None` if its paths are plain.
    pub fn find(unit: &CompileUnit, identity: &Identity, cache: &Cache) -> io::Result<Option<Self>> {
        let folders = &identity.options.include_dirs;
        if is_plain(&unit.source) && folders.iter().all(|folder| is_plain(folder)) {
            return Ok(None);
        }
        let (mut unit, mut identity, mut links) = (unit.clone(), identity.clone(), Vec::new());
        let mut plain = |path: &mut PathBuf| -> io::Result<()> {
            if !is_plain(path) {
                let link = link_to(path, cache)?;
                links.push((link.clone(), std::mem::replace(path, link)));
            }
            Ok(())
        };
        plain(&mut unit.source)?;
        identity.options.include_dirs.iter_mut().try_for_each(&mut plain)?;
        Ok(Some(Self { unit, identity, links }))
    }

    /// Restores the manifest's paths in a compiler's messages.
    pub fn restore(&self, failure: &CompileFailure) -> CompileFailure {
        CompileFailure { summary: self.restored(&failure.summary), log: self.restored(&failure.log) }
    }

    pub fn restore_log(&self, compiled: Compiled) -> Compiled {
        Compiled { log: self.restored(&compiled.log), ..compiled }
    }

    fn restored(&self, text: &str) -> String {
        let replaced = |text: String, (link, path): &(PathBuf, PathBuf)| {
            text.replace(&*link.to_string_lossy(), &path.to_string_lossy())
        };
        self.links.iter().fold(text.to_owned(), replaced)
    }
}

/// Whether a compiler can write the absolute path into a string.
fn is_plain(path: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    !path.to_string_lossy().contains(|c: char| matches!(c, '"' | '\\') || c.is_control())
}

/// A link with a plain name to a file or folder.
fn link_to(path: &Path, cache: &Cache) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let folder = cache.root().join("paths");
    atomic::create_folder(&folder).map_err(|error| error.source)?;
    let mut link = std::path::absolute(folder)?.join(hashed_slug(&whole.to_string_lossy()));
    // Compilers go by a source's extension.
    let extension = path.extension().and_then(|extension| extension.to_str()).filter(|_| path.is_file());
    if let Some(extension) = extension.filter(|extension| extension.chars().all(|c| c.is_ascii_alphanumeric())) {
        link.set_extension(extension);
    }
    match std::os::unix::fs::symlink(&whole, &link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::read_link(&link)? == whole => Ok(link),
        made => made.map(|()| link),
    }
}
