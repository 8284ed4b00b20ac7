//! Commands that look at manifests and reports: `list`, `plan`, `check`, `report`, `templates`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Narrowing, ReachArgs, TargetArgs};

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Manifests, or folders that contain them [default: `experiments`].
    #[arg(value_name = "MANIFEST|DIR")]
    pub manifests: Vec<PathBuf>,
    /// Print a line of JSON per experiment, with every value of its axes.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Manifest to plan.
    pub manifest: PathBuf,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Plan for the device in this file, which `runner devices --json` wrote on another machine.
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pub device_profile: Option<PathBuf>,
    /// Print every case as a line of JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Manifests to check.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
    /// Print a line of JSON per manifest, with every fault and its place.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct ReportArgs {
    /// Report folders, each with `records.jsonl` or `journal.jsonl`; with `--check` also trees of them [default:
    /// `reports`], with `--html` one folder or tree.
    #[arg(value_name = "DIR", required_unless_present = "check")]
    pub dirs: Vec<PathBuf>,
    /// Recompute the records from all samples in the journal.
    #[arg(long)]
    pub from_journal: bool,
    /// Write nothing. Fail with exit code 1 if a file differs from what its records generate, and name reports that
    /// were measured before their sources or their manifest changed.
    #[arg(long, conflicts_with = "from_journal")]
    pub check: bool,
    /// With `--check`, fail with exit code 6 if a report was measured before its sources or its manifest changed.
    #[arg(long, requires = "check")]
    pub strict: bool,
    /// Write only one file for a browser, with every case and, if available, its samples and source.
    #[arg(long, conflicts_with_all = ["from_journal", "check"])]
    pub html: bool,
    /// File of --html [default: `report.html` in the folder].
    #[arg(long, short = 'o', value_name = "FILE", requires = "html")]
    pub out: Option<PathBuf>,
    /// Render `report.md` with this template, now and in later runs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "html"])]
    pub template: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TemplatesArgs {
    #[command(subcommand)]
    pub action: TemplatesAction,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TemplatesAction {
    /// Print the name and purpose of each template.
    List,
    /// Write the templates to a folder.
    Export {
        /// Destination folder.
        #[arg(default_value = "templates")]
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
If several runs contain a group, the last complete one counts. Results of different devices, drivers, compilers or
clock settings are never mixed: each gets its own report.

Exit codes: 0 nothing is missing, 1 a case failed or is missing, 2 or 3 the journals cannot be merged.")]
pub struct MergeArgs {
    /// Journals, or folders that contain them directly or in subfolders.
    #[arg(required = true, value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// Folder of the report [default: `reports/<experiment>/<device>`]. Several reports get subfolders.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
