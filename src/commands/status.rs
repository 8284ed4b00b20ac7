//! Implements `runner status`, which shows a job's progress.

use std::fmt::Write as _;
use std::path::Path;

use super::cli::StatusArgs;
use super::{Console, Exit, Failure};
use crate::cluster::scheduler::QueueError;
use crate::cluster::{self, Job, JobError, Known, ShardStatus, State, Submission};
use crate::format::plural;

/// Most shards of a state that are listed.
const MOST_NAMES: usize = 20;

pub fn run(args: &StatusArgs, console: &mut Console) -> Result<Exit, Failure> {
    let failure = |error: JobError| Failure::environment(error.to_string());
    let job = Job::read(&args.job).map_err(|error| Failure::usage(error.to_string()))?;
    let submissions = Submission::all(&args.job, &job).map_err(failure)?;
    let shards = shards(&args.job, &job, &submissions, console);
    console.print(&(counts(&job, &shards) + "\n" + &listed(&job, &shards)))?;
    let missing = shards.iter().filter(|shard| shard.state.is_missing()).count();
    if missing > 0 {
        console.say("submit again with the same command to run what is missing");
    }
    Ok(if missing > 0 { Exit::CaseFailed } else { Exit::Success })
}

/// Returns the state of every shard. Asks the scheduler if its last answer is old.
pub fn shards(dir: &Path, job: &Job, submissions: &[Submission], console: &mut Console) -> Vec<ShardStatus> {
    let (shards, silence) = look(dir, job, submissions, console);
    if let Some(error) = silence {
        console.say(&format!("warning: the scheduler does not answer ({error})"));
    }
    shards
}

/// Returns the users who submitted.
pub fn users(submissions: &[Submission]) -> Vec<u32> {
    let mut users: Vec<u32> = submissions.iter().filter_map(|submission| submission.user).collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// Returns the state of every shard, and why the scheduler did not answer if it was asked in vain.
pub fn look(
    dir: &Path,
    job: &Job,
    submissions: &[Submission],
    console: &mut Console,
) -> (Vec<ShardStatus>, Option<QueueError>) {
    let mut known = Known::read(dir);
    let shards = cluster::status(dir, job, submissions, &known);
    let is_open = shards.iter().any(|shard| shard.state != State::Done);
    let Some(queue) = job.settings.scheduler.queue().filter(|_| is_open && known.is_old()) else {
        return (shards, None);
    };
    let jobs: Vec<String> = submissions.iter().flat_map(|s| s.arrays.iter().map(|array| array.id.clone())).collect();
    if jobs.is_empty() {
        return (shards, None);
    }
    match queue.ask(&jobs, &users(submissions)) {
        Ok(answer) => {
            if let Some(error) = &answer.gap {
                console.say(&format!("warning: the scheduler's accounts do not answer ({error})"));
            }
            known.add(answer);
            // A user who may not write there can look, too.
            if let Err(error) = known.write(dir) {
                console.say(&format!("warning: the scheduler's answer is not kept: {error}"));
            }
        }
        Err(error) => return (shards, Some(error)),
    }
    (cluster::status(dir, job, submissions, &known), None)
}

/// Counts the shards by state: `job reduce-1f3a: 40 shards: 30 done, 10 queued`.
pub fn counts(job: &Job, shards: &[ShardStatus]) -> String {
    let states =
        [State::Done, State::Running, State::Queued, State::Failed, State::Lost, State::Outdated, State::Unsubmitted];
    let count = |state: State| shards.iter().filter(|shard| shard.state == state).count();
    let parts: Vec<String> = states
        .into_iter()
        .map(|state| (count(state), state))
        .filter(|(n, _)| *n > 0)
        .map(|(n, state)| format!("{n} {state}"))
        .collect();
    format!("job {}: {}: {}", job.name, plural(shards.len() as u64, "shard"), parts.join(", "))
}

/// Returns every shard that is not done, with its reason.
pub fn listed(job: &Job, shards: &[ShardStatus]) -> String {
    let mut text = String::new();
    for state in [State::Failed, State::Lost, State::Outdated, State::Unsubmitted, State::Running, State::Queued] {
        let of_state: Vec<&ShardStatus> = shards.iter().filter(|shard| shard.state == state).collect();
        for shard in of_state.iter().take(MOST_NAMES) {
            let task = shard.task.as_ref().map(|task| format!(" (task {task})")).unwrap_or_default();
            let why = if shard.why.is_empty() { String::new() } else { format!(": {}", shard.why) };
            let _ = writeln!(text, "  {state:<13}  {}{task}{why}", job.label(shard.work));
        }
        if of_state.len() > MOST_NAMES {
            let _ = writeln!(text, "  {state:<13}  and {} more", of_state.len() - MOST_NAMES);
        }
    }
    text
}
