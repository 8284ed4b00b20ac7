//! `runner collect`: the report of a submitted job, and what it lacks.

use std::path::{Path, PathBuf};

use super::cli::{Cli, CollectArgs, Command, GateArgs, MergeArgs};
use super::session::breaks_claims;
use super::{Console, Exit, Failure, compare, history, merge, status};
use crate::cluster::{Job, JobError, State, Submission, mark_collected, shards_folder};
use crate::model::Records;

pub fn run(args: &CollectArgs, console: &mut Console) -> Result<Exit, Failure> {
    let job = Job::read(&args.job).map_err(|error| Failure::usage(error.to_string()))?;
    let submissions = Submission::all(&args.job).map_or(0, |all| all.len() as u32);
    let collected = collect(&args.job, &job, console);
    // Also after a failure: who waits for this job finds its output in the log.
    mark_collected(&args.job, submissions).map_err(|error| Failure::environment(error.to_string()))?;
    collected
}

/// Merges the journals in the job's folder and names the shards without results, with the scheduler's reasons.
pub fn collect(dir: &Path, job: &Job, console: &mut Console) -> Result<Exit, Failure> {
    let submissions = Submission::all(dir).map_err(|error: JobError| Failure::environment(error.to_string()))?;
    let shards = status::shards(dir, job, &submissions, console)?;
    let open: Vec<_> = shards.iter().filter(|shard| shard.state != State::Done).cloned().collect();
    console.print(&(status::counts(job, &shards) + "\n" + &status::listed(job, &open)))?;
    let sources = vec![shards_folder(dir)];
    if open.len() == shards.len() && !sources[0].exists() {
        return Err(Failure::environment("no shard has a result yet"));
    }
    let merged = merge::merge(&MergeArgs { sources, out: job.out.clone() }, console)?;
    let compared = compare_reports(job, &merged.reports, console);
    let is_whole = open.is_empty() && merged.exit == Exit::Success;
    Ok(match compared {
        Exit::CaseFailed => Exit::CaseFailed,
        _ if !is_whole => Exit::CaseFailed,
        _ if merged
            .reports
            .iter()
            .any(|(_, records)| breaks_claims(GateArgs { gate: job.gate, strict: false }, records)) =>
        {
            Exit::BrokenClaim
        }
        other => other,
    })
}

/// Compares each report with that of the revision that the job names, and shows its history.
fn compare_reports(job: &Job, reports: &[(PathBuf, Records)], console: &mut Console) -> Exit {
    let Some(revision) = &job.compare_with else { return Exit::Success };
    let mut worst = Exit::Success;
    for (folder, _) in reports {
        let folder = folder.display().to_string();
        let base = format!("{revision}:{folder}");
        for words in [vec!["compare", &base, &folder], vec!["history", &folder]] {
            match command(&words, console) {
                Ok(exit) => worst = first(worst, exit),
                // A new experiment has no report in the revision.
                Err(failure) => console.say(&format!("warning: {}: {}", words.join(" "), failure.message)),
            }
        }
    }
    worst
}

/// Compares reports as the command line does.
fn command(words: &[&str], console: &mut Console) -> Result<Exit, Failure> {
    let parsed = Cli::read(["runner"].iter().chain(words)).map_err(|error| Failure::usage(error.to_string()))?;
    match &parsed.command {
        Command::Compare(args) => compare::run(args, console),
        Command::History(args) => history::run(args, console),
        other => Err(Failure::usage(format!("not a comparison: {other:?}"))),
    }
}

/// Newly wrong comes before slower, and that before incomparable.
fn first(one: Exit, other: Exit) -> Exit {
    let order = [Exit::CaseFailed, Exit::Regression, Exit::Incomparable];
    order.into_iter().find(|exit| *exit == one || *exit == other).unwrap_or(Exit::Success)
}
