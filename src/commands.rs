//! The commands, one file each. Every file reads as the pipeline of its command; this module dispatches.

mod kernels;
mod repeat;

mod cancel;
mod check;
mod collect;
pub(crate) mod compare;
mod completions;
mod devices;
mod doctor;
mod fidelity;
mod hints;
mod history;
mod import;
mod init;
mod job_view;
mod jobs;
mod list;
mod logs;
mod man;
mod merge;
pub(crate) mod plan;
mod profile;
mod prune;
mod report;
mod run;
mod schema;
mod send;
mod setup;
mod show;
pub mod stale;
mod status;
mod submit;
mod task;
mod trial;
mod tune;

use crate::cli::{Cli, Command, version};
use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::session;
use runner_progress::log;

pub fn dispatch(cli: &Cli, console: &mut Console) -> Result<Exit, Failure> {
    // The parent treats a compiler process's standard error as the reason for a failure, so nothing is logged there.
    if !matches!(cli.command, Command::CompileUnit) {
        log::start(cli.verbose, matches!(cli.command, Command::Worker(_))).map_err(Failure::usage)?;
        let arguments = || std::env::args_os().skip(1).collect::<Vec<_>>();
        tracing::info!(process = std::process::id(), arguments = ?arguments(), "runner {}", version::long_version());
    }
    match &cli.command {
        Command::Check(args) => check::run(args, console),
        Command::Plan(args) => plan::run(args, console),
        Command::Show(args) => show::run(args, console),
        Command::Run(args) => run::run(args, console),
        Command::Try(args) => trial::run(args, console),
        Command::Tune(args) => tune::run(args, console),
        Command::Import(args) => import::run(args, console),
        Command::Init(args) => init::run(args, console),
        Command::List(args) => list::run(args, console),
        Command::Profile(args) => profile::run(args, console),
        Command::Fidelity(args) => fidelity::run(args, console),
        Command::Compare(args) => compare::run(args, console),
        Command::History(args) => history::run(args, console),
        Command::Report(args) => report::run(args, console),
        Command::Templates(args) => crate::templates::run(args, console),
        Command::Merge(args) => merge::run(args, console),
        Command::Submit(args) => submit::run(args, console),
        Command::Status(args) => status::run(args, console),
        Command::Logs(args) => logs::run(args, console),
        Command::Cancel(args) => cancel::run(args, console),
        Command::Collect(args) => collect::run(args, console),
        Command::Prune(args) => prune::run(args, console),
        Command::Task(args) => task::run(args, console),
        Command::Devices(args) => devices::run(args, console),
        Command::Doctor(args) => doctor::run(args, console),
        Command::Setup(args) => setup::run(args, console),
        Command::Schema(args) => schema::run(args, console),
        Command::Completions(args) => completions::run(args, console),
        Command::Man(args) => man::run(args, console),
        Command::Worker(args) => session::worker::serve(args),
        Command::CompileUnit => setup::compile_unit(),
    }
}
