//! Where a run's files go.

use std::path::{Path, PathBuf};

use crate::commands::cli::RunArgs;
use crate::model::{DeviceInfo, Manifest};

/// The folder of a run.
#[derive(Debug)]
pub struct Destination {
    pub dir: PathBuf,
}

impl Destination {
    /// `reports/<experiment>/<device>`, where git finds it. A narrowed run goes under `target/`: it never overwrites
    /// the report of a full one unless `--out` says so.
    /// A profile stands beside the report of the times, in a folder of its own.
    pub fn of(args: &RunArgs, is_profile: bool, manifest: &Manifest, device: &DeviceInfo) -> Self {
        let root = if args.narrowing.describe().is_some() { Path::new("target/reports") } else { Path::new("reports") };
        let name = if is_profile { format!("{}-counters", device.slug()) } else { device.slug() };
        let dir = args.out.clone().unwrap_or_else(|| root.join(&manifest.name).join(name));
        Self { dir }
    }
}
