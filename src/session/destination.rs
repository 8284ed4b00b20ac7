//! Chooses the folder for a run's files.

use std::path::{Path, PathBuf};

use crate::cli::options::{Kind, RunOptions};
use crate::failure::Failure;
use crate::files::refuse_path_outside;
use runner_experiment::Manifest;
use runner_files::file_names::escaped;
use runner_results::journal;
use runner_results::stored::folder_of_device;
use runner_types::{DeviceInfo, Shard};

#[derive(Debug)]
pub struct Destination {
    pub dir: PathBuf,
}

impl Destination {
    /// Chooses `reports/<experiment>/<device>`, which is committed. A profile has its own folder next to it. Narrowed
    /// runs, runs against a base and journals of shards go below `target/`, so that they never overwrite the report of
    /// a full run unless `--out` says so.
    pub fn choose(options: &RunOptions, manifest: &Manifest, device: &DeviceInfo) -> Self {
        let against = options.against.against.as_ref();
        let is_narrowed = options.narrowing.describe().is_some() || against.is_some();
        let root = Path::new(if is_narrowed { "target/reports" } else { "reports" });
        let ending = match against {
            Some(base) => format!("-against-{}", escaped(base, "")),
            None if options.kind == Kind::Profile => "-counters".to_owned(),
            None if options.kind == Kind::Tune => "-tuned".to_owned(),
            None => String::new(),
        };
        let root = if options.shard.is_some() { Path::new("target/shards") } else { root };
        let shard = options.shard.map(Shard::folder);
        let own = || folder_of_device(&root.join(&manifest.name), &device.name, &ending, shard.as_deref());
        let dir = options.out.clone().unwrap_or_else(own);
        Self { dir }
    }

    /// Refuses a folder that is reached through a symbolic link, unless `--out` names it. A run against a base is also
    /// refused if `--out` names a folder with the report of a plain run.
    pub fn may_be_written(&self, options: &RunOptions) -> Result<(), Failure> {
        if options.out.is_none() {
            refuse_path_outside(&self.dir)?;
        }
        let (Some(base), Some(_)) = (&options.against.against, &options.out) else { return Ok(()) };
        // An unreadable file is not a report.
        let Ok(known) = journal::read_records(&self.dir.join(journal::RECORDS_FILE)) else { return Ok(()) };
        if known.header.command.is_some_and(|command| command.contains("--against ")) {
            return Ok(());
        }
        let dir = self.dir.display();
        Err(Failure::usage(format!(
            "--against {base} never replaces a report, and {dir} has one: name another folder with --out"
        )))
    }
}
