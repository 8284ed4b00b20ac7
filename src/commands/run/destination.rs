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
    pub fn of(args: &RunArgs, manifest: &Manifest, device: &DeviceInfo) -> Self {
        let root = if args.narrowing.describe().is_some() { Path::new("target/reports") } else { Path::new("reports") };
        let dir = args.out.clone().unwrap_or_else(|| root.join(&manifest.name).join(device.slug()));
        Self { dir }
    }
}
