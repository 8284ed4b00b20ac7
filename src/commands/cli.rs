//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use crate::model::BackendKind;
use crate::progress::Style;

/// Where to begin, and what a script needs to know.
const AFTER_HELP: &str = "\
First steps: `runner doctor` says whether this machine can run experiments, `runner plan FILE` what a run would do, \
`runner run FILE` does it, on a GPU or without one.

Exit codes: 0 done, 1 a case failed or was wrong, 2 the command line or a manifest is at fault, 3 the machine lacks \
something, 130 interrupted.";

/// Which way of writing this GPU kernel is faster, by how much, why, and is it still right?
#[derive(Debug, Parser)]
#[command(name = "runner", version, propagate_version = true, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// When to use colour; `NO_COLOR` is honoured.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

impl Cli {
    /// Takes a command line apart. What only the program itself says is never suggested to a user.
    pub fn read<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words).map_err(|mut error| {
            if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
                let command = Self::command();
                names.retain(|name| command.find_subcommand(name).is_some_and(|known| !known.is_hide_set()));
                if names.is_empty() {
                    // Without it, nothing is left of the list of tips but its blank line.
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
    /// Run an experiment: compile, check, measure, report.
    Run(RunArgs),
    /// Count what the hardware does in each case, under Nsight Compute, and take no times.
    Profile(ProfileArgs),
    /// Hold the counters of the simulator against those of the hardware.
    Fidelity(FidelityArgs),
    /// Show the matrix, what is excluded, memory and time, without touching a device.
    Plan(PlanArgs),
    /// Validate manifests and nothing else.
    Check(CheckArgs),
    /// Write the reports of a finished run again from its records.
    Report(ReportArgs),
    /// List the devices and everything that the driver says of them.
    Devices(DevicesArgs),
    /// Say what is there and what is not: driver, device, toolkit, headers, profiler, clocks.
    Doctor(DoctorArgs),
    /// Fetch the pinned compiler and headers into the cache.
    Setup(SetupArgs),
    /// Print the JSON Schema of the manifest.
    Schema(SchemaArgs),
    /// A worker process: groups in, events out.
    #[command(name = "__worker", hide = true)]
    Worker(WorkerArgs),
    /// A compiler process: one unit in, one result out.
    #[command(name = "__compile", hide = true)]
    CompileUnit,
}

/// How the matrix is narrowed.
#[derive(Debug, Clone, Default, Args)]
pub struct Narrowing {
    /// Replace an axis: `--set n=1024,4096`. May be given several times.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub set: Vec<String>,
    /// Keep the cases for which the expression holds: `--filter 'n >= 2**20'`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep these variants. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BackendChoice {
    /// A GPU where there is one, else the simulator.
    #[default]
    Auto,
    /// An NVIDIA GPU.
    Cuda,
    /// The embedded simulator.
    Sim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ProgressChoice {
    /// Bars on a terminal, lines elsewhere.
    #[default]
    Auto,
    /// Bars that are drawn over; lines where there is no terminal.
    Bars,
    /// A line a case; a line now and then for thousands of cases.
    Lines,
    /// Every event as a line of JSON.
    Json,
}

impl ProgressChoice {
    /// The display that was asked for.
    pub const fn style(self, quiet: bool) -> Style {
        match self {
            _ if quiet => Style::Quiet,
            Self::Auto | Self::Bars => Style::Bars,
            Self::Lines => Style::Lines,
            Self::Json => Style::Json,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The experiment's manifest.
    pub manifest: PathBuf,
    /// More of them, run one after the other.
    #[arg(value_name = "MANIFEST")]
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// What executes the kernels.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendChoice,
    /// Number of the GPU, as `runner devices` lists them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    #[command(flatten)]
    pub simulator: SimulatorArgs,
    /// Where the reports go; by default `reports/<experiment>/<device>`, and under `target/` for a narrowed run. With
    /// several manifests each has a folder there, of its experiment's name.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run: measure what is missing or no longer holds.
    #[arg(long)]
    pub resume: bool,
    /// Never fetch anything: say what is missing.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub passes: PassArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}

/// What is done besides timing.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PassArgs {
    /// Count what the hardware does, under Nsight Compute, in a pass of its own after the timings.
    #[arg(long)]
    pub counters: bool,
    /// Take the energy of a run from the GPU's counter, in a pass of its own after the timings: two seconds a case.
    #[arg(long)]
    pub energy: bool,
}

/// What a run shows while it runs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DisplayArgs {
    /// Print only failures and the place of the report.
    #[arg(long, short)]
    pub quiet: bool,
    /// How progress is shown, on standard error.
    #[arg(long, value_enum, default_value_t, conflicts_with = "quiet")]
    pub progress: ProgressChoice,
}

/// Whose sizes a profile takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Sizes {
    /// The axes as the manifest has them for a GPU.
    #[default]
    Cuda,
    /// The axes and bindings of `[on.sim]`, so that counters can be held against the simulator's.
    Sim,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The experiment's manifest.
    pub manifest: PathBuf,
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// Whose axes the manifest's are replaced by.
    #[arg(long, value_enum, default_value_t)]
    pub sizes: Sizes,
    /// Number of the GPU, as `runner devices` lists them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Where the report goes; by default `reports/<experiment>/<device>-counters`, and under `target/` for a narrowed
    /// one.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Never fetch anything: say what is missing.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub display: DisplayArgs,
}

impl ProfileArgs {
    /// The run that a profile is.
    pub fn as_run(&self) -> RunArgs {
        RunArgs {
            manifest: self.manifest.clone(),
            more: Vec::new(),
            narrowing: self.narrowing.clone(),
            backend: BackendChoice::Cuda,
            device: self.device,
            simulator: SimulatorArgs::default(),
            out: self.out.clone(),
            resume: false,
            offline: self.offline,
            passes: PassArgs { counters: true, energy: false },
            display: self.display,
        }
    }
}

impl Sizes {
    pub const fn backend(self) -> BackendKind {
        match self {
            Self::Cuda => BackendKind::Cuda,
            Self::Sim => BackendKind::Sim,
        }
    }
}

#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// Folders of reports, or their `records.jsonl`: of each experiment one that was simulated and one that hardware
    /// counted at the same sizes.
    #[arg(required = true)]
    pub records: Vec<PathBuf>,
    /// Why counts differ; by default `reports/fidelity.toml`, where there is one.
    #[arg(long, value_name = "FILE")]
    pub causes: Option<PathBuf>,
    /// Write the page to this file instead of printing it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The experiment's manifest.
    pub manifest: PathBuf,
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// Plan for this backend's axes.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendChoice,
    /// A device description (`runner devices --json` of the machine in question) to judge memory and limits by.
    #[arg(long, value_name = "FILE")]
    pub device_profile: Option<PathBuf>,
    /// Every case as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The manifests to validate; all faults of all of them are told.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The folder of a report: one that holds `records.jsonl` or `journal.jsonl`.
    pub dir: PathBuf,
    /// Read the journal, all samples of it, and make the records anew.
    #[arg(long)]
    pub from_journal: bool,
}

#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// As JSON; one device's is a device profile for `runner plan`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Measure each device anew: its clock against CUPTI, its memory, its arithmetic.
    #[arg(long)]
    pub calibrate: bool,
    /// Never fetch anything.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// CUDA major version to fetch; by default the newest that the driver can load.
    #[arg(long, value_name = "MAJOR")]
    pub cuda: Option<u32>,
    /// Never fetch anything: say what is missing.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write to this file instead of printing.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[arg(long, value_enum)]
    pub backend: BackendChoice,
    #[arg(long)]
    pub device: u32,
    /// Mark launches for the profiler that this process runs in, and take no times.
    #[arg(long)]
    pub watched: bool,
    /// Let CUPTI trace the kernels: for calibration.
    #[arg(long)]
    pub traced: bool,
    #[command(flatten)]
    pub simulator: SimulatorArgs,
}

/// What the simulator simulates, and how closely it looks.
#[derive(Debug, Clone, Default, Args)]
pub struct SimulatorArgs {
    /// The GPU that the simulator stands for: h100, a100, v100, k80, rtx4090 or b200.
    #[arg(long, value_name = "NAME")]
    pub sim_device: Option<String>,
    /// Simulate without looking for races, uninitialised reads and the like; accesses stay checked.
    #[arg(long)]
    pub no_sanitize: bool,
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
        for word in ["compare", "compile", "worker", "__compil", "_worker", "__works"] {
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
        for exit in [Exit::Success, Exit::CaseFailed, Exit::Usage, Exit::Environment, Exit::Interrupted] {
            let code = format!("{} ", exit as u8);
            assert!(codes.split(", ").any(|part| part.starts_with(&code)), "{code}: {codes}");
        }
    }

    #[test]
    fn the_program_itself_may_say_a_hidden_command() {
        assert!(matches!(Cli::read(["runner", "__compile"]).map(|cli| cli.command), Ok(Command::CompileUnit)));
    }
}
