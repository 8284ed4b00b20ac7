//! Names report folders after devices.

use std::path::{Path, PathBuf};

use crate::journal;
use runner_files::file_names::{hashed_slug, slug};

/// Folder for a report of this device: `ending` is appended to the name, and `below` is a subfolder. Names of devices
/// may differ only in characters that a folder name cannot contain. If the folder already has the report of such a
/// device, that report is kept, and the new folder's name gets digits of a hash.
pub fn folder_of_device(parent: &Path, device: &str, ending: &str, below: Option<&str>) -> PathBuf {
    let folder = |name: String| {
        let own = parent.join(name + ending);
        below.map_or_else(|| own.clone(), |below| own.join(below))
    };
    let usual = folder(slug(device));
    let is_of_other = journal::device_of(&usual).is_some_and(|other| other != device);
    if is_of_other || slug(device).is_empty() { folder(hashed_slug(device)) } else { usual }
}
