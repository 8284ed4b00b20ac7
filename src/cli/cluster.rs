//! Commands for clusters: `submit`, `status`, `collect`, and the task that a batch script runs.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strum::VariantNames as _;

use super::{Narrowing, PassArgs, TargetArgs, TrustArgs};
use runner_cluster::{SchedulerKind, Seconds};

fn scheduler(text: &str) -> Result<SchedulerKind, String> {
    text.to_lowercase().parse().map_err(|_| format!("use one of {}", SchedulerKind::VARIANTS.join(", ")))
}

#[derive(Debug, PartialEq, Args)]
pub struct SubmitArgs {
    /// Manifests to run.
    #[arg(required_unless_present = "again", value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
    /// Repeat this job's command. Only --dry-run, --wait, --rerun, --after, --offline and options that permit
    /// something can be added.
    #[arg(long, value_name = "JOB")]
    pub again: Option<PathBuf>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// GPU of the nodes, in a file that `runner devices --json` wrote there.
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pub device_profile: Option<PathBuf>,
    /// Turn the simulator's sanitizer off; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Name of the job, whose folder is `target/jobs/NAME` [default: derived from the manifests and options].
    #[arg(long)]
    pub name: Option<String>,
    /// Folder of the reports [default: `reports/<experiment>/<device>`].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Search each manifest in this many shards, as `runner tune` does, then measure the finalists. Options after `--`
    /// are passed to `tune`.
    #[arg(long, value_name = "SHARDS", conflicts_with_all = [
        "device_profile", "rerun", "counters", "energy", "lines", "memcheck", "processes", "thorough", "compare_with",
        "gate", "queue",
    ])]
    pub tune: Option<NonZeroU32>,
    /// Options of `tune`, as in `-- --budget 400`.
    #[arg(last = true, requires = "tune", value_name = "OPTION")]
    pub options: Vec<String>,
    #[command(flatten)]
    pub sending: SendingArgs,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub passes: PassArgs,
    #[command(flatten)]
    pub verdict: VerdictArgs,
    #[command(flatten)]
    pub site: SiteArgs,
    /// Words of the command that is run again; empty for those of this process.
    #[arg(skip)]
    pub words: Vec<String>,
}

/// What the collecting job says about the results.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct VerdictArgs {
    /// Compare the reports with those of this git revision, and show their history.
    #[arg(long, value_name = "REV")]
    pub compare_with: Option<String>,
    /// Exit with code 5 if a claim of a manifest is broken.
    #[arg(long)]
    pub gate: bool,
}

/// Whether tasks are submitted and waited for.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct SendingArgs {
    /// Print the batch scripts and the commands that submit them; write and submit nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until every task has ended, collect the results, and exit as `runner collect` does.
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Run only these shards, even if they have results: `failed`, `lost`, `all`, or one such as `3/40` or `reduce
    /// 3/40`; may be repeated.
    #[arg(long, value_name = "SHARD")]
    pub rerun: Vec<Rerun>,
    /// Begin when the tasks of this job have ended, successfully or not; may be repeated. Not for the schedulers
    /// without dependencies between jobs, hyperqueue and kubernetes.
    #[arg(long, value_name = "JOB")]
    pub after: Vec<PathBuf>,
}

/// Which shards to run again.
#[derive(Debug, Clone, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Rerun {
    /// Shards whose task ended without all results.
    Failed,
    /// Shards whose task the scheduler does not know.
    Lost,
    /// Every shard of the job.
    All,
    /// The shard with this name.
    #[strum(default)]
    Shard(String),
}

