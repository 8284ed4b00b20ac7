//! Defines the arguments of `tune`.

use std::path::PathBuf;

use clap::Args;
use search::Budget;

use super::{DisplayArgs, Narrowing, TargetArgs, TrustArgs};
use runner_types::Shard;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Exit codes: 0 the best configuration was found among those that were evaluated, 1 none of them is right, or a finalist failed.")]
pub struct TuneArgs {
    /// Manifest whose compared axes are the space.
    #[arg(required_unless_present = "simulate", conflicts_with = "simulate")]
    pub manifest: Option<PathBuf>,
    /// Search in a measured space instead, without a device: T4 or a cache of Kernel Tuner (`.json`), or a table (`.csv`),
    /// also compressed (`.gz`).
    #[arg(long, value_name = "FILE")]
    pub simulate: Option<PathBuf>,
    /// What is minimised: on a GPU `time`, `energy` or an error of the results, such as `error_rel`; on the simulator a
    /// counter or an error; with --simulate a measurement or column. Several between commas give their front [default:
    /// that of `[search]`, or `time`, on the simulator `inst_executed`].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub objective: Vec<String>,
    /// How configurations are proposed: `portfolio`, `gaussian`, `forest`, `genetic`, `evolution`, `annealing`, `tabu`,
    /// `local`, `even`, `random` or `exhaustive`. With --simulate several between commas, or `all`
    /// [default: that of `[search]`, or `portfolio`].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub strategy: Vec<String>,
    /// How many configurations are evaluated, as a number or a share of the space [default: that of `[search]`, or `5%`].
    #[arg(long, value_name = "N|PERCENT")]
    pub budget: Option<Budget>,
    /// Seed of the strategy [default: that of `[search]`, or 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With --simulate: repeat each search with this many seeds.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "simulate")]
    pub searches: u64,
    /// With --simulate: how many configurations are evaluated at once.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "simulate")]
    pub parallel: usize,
    /// How many of the best configurations are measured at the end, in the same rounds as the baseline
    /// [default: that of `[search]`, or 5].
    #[arg(long, value_name = "N", conflicts_with = "simulate")]
    pub finalists: Option<u32>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Search on several GPUs of one model at the same time: `all`, or numbers and UUIDs of `runner devices` between
    /// commas. With `--backend sim`, on a simulator for each number.
    #[arg(long, value_name = "LIST", help_heading = "Device", conflicts_with_all = ["device", "sim_device", "simulate"])]
    pub devices: Option<String>,
    /// Do not look for races, uninitialized reads and similar errors in the simulator; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Folder of the report [default: `reports/<experiment>/<device>-tuned`, or below `target/reports/` if only a part of
    /// the matrix is searched].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Evaluate first what was best at another size, on another device or at another revision: the `records.jsonl` of a
    /// report, or a file as for --simulate.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub prior: Option<PathBuf>,
    /// Put configurations last that another search found beyond twice its median: a file as for --simulate, with `:NAME`
    /// after it for a measurement or column; may be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub prune: Vec<String>,
    /// Continue an interrupted search: what it has evaluated is not evaluated again.
    #[arg(long, conflicts_with = "simulate")]
    pub resume: bool,
    /// Evaluate only part I of N of the space; other processes evaluate the rest and write to the same folder.
    /// `--resume` without this option reports all of it.
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
