//! The command line as clap parses it. [`options`](crate::cli::options) resolves it.
//!
//! This module contains the program and its list of commands; the other modules contain their options, one file per
//! group.

mod cases;
mod cluster;
mod compare;
mod device;
mod kernels;
mod look;
mod machine;
pub mod options;
mod run;
mod trust;
mod tune;
pub mod version;

pub use cases::Narrowing;
pub use cluster::{CancelArgs, CollectArgs, LogsArgs, PruneArgs, Rerun, SiteArgs, StatusArgs, SubmitArgs, TaskArgs};
pub use compare::{AllowedDifference, CompareArgs, ComparisonFormat, FidelityArgs, HistoryArgs, HistoryFormat};
pub use device::{BackendChoice, TargetArgs};
pub use kernels::{CiService, ImportArgs, ImportFrom, InitArgs, KernelArgs, TritonArgs, TryArgs};
pub use look::{CheckArgs, ListArgs, MergeArgs, PlanArgs, ReportArgs, TemplatesAction, TemplatesArgs};
pub use machine::{CompletionsArgs, DevicesArgs, DoctorArgs, ManArgs, SchemaArgs, SetupArgs, WorkerArgs};
pub use run::{AgainstArgs, DisplayArgs, GateArgs, PassArgs, ProfileArgs, ProgressChoice, RunArgs, ShowArgs, Sizes};
pub use trust::{ReachArgs, TrustArgs};
pub use tune::TuneArgs;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory as _, Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
First steps: `runner doctor` checks this machine, `runner try FILE.cu` compares its kernels, `runner plan FILE` shows \
what a run would do, `runner run FILE` runs it, on a GPU or on the simulator.

Exit codes: 0 success, 1 a case failed or has a wrong result, 2 the command line or a manifest is wrong, 3 the machine \
lacks something, 4 something became slower or does more work, 5 a claim is broken, 6 reports cannot be compared, 130 interrupted.";

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

    /// Log to standard error what is found, compiled, waited for and sent; -vv logs each step.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Cli {
    /// Parses a command line. Hidden commands are never suggested. Words must be UTF-8, because compilers and reports
    /// accept no other file names.
    pub fn read<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        // The first word is the program, whose path may be anything.
        if let Some(word) = words.iter().skip(1).find(|word| word.to_str().is_none()) {
            let message = format!("the argument `{}` is not UTF-8: rename the file or folder", word.display());
            return Err(Self::command().error(ErrorKind::InvalidUtf8, message));
        }
        Self::try_parse_from(words).map_err(|mut error| {
            if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
                let command = Self::command();
                names.retain(|name| command.find_subcommand(name).is_some_and(|known| !known.is_hide_set()));
                if names.is_empty() {
                    // Without this, an empty list of tips would be printed.
                    error.remove(ContextKind::Suggested);
                } else {
                    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
                }
            }
            error
        })
    }
}

/// When to color output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Also in files and pipes.
    Always,
    /// Nowhere.
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiments: compile, check, measure and report.
    Run(RunArgs),
    /// Search the compared axes of a manifest for the best configuration.
    Tune(Box<TuneArgs>),
    /// Compare kernels of a CUDA C++ file without a manifest.
    Try(TryArgs),
    /// Write a manifest for the kernels of a file, or the jobs of a CI service.
    Init(InitArgs),
    /// Import a Triton kernel and draft its manifest.
    Import(ImportArgs),
    /// List experiments with their variants and axes.
    List(ListArgs),
    /// Count what the GPU does in each case, with Nsight Compute; measures no times.
    Profile(ProfileArgs),
    /// Compare the simulator's counters with the hardware's.
    Fidelity(FidelityArgs),
    /// Compare two reports: what became faster, slower or wrong, and why.
    Compare(CompareArgs),
    /// Show how the times of a report developed over committed revisions, and where they changed.
    History(HistoryArgs),
    /// Run one case and print its buffers, its output, and wrong elements with their neighbours.
    Show(ShowArgs),
    /// Show what a run would do: cases, exclusions, memory and time.
    Plan(PlanArgs),
    /// Check manifests for errors.
    Check(CheckArgs),
    /// Regenerate reports from records.
    Report(ReportArgs),
    /// List the page templates, or write them to files to be edited.
    Templates(TemplatesArgs),
    /// Merge the journals of shards into one journal and one report.
    Merge(MergeArgs),
    /// Run experiments on a cluster, as job arrays.
    Submit(Box<SubmitArgs>),
    /// Show the progress of a job, or of all jobs.
    Status(StatusArgs),
    /// Show the output of a job's tasks.
    Logs(LogsArgs),
    /// Cancel the tasks of a job.
    Cancel(CancelArgs),
    /// Write the report of a submitted job.
    Collect(CollectArgs),
    /// Remove jobs that have ended, and the programs that no job needs.
    Prune(PruneArgs),
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
    /// Run the shards of one task, for a batch script.
    #[command(hide = true)]
    Task(TaskArgs),
    /// Serve groups to run on standard input, for the dispatcher.
    #[command(name = "__worker", hide = true)]
    Worker(WorkerArgs),
    /// Compile one unit from standard input.
    #[command(name = "__compile", hide = true)]
    CompileUnit,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

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
            Exit::BrokenClaim,
            Exit::Incomparable,
            Exit::Interrupted,
        ] {
            let code = format!("{} ", exit as u8);
            assert!(codes.split(", ").any(|part| part.starts_with(&code)), "{code}: {codes}");
        }
    }

    #[test]
    fn a_heading_of_the_help_has_its_own_options_only() {
        let own: [(&str, &[&str]); 7] = [
            ("Cases", &["filter", "set", "variant"]),
            ("Device", &["backend", "device", "device-profile", "devices", "no-sanitize", "sim-device", "thorough"]),
            ("Code", &["ptx", "sass", "source"]),
            ("Kernels", &["arg", "block", "define", "grid", "include-path", "kernel", "n", "shared", "tolerance"]),
            ("Trust", &["allow-host-code", "allow-outside", "project"]),
            ("Comparison", &["against", "format", "gate-counters", "markdown", "markdown-limit", "threshold"]),
            (
                "Scheduler",
                &[
                    "account",
                    "constraint",
                    "cpus",
                    "extra",
                    "gpus",
                    "gres",
                    "max-array",
                    "memory",
                    "min-task-time",
                    "module",
                    "partition",
                    "qos",
                    "queue",
                    "requeues",
                    "scheduler",
                    "throttle",
                    "time",
                    "warning",
                ],
            ),
        ];
        let mut seen = 0;
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let (Some(heading), Some(name)) = (argument.get_help_heading(), argument.get_long()) else { continue };
                let known = own.iter().find(|(own, _)| *own == heading).map_or(&[][..], |(_, names)| names);
                assert!(known.contains(&name), "--{name} of {} is below {heading}", command.get_name());
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn the_program_itself_may_use_a_hidden_command() {
        assert!(matches!(Cli::read(["runner", "__compile"]).map(|cli| cli.command), Ok(Command::CompileUnit)));
    }
}
