//! Arguments of `tune`.

use std::path::PathBuf;

use clap::Args;
use search::Budget;

use super::{DisplayArgs, Narrowing, TargetArgs, TrustArgs};
use runner_types::Shard;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Exit codes: 0 the best configuration was found among those that were evaluated, 1 none of them is right, or a finalist failed.")]
pub struct TuneArgs {
    /// Manifest whose compared axes form the space.
    #[arg(required_unless_present = "simulate", conflicts_with = "simulate")]
    pub manifest: Option<PathBuf>,
    /// Search in a measured space instead, without a device: T4 or a Kernel Tuner cache (`.json`), or a table (`.csv`),
    /// optionally compressed (`.gz`).
    #[arg(long, value_name = "FILE")]
    pub simulate: Option<PathBuf>,
    /// What to minimise: on a GPU `time`, `energy` or an error of the results, such as `error_rel`; on the simulator a
    /// counter or an error; with --simulate a measurement or column. Several, comma-separated, yield their Pareto front
    /// [default: from `[search]`, or `time`, on the simulator `inst_executed`].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub objective: Vec<String>,
    /// How configurations are proposed: `portfolio`, `gaussian`, `forest`, `genetic`, `evolution`, `annealing`, `tabu`,
    /// `local`, `even`, `random` or `exhaustive`. With --simulate several, comma-separated, or `all` [default: from
    /// `[search]`, or `portfolio`].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub strategy: Vec<String>,
    /// How many configurations to evaluate, as a number or a share of the space [default: from `[search]`, or `5%`].
    #[arg(long, value_name = "N|PERCENT")]
    pub budget: Option<Budget>,
    /// Seed of the strategy [default: from `[search]`, or 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With --simulate: repeat each search with this many seeds.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "simulate")]
    pub searches: u64,
    /// With --simulate: how many configurations are evaluated at once.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "simulate")]
    pub parallel: usize,
    /// How many of the best configurations to measure at the end, in the same rounds as the baseline [default: from
    /// `[search]`, or 5].
    #[arg(long, value_name = "N", conflicts_with = "simulate")]
    pub finalists: Option<u32>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Search on several GPUs of one model at the same time: `all`, or comma-separated indices or UUIDs from `runner
    /// devices`. With `--backend sim`, search on one simulator per index.
    #[arg(long, value_name = "LIST", help_heading = "Device", conflicts_with_all = ["device", "sim_device", "simulate"])]
    pub devices: Option<String>,
    /// Do not look for races, uninitialized reads and similar errors in the simulator; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Folder of the report [default: `reports/<experiment>/<device>-tuned`, or below `target/reports/` if only part of
    /// the matrix is searched].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Evaluate first the best configurations from another size, device or revision: the `records.jsonl` of a report,
    /// or a file as for --simulate.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub prior: Option<PathBuf>,
    /// Put configurations last that reached at least twice the median in another search: a file as for --simulate,
    /// optionally with `:NAME` after it for a measurement or column; may be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub prune: Vec<String>,
    /// Continue an interrupted search; nothing is evaluated twice.
    #[arg(long, conflicts_with = "simulate")]
    pub resume: bool,
    /// Evaluate only part I of N of the space; other processes evaluate the rest and write to the same folder.
    /// `--resume` without this option reports all parts.
    #[arg(long, value_name = "I/N", conflicts_with = "simulate")]
    pub shard: Option<Shard>,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}
