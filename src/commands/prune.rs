//! `runner prune`: removes jobs that have ended, and program copies that no job needs.

use std::fs;
use std::io;
use std::path::Path;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use super::jobs::{self, JOBS, Known};
use super::send::lock;
use super::status;
use crate::cli::PruneArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cluster::{State, collected, collecting, now, remove_unused_programs};
use runner_lang::format::plural;

/// Prefix of a job's folder while it is removed.
const REMOVING: &str = ".removing-";

pub fn run(args: &PruneArgs, console: &mut Console) -> Result<Exit, Failure> {
    let named = !args.jobs.is_empty();
    let found = if named {
        let read = |dir| Known::read(dir).map_err(Failure::usage);
        args.jobs.iter().map(|dir| read(dir)).collect::<Result<Vec<_>, _>>()?
    } else {
        jobs::all(console)
    };
    if !args.dry_run {
        remove_unfinished();
    }
    let mut kept = 0_u64;
    for mut known in found {
        let (dir, date) = (known.dir.display().to_string(), known.submitted().get(..10).unwrap_or("?").to_owned());
        if !named && age(&known) < args.older_than.0 {
            kept += 1;
            continue;
        }
        // Keeps other processes from submitting tasks meanwhile.
        let lock = if args.dry_run { None } else { lock(&known.dir, console)? };
        if let Some(why) = reason_to_keep(&mut known, args.incomplete, console) {
            console.print(&format!("{dir}: kept, {why}\n"))?;
            continue;
        }
        if args.dry_run {
            console.print(&format!("{dir}: would be removed, submitted on {date}\n"))?;
            continue;
        }
        remove(&known.dir).map_err(|error| Failure::environment(format!("cannot remove {dir}: {error}")))?;
        drop(lock);
        console.print(&format!("{dir}: removed, submitted on {date}\n"))?;
    }
    if kept > 0 {
        console.say(&format!("{} younger than --older-than: kept", plural(kept, "job")));
    }
    let programs = if args.dry_run { 0 } else { remove_unused_programs(Path::new(JOBS)) };
    if programs > 0 {
        console.print(&format!("{}: removed, no job needs them\n", plural(programs, "program")))?;
    }
    Ok(Exit::Success)
}

/// Removes a job's folder. It gets another name first, so that a killed process leaves no part of a job.
fn remove(dir: &Path) -> io::Result<()> {
    let name = dir.file_name().unwrap_or_default().display().to_string();
    let removed = dir.with_file_name(format!("{REMOVING}{}-{name}", process::id()));
    fs::rename(dir, &removed)?;
    match fs::remove_dir_all(removed) {
        // Another process removed it at the same time.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes what a killed process left of jobs.
fn remove_unfinished() {
    for entry in fs::read_dir(JOBS).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(REMOVING.as_bytes()) {
            // The next call tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Seconds since the last submission.
fn age(known: &Known) -> u64 {
    let submitted = humantime::parse_rfc3339(known.submitted()).unwrap_or_else(|_| SystemTime::now());
    now().saturating_sub(submitted.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Why a job is kept: it has work left, or results that exist only in its folder.
fn reason_to_keep(known: &mut Known, incomplete: bool, console: &mut Console) -> Option<String> {
    let Known { dir, job, submissions } = known;
    let shards = status::shards(dir, job, submissions, console);
    let open = shards.iter().filter(|shard| matches!(shard.state, State::Queued | State::Running)).count();
    if open > 0 {
        return Some(format!("{} still queued or running", plural(open as u64, "shard")));
    }
    let is_collected = job.searches || collected(dir) >= submissions.len() as u32;
    let view = runner_cluster::Known::read(dir);
    let collects = submissions.last().and_then(|last| collecting(job, last, &view));
    if !is_collected && collects.is_some_and(|(state, _)| !state.is_missing()) {
        return Some("its results are about to be collected".to_owned());
    }
    if incomplete {
        return None;
    }
    let missing = shards.iter().filter(|shard| shard.state.is_missing()).count();
    if missing > 0 {
        let missing = plural(missing as u64, "shard");
        return Some(format!("without results of {missing}; --incomplete removes it"));
    }
    (!is_collected).then(|| "its results are not collected; --incomplete removes it".to_owned())
}
