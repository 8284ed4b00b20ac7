//! Identifies a C++ source compiled for the host by the content of all files it includes.

use std::io;
use std::path::{Path, PathBuf};

use crate::includes::{Scanner, SearchPath};
use runner_files::regular::Version;
use runner_types::{hex, sha256_hex};

/// A source with everything it includes from its own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashed {
    /// SHA-256 of all files; `None` if an include cannot be followed, so that further files may be included.
    pub digest: Option<String>,
    pub files: Vec<PathBuf>,
    /// Versions of these files.
    pub versions: Vec<Version>,
}

/// Digest of a source and everything it includes from its own folder; `None` if an include cannot be followed. Fails if
/// the source cannot be read.
pub fn digest(source: &Path) -> io::Result<Option<String>> {
    Ok(read(source)?.digest)
}

/// Reads a source and everything it includes from its own folder. Fails only if the source itself cannot be read.
pub fn read(source: &Path) -> io::Result<Hashed> {
    let folder = source.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folders: [PathBuf; 1] = [folder.to_owned()];
    let inputs = Scanner::default().inputs(source, &[], &[], SearchPath { user: &folders, toolkit: &[] })?;
    let each = inputs.files.iter().map(|file| {
        let content = file.content.as_ref().map_or_else(|| "absent".to_owned(), |content| hex(&content.digest));
        format!("{} {content}", file.name)
    });
    let text = each.collect::<Vec<_>>().join("\n");
    let digest = inputs.whole.then(|| sha256_hex(text.as_bytes()));
    let files = inputs.paths().map(Path::to_owned).collect();
    Ok(Hashed { digest, files, versions: inputs.versions().collect() })
}
