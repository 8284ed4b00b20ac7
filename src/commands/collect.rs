//! `runner collect`: writes the report of a submitted job, and says what is missing.

use std::fs;
use std::path::{Component, Path};

use super::job_view::{counts, listed};
use super::merge::Report;
use super::send::send_rest;
use super::{compare, history, merge, status};
use crate::cli::{Cli, CollectArgs, Command, GateArgs, MergeArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::breaks_claims;
use runner_cluster::{Job, State, Submission, mark_collected, shards_folder};

pub fn run(args: &CollectArgs, console: &mut Console) -> Result<Exit, Failure> {
    let job = Job::read(&args.job).map_err(Failure::usage)?;
    let submissions = Submission::all(&args.job, &job).map_or(0, |all| all.len() as u32);
    let out = match &args.out {
        Some(named) => Some(named.as_path()),
        None => job.out.as_deref().map(below_here).transpose()?,
    };
    let collected = collect(&args.job, &job, out, console);
    let rest = args.send_rest.as_ref().map(|script| send_rest(&args.job, &job, script, console)).transpose();
    if matches!(rest, Ok(Some(true))) {
        return collected;
    }
    // Marked after a failure too: a user who waits for this job finds its output in the log.
    if let Err(error) = mark_collected(&args.job, submissions) {
        // A user without write access can collect too.
        console.say(&format!("warning: the job is not marked as collected: {error}"));
    }
    rest.and(collected)
}

/// The reports folder that a job names. Others may have written the job, so only folders below the working directory
/// are allowed, with links resolved.
fn below_here(out: &Path) -> Result<&Path, Failure> {
    let here = fs::canonicalize(".").unwrap_or_default();
    let real = |part: &Path| fs::canonicalize(if part.as_os_str().is_empty() { Path::new(".") } else { part }).ok();
    let climbs = out.components().any(|part| part == Component::ParentDir);
    if !climbs && out.ancestors().find_map(real).is_some_and(|real| real.starts_with(&here)) {
        return Ok(out);
    }
    let out = out.display();
    Err(Failure::usage(format!(
        "the job writes its reports to `{out}`, which is not below the working directory: if you want that, name the \
         folder with --out"
    )))
}

/// Merges the journals in the job's folder into `out` and names the shards without results, with the scheduler's
/// reasons. For a search, only names the shards.
pub fn collect(dir: &Path, job: &Job, out: Option<&Path>, console: &mut Console) -> Result<Exit, Failure> {
    let mut submissions = Submission::all(dir, job).map_err(Failure::environment)?;
    let shards = status::shards(dir, job, &mut submissions, console);
    let open: Vec<_> = shards.iter().filter(|shard| shard.state != State::Done).cloned().collect();
    console.print(&(counts(job, &shards) + "\n" + &listed(dir, job, &open)))?;
    if job.searches {
        // The search's last task writes the report.
        return Ok(if open.is_empty() { Exit::Success } else { Exit::CaseFailed });
    }
    let sources = vec![shards_folder(dir)];
    if open.len() == shards.len() && !sources[0].exists() {
        return Err(Failure::environment("no shard has a result yet"));
    }
    let merged = merge::merge(&MergeArgs { sources, out: out.map(Path::to_owned) }, console)?;
    let compared = compare_reports(job, &merged.reports, console);
    let is_whole = open.is_empty() && merged.exit == Exit::Success;
    Ok(match compared {
        Exit::CaseFailed => Exit::CaseFailed,
        _ if !is_whole => Exit::CaseFailed,
        _ if merged
            .reports
            .iter()
            .any(|report| breaks_claims(GateArgs { gate: job.gate, strict: false }, &report.records)) =>
        {
            Exit::BrokenClaim
        }
        other => other,
    })
}

/// Compares each report with the one at the job's base revision, and shows its history.
fn compare_reports(job: &Job, reports: &[Report], console: &mut Console) -> Exit {
    let Some(revision) = &job.compare_with else { return Exit::Success };
    let mut worst = Exit::Success;
    for Report { folder, usual, .. } in reports {
        let folder = folder.display().to_string();
        let base = format!("{revision}:{}", usual.display());
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

/// Compares reports as the command line does. Parsing makes sure that no text of the job is taken for an option.
fn command(words: &[&str], console: &mut Console) -> Result<Exit, Failure> {
    let (name, folders) = words.split_at(1);
    let words = [&["runner"], name, &["--"], folders].concat();
    let parsed = Cli::read(words).map_err(Failure::usage)?;
    match &parsed.command {
        Command::Compare(args) => compare::run(args, console),
        Command::History(args) => history::run(args, console),
        other => Err(Failure::usage(format!("not a comparison: {other:?}"))),
    }
}

/// The more severe exit code: newly wrong before slower, slower before incomparable.
fn first(one: Exit, other: Exit) -> Exit {
    let order = [Exit::CaseFailed, Exit::Regression, Exit::Incomparable];
    order.into_iter().find(|exit| *exit == one || *exit == other).unwrap_or(Exit::Success)
}
