//! The command line as clap parses it. [`options`](super::options) resolves it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use super::version;

const AFTER_HELP: &str = "\
First steps: `runner doctor` checks this machine, `runner plan FILE` shows what a run would do, `runner run FILE` runs \
it, on a GPU or on the simulator.

Exit codes: 0 success, 1 a case failed or has a wrong result, 2 the command line or a manifest is wrong, 3 the machine \
lacks something, 4 something became slower, 6 reports cannot be compared, 130 interrupted.";

/// Compare ways of writing a GPU kernel: which is faster, by how much, why, and is it still right?
#[derive(Debug, Parser)]
#[command(
    name = "runner",
    version,
    long_version = version::long_version(),
    propagate_version = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to use color; `NO_COLOR` is respected.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

impl Cli {
    /// Parses a command line. Hidden commands are never suggested.
    pub fn read<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words).map_err(|mut error| {
            if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
                let command = Self::command();
                names.retain(|name| command.find_subcommand(name).is_some_and(|known| !known.is_hide_set()));
                if names.is_empty() {
                    // Otherwise an empty list of tips would be printed.
                    error.remove(ContextKind::Suggested);
                } else {
                    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
                }
            }
            error
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiments: compile, check, measure and report.
    Run(RunArgs),
    /// Count what the GPU does in each case, with Nsight Compute; takes no times.
    Profile(ProfileArgs),
    /// Compare the simulator's counters with the hardware's.
    Fidelity(FidelityArgs),
    /// Compare two reports: what became faster, slower or wrong, and why.
    Compare(CompareArgs),
    /// Show the times of a report over committed revisions, and where they changed.
    History(HistoryArgs),
    /// Show what a run would do: cases, exclusions, memory and time.
    Plan(PlanArgs),
    /// Check manifests for errors.
    Check(CheckArgs),
    /// Write the reports of a finished run again.
    Report(ReportArgs),
    /// List the GPUs and their properties.
    Devices(DevicesArgs),
    /// Check this machine: driver, GPU, compiler, headers, profiler, clocks.
    Doctor(DoctorArgs),
    /// Download the pinned CUDA compiler and headers into the cache.
    Setup(SetupArgs),
    /// Print the JSON Schema of manifests.
    Schema(SchemaArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
    /// Print a man page.
    Man(ManArgs),
    /// Serve groups to run on standard input, for the dispatcher.
    #[command(name = "__worker", hide = true)]
    Worker(WorkerArgs),
    /// Compile one unit from standard input.
    #[command(name = "__compile", hide = true)]
    CompileUnit,
}

/// Which part of the matrix to run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cases")]
pub struct Narrowing {
    /// Replace the values of an axis, as in `--set n=1024,4096`; may be repeated.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub set: Vec<String>,
    /// Keep only cases for which the expression is true, as in `--filter 'n >= 2**20'`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this variant; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BackendChoice {
    /// A GPU if there is one, otherwise the simulator.
    #[default]
    Auto,
    /// An NVIDIA GPU.
    Cuda,
    /// The embedded simulator.
    Sim,
}

/// Where the kernels run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Device")]
pub struct TargetArgs {
    /// What runs the kernels.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendChoice,
    /// Number of the GPU in the list of `runner devices`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// GPU to simulate: h100, a100, v100, k80, rtx4090 or b200.
    #[arg(long, value_name = "NAME")]
    pub sim_device: Option<String>,
}

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
#[command(after_help = "\
Exit codes with --against: 0 nothing, 1 newly wrong, 4 slower, 6 incomparable; the first of 1, 4, 6 that applies.")]
pub struct RunArgs {
    /// Manifests to run, one after the other.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Do not look for races, uninitialized reads and similar errors in the simulator; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Folder of the report [default: `reports/<experiment>/<device>`, or below `target/reports/` if only a part of the
    /// matrix runs]. With several manifests, each gets a subfolder named after its experiment.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run: measure only what is missing or outdated.
    #[arg(long)]
    pub resume: bool,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub passes: PassArgs,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub against: AgainstArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}

/// What the exit code of a run says about claims.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct GateArgs {
    /// Exit with code 5 if a claim of the manifest is broken.
    #[arg(long)]
    pub gate: bool,
    /// With --gate: also if a claim is undecided or cannot be judged.
    #[arg(long, requires = "gate")]
    pub strict: bool,
}

/// What a run is compared with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Comparison")]
pub struct AgainstArgs {
    /// Also run the variants of this git revision, or of this folder laid out like the repository, in the same rounds,
    /// and say what became faster, slower or wrong.
    #[arg(long, value_name = "REV|DIR")]
    pub against: Option<String>,
    /// Smallest change of time that matters, as in `2%` [default: 1 %, or the noise of the row if that is more].
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "against")]
    pub threshold: Option<f64>,
    /// Let counters of the hardware decide, too; those of the simulator always do.
    #[arg(long, requires = "against")]
    pub gate_counters: bool,
    /// Form of the comparison.
    #[arg(long, value_enum, default_value_t, requires = "against")]
    pub format: ComparisonFormat,
    /// Also write the page for a pull request to this file.
    #[arg(long, value_name = "FILE", requires = "against")]
    pub markdown: Option<PathBuf>,
}

/// Passes besides the timings.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PassArgs {
    /// Also count what the GPU does, with Nsight Compute, in a separate pass.
    #[arg(long)]
    pub counters: bool,
    /// Also measure energy, in a separate pass that takes two seconds per case.
    #[arg(long)]
    pub energy: bool,
}

