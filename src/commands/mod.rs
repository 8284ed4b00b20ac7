//! One file per command, each reads as the pipeline. This module holds what they share: exit codes and failures.

mod cli;
mod consent;
mod console;
mod kernels;
mod machine;
mod options;
mod repeat;
mod version;
mod worker;

mod check;
mod collect;
mod compare;
mod completions;
mod devices;
mod doctor;
mod fidelity;
mod history;
mod import;
mod init;
mod list;
mod man;
mod merge;
mod plan;
mod profile;
mod report;
mod run;
mod schema;
mod setup;
mod show;
mod status;
mod submit;
mod task;
mod templates;
mod trial;

pub use cli::Cli;
pub use console::Console;

use std::path::Path;

use crate::atomic;
use crate::experiment::Manifest;
use crate::model::Diagnostics;
use cli::{Command, ReachArgs};

/// The exit codes of the process; documented and stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done; excluded and invalid cases are not failures.
    Success = 0,
    /// A case failed or has a wrong result; the report is written.
    CaseFailed = 1,
    /// The command line or a manifest is wrong; nothing ran.
    Usage = 2,
    /// No device, no compiler, no memory, no permission, a damaged file.
    Environment = 3,
    /// A comparison found that something became slower.
    Regression = 4,
    /// A claim of the manifest is broken, and the command was asked to judge claims.
    BrokenClaim = 5,
    /// What was to be compared is not of the same thing.
    Incomparable = 6,
    /// Stopped by the user; the report is written and marked incomplete.
    Interrupted = 130,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// What is wrong and what to do, for standard error.
    pub message: String,
    /// Whether the message is laid out already, as faults of a manifest are, and not a sentence.
    pub is_drawn: bool,
}

impl Failure {
    /// The command line or a manifest is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), is_drawn: false }
    }

    /// Faults of a manifest or of a narrowing, with the lines they are in.
    pub fn faults(faults: &Diagnostics, console: &Console) -> Self {
        let message = faults.render_within(console.error_color, console.error_width()).trim_end().to_owned();
        Self { exit: Exit::Usage, message, is_drawn: true }
    }

    /// The machine lacks something.
    pub fn environment(message: impl Into<String>) -> Self {
        Self { exit: Exit::Environment, message: message.into(), is_drawn: false }
    }
}

/// Runs one command.
pub fn dispatch(cli: &Cli, console: &mut Console) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Check(args) => check::run(args, console),
        Command::Plan(args) => plan::run(args, console),
        Command::Show(args) => show::run(args, console),
        Command::Run(args) => run::run(args, console),
        Command::Try(args) => trial::run(args, console),
        Command::Import(args) => import::run(args, console),
        Command::Init(args) => init::run(args, console),
        Command::List(args) => list::run(args, console),
        Command::Profile(args) => profile::run(args, console),
        Command::Fidelity(args) => fidelity::run(args, console),
        Command::Compare(args) => compare::run(args, console),
        Command::History(args) => history::run(args, console),
        Command::Report(args) => report::run(args, console),
        Command::Templates(args) => templates::run(args, console),
        Command::Merge(args) => merge::run(args, console),
        Command::Submit(args) => submit::run(args, console),
        Command::Status(args) => status::run(args, console),
        Command::Collect(args) => collect::run(args, console),
        Command::Task(args) => task::run(args, console),
        Command::Devices(args) => devices::run(args, console),
        Command::Doctor(args) => doctor::run(args, console),
        Command::Setup(args) => setup::run(args, console),
        Command::Schema(args) => schema::run(args, console),
        Command::Completions(args) => completions::run(args, console),
        Command::Man(args) => man::run(args, console),
        Command::Worker(args) => worker::serve(args),
        Command::CompileUnit => setup::compile_unit(),
    }
}

/// Loads a manifest, or reports every fault in it.
fn load_manifest(path: &Path, reach: &ReachArgs, console: &Console) -> Result<Manifest, Failure> {
    crate::manifest::load_within(path, reach.project_of(path)?).map_err(|faults| Failure::faults(&faults, console))
}

/// Refuses a folder that the user has not named and that a symbolic link of a checkout leads to from here.
fn stays_here(dir: &Path) -> Result<(), Failure> {
    let Ok(here) = std::fs::canonicalize(".") else { return Ok(()) };
    let there = dir.ancestors().find_map(|above| std::fs::canonicalize(above).ok());
    match there.filter(|there| !there.starts_with(&here)) {
        None => Ok(()),
        Some(there) => Err(Failure::usage(format!(
            "{} leads to {} by a symbolic link: name the folder with --out if results are to be written there",
            dir.display(),
            there.display()
        ))),
    }
}

/// Writes the file that `--out` names.
fn write_out(path: &Path, text: &str) -> Result<(), Failure> {
    write_file("--out", path, text)
}

/// Writes a file that an option names or would name; one that exists is replaced only if that is forced.
fn write_new(option: &str, path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if !force && path.exists() {
        let path = path.display();
        return Err(Failure::usage(format!("{path} exists; name another file with {option}, or remove that one")));
    }
    write_file(option, path, text)
}

/// Writes the file that an option names.
fn write_file(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: atomic::WriteError| {
        Failure::environment(format!("{option} {}: {error}; name a file that can be written", path.display()))
    };
    atomic::write_named(path, text.as_bytes()).map_err(refused)
}