/// What the scheduler needs to know. Each option overrides the key of the same name in `cluster.toml`.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize)]
pub struct SiteArgs {
    /// Scheduler of the tasks: slurm, pbs, lsf, flux, hyperqueue or kubernetes [default: slurm]. For all except Slurm,
    /// scripts are written but not submitted.
    #[arg(help_heading = "Scheduler", long, value_name = "NAME", value_parser = scheduler)]
    pub scheduler: Option<SchedulerKind>,
    /// Partition of the tasks.
    #[arg(help_heading = "Scheduler", long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Account that is charged.
    #[arg(help_heading = "Scheduler", long, value_name = "NAME")]
    pub account: Option<String>,
    /// Quality of service.
    #[arg(help_heading = "Scheduler", long, value_name = "NAME")]
    pub qos: Option<String>,
    /// Generic resources of a task, as in `gpu:h100:1`.
    #[arg(help_heading = "Scheduler", long, value_name = "LIST")]
    pub gres: Option<String>,
    /// GPUs of a task, as in `1` or `h100:1`.
    #[arg(help_heading = "Scheduler", long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Features that a node must have.
    #[arg(help_heading = "Scheduler", long, value_name = "FEATURES")]
    pub constraint: Option<String>,
    /// Host memory of a task, as in `32G`.
    #[arg(help_heading = "Scheduler", long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// CPU cores of a task.
    #[arg(help_heading = "Scheduler", long, value_name = "N")]
    pub cpus: Option<NonZeroU32>,
    /// Time limit of a task, as in `2h` [default: derived from the estimate].
    #[arg(help_heading = "Scheduler", long, value_name = "DURATION")]
    pub time: Option<Seconds>,
    /// Environment module to load; may be repeated.
    #[arg(help_heading = "Scheduler", long = "module", value_name = "NAME")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Further option of the scheduler, one word as in `--extra=--name=value` or `--extra=-x`; may be repeated.
    #[arg(help_heading = "Scheduler", long, value_name = "OPTION", allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<String>,
    /// Maximum number of concurrent tasks.
    #[arg(help_heading = "Scheduler", long, value_name = "N")]
    pub throttle: Option<NonZeroU32>,
    /// Maximum number of tasks in the scheduler's queue; the collecting job submits the rest.
    #[arg(help_heading = "Scheduler", long, value_name = "N")]
    pub queue: Option<NonZeroU32>,
    /// Maximum size of a job array [default: the scheduler's limit].
    #[arg(help_heading = "Scheduler", long, value_name = "N")]
    pub max_array: Option<NonZeroU32>,
    /// Minimum estimated work per task [default: 10min].
    #[arg(help_heading = "Scheduler", long, value_name = "DURATION")]
    pub min_task_time: Option<Seconds>,
    /// How often a task may ask to be requeued [default: 3].
    #[arg(help_heading = "Scheduler", long, value_name = "N")]
    pub requeues: Option<u32>,
    /// How long before its time limit a task stops and asks to be requeued [default: 2min].
    #[arg(help_heading = "Scheduler", long, value_name = "DURATION")]
    pub warning: Option<Seconds>,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Folder of the job, as `runner submit` prints it [default: one line for each job in `target/jobs`].
    pub job: Option<PathBuf>,
    /// Print one line of JSON for each job.
    #[arg(long)]
    pub json: bool,
    /// Print again every five seconds, until no task is queued or running and the results are collected.
    #[arg(long, requires = "job")]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Folders of jobs to remove, whatever their age [default: all in `target/jobs`].
    #[arg(value_name = "JOB")]
    pub jobs: Vec<PathBuf>,
    /// Keep jobs that were submitted in this time.
    #[arg(long, value_name = "DURATION", default_value = "30days", conflicts_with = "jobs")]
    pub older_than: Seconds,
    /// Also remove jobs without results of some shards, and those whose results are not collected.
    #[arg(long)]
    pub incomplete: bool,
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Folder of the job, as `runner submit` prints it.
    pub job: PathBuf,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Folder of the job, as `runner submit` prints it.
    pub job: PathBuf,
    /// Task as `runner status` names it, such as `1234_7`, or the id of the collecting job [default: the last line of each].
    pub task: Option<String>,
}

#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Folder of the job, as `runner submit` prints it.
    pub job: PathBuf,
    /// Folder of the reports [default: the job's, which must be below the working directory].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run this command at the end, with the outcome on its standard input.
    #[arg(long, value_name = "COMMAND", hide = true)]
    pub notify: Option<String>,
    /// Submit the tasks that a limit on queued tasks has held back, with the script that has this hash.
    #[arg(long, value_name = "HASH", hide = true, requires = "own_script")]
    pub send_rest: Option<String>,
    /// The script that runs this command, with which it is submitted again.
    #[arg(long, value_name = "FILE", hide = true, requires = "send_rest")]
    pub own_script: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TaskArgs {
    /// Folder of the job.
    pub job: PathBuf,
    /// Number of the submission.
    pub submission: u32,
    /// Number of the task.
    pub task: usize,
    /// Identity of the files to run [default: that in the submission].
    #[arg(long, value_name = "HASH")]
    pub snapshot: Option<String>,
    #[command(flatten)]
    pub trust: TrustArgs,
    /// Arguments of `runner tune`. The task runs one shard of the search, or what follows the shards.
    #[arg(last = true, value_name = "ARGUMENT")]
    pub search: Vec<OsString>,
}
