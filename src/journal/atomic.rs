//! Files that are there whole or not at all.

use std::io::Write;
use std::path::Path;

use super::JournalError;

/// Replaces the file at `path`: written beside it, synced, renamed over it. Readers see the old bytes or the new.
///
/// Creates the folder. An interrupted write leaves the old file as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(JournalError::io("create the folder", dir))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".new");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(dir).map_err(JournalError::io("write beside", path))?;
    file.write_all(bytes).map_err(JournalError::io("write", path))?;
    file.as_file().sync_all().map_err(JournalError::io("sync", path))?;
    file.persist(path).map_err(|e| JournalError::io("replace", path)(e.error))?;
    // The rename itself lasts once the folder is synced; a file system that cannot do that has done its best.
    if let Ok(folder) = std::fs::File::open(dir) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::write_atomically;

    #[test]
    fn the_file_is_replaced_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/report.md");
        write_atomically(&path, b"first").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        let error = write_atomically(&dir.path().join("file/report.md"), b"x").unwrap_err().to_string();
        assert!(error.starts_with("cannot create the folder") && error.contains("file"), "{error}");
    }
}
