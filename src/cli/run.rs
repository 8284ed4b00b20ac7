//! Arguments of `run`, `show` and `profile`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::compare::{ComparisonFormat, percent};
use super::{Narrowing, TargetArgs, TrustArgs};
use runner_types::Shard;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ProgressChoice {
    /// Bars on a terminal, otherwise lines.
    #[default]
    Auto,
    /// Progress bars; lines if standard error is not a terminal.
    Bars,
    /// One line per case; a summary every few seconds if there are thousands.
    Lines,
    /// Every event as a line of JSON.
    Json,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit codes: 0 success, 1 a case failed or has a wrong result, 5 broken claim (--gate). With \
--against: 0 no regression, 1 newly wrong, 5 broken claim, 4 slower or more work, 6 not comparable: the first of 1, \
5, 4, 6 that applies.")]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct RunArgs {
    /// Manifests to run, one after the other. A folder stands for all manifests in it and its subfolders.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
    /// Folders among the manifests, which are replaced by the manifests in them.
    #[arg(skip)]
    pub folders: Vec<PathBuf>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Run on several GPUs of one model at the same time: `all`, or comma-separated indices or UUIDs from `runner
    /// devices`. With `--backend sim`, run on one simulator per index.
    #[arg(long, value_name = "LIST", help_heading = "Device",
          conflicts_with_all = ["device", "sim_device", "shard", "against", "counters", "memcheck", "json"])]
    pub devices: Option<String>,
    /// Turn the simulator's sanitizer off; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Folder of the report; with several manifests, each gets a subfolder [default: `reports/<experiment>/<device>`,
    /// or below `target/reports/` if only part of the matrix runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run: measure only what is missing or outdated.
    #[arg(long)]
    pub resume: bool,
    /// Run only shard I of N and write a journal for `runner merge` [default folder:
    /// `target/shards/<experiment>/<device>/<I>-of-<N>`].
    #[arg(long, value_name = "I/N", conflicts_with = "against")]
    pub shard: Option<Shard>,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub passes: PassArgs,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub against: AgainstArgs,
    /// Print every event as a line of JSON on standard output.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write the buffers of each case's first run and both sides of its checks as `.npy`, and the output of kernels.
    #[arg(long, value_name = "DIR", conflicts_with = "devices")]
    pub keep_outputs: Option<PathBuf>,
    /// After the run, list the N cases that took the longest.
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "devices"])]
    pub slowest: Option<usize>,
    /// Run on the simulator, and again whenever a file of the experiment changes.
    #[arg(long, conflicts_with_all = ["devices", "against", "shard", "counters", "json", "resume"])]
    pub watch: bool,
    #[command(flatten)]
    pub display: DisplayArgs,
}

#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Manifest of the case.
    pub manifest: PathBuf,
    /// Case to run: a variant, with axis values if it has several cases, as in `'sum[n = 1024]'`.
    pub case: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Replace the values of an axis, as in `--set n=1024`; may be repeated.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub set: Vec<String>,
    /// Write the buffers and both sides of the checks to this folder, as `.npy`.
    #[arg(long, value_name = "DIR", conflicts_with = "code")]
    pub dump: Option<PathBuf>,
    /// Show buffers of this size by row and column, as in `--shape 1024x512`, or a single buffer, as in `--shape
    /// out=4x8`; may be repeated.
    #[arg(long, value_name = "[BUFFER=]SHAPE", conflicts_with = "code")]
    pub shape: Vec<String>,
    /// Also show elements of a buffer, as in `--element 'out[3, 0..8]'`; may be repeated.
    #[arg(long, value_name = "BUFFER[INDEX]", conflicts_with = "code")]
    pub element: Vec<String>,
    /// Print the PTX of the case's kernels instead of running it.
    #[arg(long, help_heading = "Code", group = "code")]
    pub ptx: bool,
    /// Print the machine code of the case's kernels for the device instead of running it.
    #[arg(long, help_heading = "Code", group = "code")]
    pub sass: bool,
    /// Print the sources of the case's kernels; on the simulator, with what was executed on each line and the machine
    /// code compiled from it.
    #[arg(long, help_heading = "Code", group = "code")]
    pub source: bool,
    /// Print the output of `--source` as JSON.
    #[arg(long, requires = "source", conflicts_with_all = ["csv", "sarif", "html", "ptx", "sass"])]
    pub json: bool,
    /// Print the output of `--source` as CSV.
    #[arg(long, requires = "source", conflicts_with_all = ["sarif", "html", "ptx", "sass"])]
    pub csv: bool,
    /// Print as SARIF, for code hosts, the fault that ended the case and what the counts of `--source` suggest.
    #[arg(long, requires = "source", conflicts_with_all = ["html", "ptx", "sass"])]
    pub sarif: bool,
    /// Write the output of `--source` as an HTML page, with sources, PTX and machine code side by side, to this file or
    /// into a report's folder.
    #[arg(long, value_name = "FILE", requires = "source", conflicts_with_all = ["ptx", "sass"])]
    pub html: Option<PathBuf>,
    /// Turn the simulator's sanitizer off; bounds are still checked.
    #[arg(long)]
    pub no_sanitize: bool,
    /// Check the case on a second set of inputs, however long it takes.
    #[arg(long)]
    pub thorough: bool,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
}

