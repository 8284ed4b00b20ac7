//! Restores the command line of an existing job.

use std::path::Path;

use crate::cli::{Cli, Command, SubmitArgs, TrustArgs};
use crate::failure::Failure;
use runner_cluster::Job;

/// Arguments of the command that submitted the job in `dir`. What to submit now and what is permitted come from `args`.
pub fn arguments(args: &SubmitArgs, dir: &Path) -> Result<SubmitArgs, Failure> {
    let plain = read(&["submit", "--again", "JOB"].map(str::to_owned))?;
    let own = SubmitArgs {
        again: args.again.clone(),
        sending: args.sending.clone(),
        offline: args.offline,
        trust: args.trust.clone(),
        ..plain
    };
    if *args != own {
        return Err(Failure::usage(
            "--again repeats the job's command unchanged: only --dry-run, --wait, --rerun, --after, --offline and \
             options that grant permissions can be added",
        ));
    }
    let (job, shown) = (Job::read(dir).map_err(Failure::usage)?, dir.display());
    let line = job.command_line().ok_or_else(|| {
        Failure::usage(format!(
            "{shown} was written by an older version and does not contain its command: pass the full command instead of \
             --again"
        ))
    })?;
    // A stored command can run anything, so the job must be this user's own.
    if !Job::is_own(dir) {
        let why = "someone else may have written this job; read its command, then run it yourself";
        return Err(Failure::usage(format!("{shown}: {why}: {line}")));
    }
    if std::env::current_dir().ok().as_ref() != Some(&job.directory) {
        let directory = job.directory.display();
        return Err(Failure::usage(format!("{shown} was submitted from {directory}: run this command there")));
    }
    let given = read(&job.command)?;
    if given.tune.is_some() && !args.sending.rerun.is_empty() {
        return Err(Failure::usage(
            "--rerun does not apply to a search: without it, --again submits the missing tasks",
        ));
    }
    Ok(SubmitArgs {
        sending: args.sending.clone(),
        offline: given.offline || args.offline,
        trust: if args.trust == TrustArgs::default() { given.trust } else { args.trust.clone() },
        words: job.command,
        ..given
    })
}

/// Parses the words of a submitting command.
pub fn read(words: &[String]) -> Result<SubmitArgs, Failure> {
    let program = std::iter::once("runner").chain(words.iter().map(String::as_str));
    match Cli::read(program).map_err(Failure::usage)?.command {
        Command::Submit(args) => Ok(*args),
        _ => Err(Failure::usage("the job was not created by `runner submit`")),
    }
}
