//! Where a run's files go.

use std::path::{Path, PathBuf};

use crate::commands::options::{Kind, RunOptions};
use crate::experiment::Manifest;
use crate::format::slug;
use crate::model::DeviceInfo;

/// The folder of a run.
#[derive(Debug)]
pub struct Destination {
    pub dir: PathBuf,
}

impl Destination {
    /// `reports/<experiment>/<device>`, which is committed. A profile has a folder of its own beside it. A narrowed run
    /// goes below `target/`, so that it never overwrites the report of a full run unless `--out` says so.
    pub fn of(options: &RunOptions, manifest: &Manifest, device: &DeviceInfo) -> Self {
        let is_narrowed = options.narrowing.describe().is_some();
        let root = Path::new(if is_narrowed { "target/reports" } else { "reports" });
        let name =
            if options.kind == Kind::Profile { format!("{}-counters", slug(&device.name)) } else { slug(&device.name) };
        let dir = options.out.clone().unwrap_or_else(|| root.join(&manifest.name).join(name));
        Self { dir }
    }
}