/// What a run prints.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DisplayArgs {
    /// Print errors and failed cases only.
    #[arg(long, short)]
    pub quiet: bool,
    /// How to show progress on standard error.
    #[arg(long, value_enum, default_value_t, conflicts_with = "quiet")]
    pub progress: ProgressChoice,
}

/// Whose sizes a profile uses.
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
    /// Number of the GPU in the list of `runner devices`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Folder of the report [default: `reports/<experiment>/<device>-counters`, or below `target/reports/` if only a
    /// part of the matrix runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub display: DisplayArgs,
}

#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// Report folders or `records.jsonl` files: for each experiment one from the simulator and one from
    /// `runner profile --sizes sim`.
    #[arg(required = true)]
    pub records: Vec<PathBuf>,
    /// File with the known causes of differences [default: `reports/fidelity.toml` if it exists].
    #[arg(long, value_name = "FILE")]
    pub causes: Option<PathBuf>,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ComparisonFormat {
    /// The verdict and what changed.
    #[default]
    Text,
    /// A page for a comment of a pull request.
    Markdown,
    /// Everything, for programs.
    Json,
    /// One row per case, in full precision.
    Csv,
    /// Tests that CI services show.
    Junit,
}

/// A difference that does not keep cases from being compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllowedDifference {
    Device,
    Driver,
    /// How times were taken.
    Timing,
    Work,
    Check,
    Inputs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 nothing, 1 newly wrong, 4 slower, 6 incomparable; the first of 1, 4, 6 that applies. 2 and 3 as \
everywhere.")]
pub struct CompareArgs {
    /// Report folder, tree of reports, `records.jsonl`, journal, or a path in a git revision as in
    /// `main:reports/reduce`.
    pub base: String,
    /// The same for what is compared with it.
    pub new: String,
    /// Smallest change of time that matters, as in `2%` [default: 1 %, or the noise of the row if that is more].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Compare despite these differences.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub allow: Vec<AllowedDifference>,
    /// Let counters of the hardware decide, too; those of the simulator always do.
    #[arg(long)]
    pub gate_counters: bool,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: ComparisonFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write the page for a pull request to this file.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// How a history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HistoryFormat {
    /// Changes, breaks and a line per case.
    #[default]
    Text,
    /// The same as a page, with charts if --charts writes them.
    Markdown,
    /// Everything, for programs.
    Json,
    /// One row per time, in full precision.
    Csv,
}

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Folder of a report, or of several, in a git repository.
    pub dir: PathBuf,
    /// Revisions to look at, as in `v1.0..main`: those after the first, up to the second [default: up to HEAD].
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// Keep only cases for which the expression is true, as in `--filter 'n >= 2**20'`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this variant; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Smallest change that is reported, as in `2%` [default: 0.5 %].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: HistoryFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a chart of each case to this folder, as SVG: those with changes first, at most 24.
    #[arg(long, value_name = "DIR")]
    pub charts: Option<PathBuf>,
}

/// A fraction, of a percentage with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent = number.parse::<f64>().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a percentage from 0 to 1000 is expected, as in `2%`".to_owned())
}

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

#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// Print JSON, which `runner plan --device-profile` reads.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Measure each GPU again: its clock, memory and arithmetic.
    #[arg(long)]
    pub calibrate: bool,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// CUDA major version to download [default: the newest that the driver supports].
    #[arg(long, value_name = "MAJOR")]
    pub cuda: Option<u32>,
    /// Do not download anything; fail if the compiler is missing.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to complete in.
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command to describe; without one, the program.
    pub command: Option<String>,
}

#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[arg(long)]
    pub no_sanitize: bool,
    /// Mark launches for the profiler around this process, and take no times.
    #[arg(long)]
    pub profiled: bool,
    /// Let CUPTI trace the kernels, for calibration.
    #[arg(long)]
    pub traced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Exit;

    fn refusal(word: &str) -> String {
        Cli::read(["runner", word]).map_or_else(|error| error.to_string(), |cli| format!("{cli:?}"))
    }

    #[test]
    fn a_hidden_command_is_never_suggested_and_another_is() {
        for word in ["compile", "worker", "__compil", "_worker", "__works"] {
            let said = refusal(word);
            assert!(said.starts_with(&format!("error: unrecognized subcommand '{word}'")), "{said}");
            assert!(!said.contains("__compile") && !said.contains("__worker"), "{said}");
            assert!(
                said.ends_with("'\n\nUsage: runner [OPTIONS] <COMMAND>\n\nFor more information, try '--help'.\n"),
                "{said}"
            );
        }
        let said = refusal("reprot");
        assert!(said.contains("a similar subcommand exists: 'report'"), "{said}");
    }

    #[test]
    fn the_help_names_every_exit_code() {
        let help = Cli::command().render_help().to_string().replace('\n', " ");
        let (_, codes) = help.split_once("Exit codes: ").unwrap_or_default();
        for exit in [
            Exit::Success,
            Exit::CaseFailed,
            Exit::Usage,
            Exit::Environment,
            Exit::Regression,
            Exit::Incomparable,
            Exit::Interrupted,
        ] {
            let code = format!("{} ", exit as u8);
            assert!(codes.split(", ").any(|part| part.starts_with(&code)), "{code}: {codes}");
        }
    }

    #[test]
    fn the_program_itself_may_use_a_hidden_command() {
        assert!(matches!(Cli::read(["runner", "__compile"]).map(|cli| cli.command), Ok(Command::CompileUnit)));
    }
}
