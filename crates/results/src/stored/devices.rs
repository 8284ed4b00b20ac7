//! Names the folders of reports after devices.

use std::path::{Path, PathBuf};

use crate::journal;
use runner_files::file_names::{hashed_slug, slug};

/// Returns the folder for a report of the device with this name: `ending` follows the name, and `below` is a folder
/// within. Names of devices may differ only in signs that a folder's name does not have. If the folder has the report of
/// such a device, digits of a hash tell them apart, and that report is kept.
pub fn folder_of_device(parent: &Path, device: &str, ending: &str, below: Option<&str>) -> PathBuf {
    let folder = |name: String| {
        let own = parent.join(name + ending);
        below.map_or_else(|| own.clone(), |below| own.join(below))
    };
    let usual = folder(slug(device));
    let is_of_other = journal::device_of(&usual).is_some_and(|other| other != device);
    if is_of_other || slug(device).is_empty() { folder(hashed_slug(device)) } else { usual }
}