/// How claims and checks affect the exit code of a run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct GateArgs {
    /// Exit with code 5 if a claim of the manifest is broken; --against always does so.
    #[arg(long)]
    pub gate: bool,
    /// Exit with code 1 if a check accepts wrong results; with --gate, also fail if a claim is undecided or not judged.
    /// With --against, exit with code 6 instead if a check accepts wrong results or is loosened, or if a claim, a case
    /// or an experiment is missing.
    #[arg(long)]
    pub strict: bool,
}

/// What to compare a run with.
#[derive(Debug, Clone, Default, Args)]
pub struct AgainstArgs {
    /// Also run the variants of this git revision or folder, in the same rounds, and compare.
    #[arg(help_heading = "Comparison", long, value_name = "REV|DIR")]
    pub against: Option<String>,
    /// Smallest change that matters, as in `2%` [default: for times 0.5 %, or the row's noise if that is more; for
    /// counts 1 %].
    #[arg(help_heading = "Comparison", long, value_name = "PERCENT", value_parser = percent, requires = "against")]
    pub threshold: Option<f64>,
    /// Let hardware counters decide, too.
    #[arg(help_heading = "Comparison", long, requires = "against")]
    pub gate_counters: bool,
    /// Output format of the comparison.
    #[arg(help_heading = "Comparison", long, value_enum, default_value_t, requires = "against")]
    pub format: ComparisonFormat,
    /// Also write a comment for the pull request to this file.
    #[arg(help_heading = "Comparison", long, value_name = "FILE", requires = "against")]
    pub markdown: Option<PathBuf>,
    /// Maximum size of that comment in bytes; the least important rows are omitted first [default: GitHub's limit for a
    /// comment].
    #[arg(help_heading = "Comparison", long, value_name = "BYTES", requires = "markdown")]
    pub markdown_limit: Option<usize>,
}

/// Passes and checks besides the timings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct PassArgs {
    /// Also count what the GPU does, with Nsight Compute, in a separate pass.
    #[arg(long)]
    pub counters: bool,
    /// Also run each case under compute-sanitizer, in a separate pass; a finding fails the case.
    #[arg(long)]
    pub memcheck: bool,
    /// Also measure energy, in a separate pass that takes two seconds per case.
    #[arg(long)]
    pub energy: bool,
    /// On the simulator, check every case on a second set of inputs, however long it takes, as on a GPU.
    #[arg(long)]
    pub thorough: bool,
    /// Also keep counts per source line, from the simulator or, with --counters, from a GPU.
    #[arg(long)]
    pub lines: bool,
    /// Spread the samples of each group over N processes [default: as many as the precision needs, at most 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: Option<u32>,
}

/// What a run prints.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DisplayArgs {
    /// Print only errors and failed cases.
    #[arg(long, short)]
    pub quiet: bool,
    /// How to show progress on standard error.
    #[arg(long, value_enum, default_value_t, conflicts_with = "quiet")]
    pub progress: ProgressChoice,
}

/// Which sizes a profile uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Sizes {
    /// The axes of the manifest for a GPU.
    #[default]
    Cuda,
    /// The axes of `[on.sim]`, to compare the counters with the simulator's.
    Sim,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Manifest to profile.
    pub manifest: PathBuf,
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// Which axes to use.
    #[arg(long, value_enum, default_value_t)]
    pub sizes: Sizes,
    /// Also count per source line, from Nsight Compute's source page.
    #[arg(long)]
    pub source: bool,
    /// Index of the GPU in the list of `runner devices`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Folder of the report [default: `reports/<experiment>/<device>-counters`, or below `target/reports/` if only part
    /// of the matrix runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}
