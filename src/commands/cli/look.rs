//! Commands that look at manifests and reports: `plan`, `check`, `report`.

use std::path::PathBuf;

use clap::Args;

use super::{Narrowing, TargetArgs};

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Manifest to plan.
    pub manifest: PathBuf,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Plan for the device described in this file, written by `runner devices --json` on another machine.
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pub device_profile: Option<PathBuf>,
    /// Print every case as a line of JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Manifests to check.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of a report, with `records.jsonl` or `journal.jsonl`.
    pub dir: PathBuf,
    /// Compute the records again from all samples in the journal.
    #[arg(long)]
    pub from_journal: bool,
}
