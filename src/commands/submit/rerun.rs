//! Selects the shards to run again.

use crate::cli::Rerun;
use crate::failure::Failure;
use runner_cluster::{Job, ShardStatus, State, Submission, Work};

/// The shards that the user named, in order. Refuses those that the scheduler still has, since they would run twice.
pub fn chosen(
    named: &[Rerun],
    job: &Job,
    earlier: &[Submission],
    shards: &[ShardStatus],
) -> Result<Vec<Work>, Failure> {
    if earlier.is_empty() {
        return Err(unsubmitted(job));
    }
    let mut chosen: Vec<&ShardStatus> = Vec::new();
    for rerun in named {
        let found: Vec<_> = shards.iter().filter(|shard| is_meant(rerun, job, shard)).collect();
        if let Rerun::Shard(name) = rerun {
            match found.as_slice() {
                [] => {
                    return Err(Failure::usage(format!(
                        "--rerun: the job has no shard `{name}`; `runner status` lists those without results"
                    )));
                }
                [_] => {}
                [one, ..] => {
                    let one = job.label(one.work);
                    return Err(Failure::usage(format!(
                        "--rerun: several experiments have a shard `{name}`: name it as in `{one}`"
                    )));
                }
            }
        }
        chosen.extend(found);
    }
    // Without a queue, only the user knows whether a started task was killed.
    let is_open = |shard: &&&ShardStatus| matches!(shard.state, State::Queued | State::Running);
    if let Some(open) = chosen.iter().find(is_open).filter(|_| job.settings.scheduler.queue().is_some()) {
        return Err(Failure::usage(format!(
            "--rerun: {} is {} and would run twice: wait, or end the job with `runner cancel`",
            job.label(open.work),
            open.state
        )));
    }
    let mut work: Vec<Work> = chosen.into_iter().map(|shard| shard.work).collect();
    work.sort_unstable();
    work.dedup();
    Ok(work)
}

/// Refuses to rerun shards of a job that was never submitted.
pub fn unsubmitted(job: &Job) -> Failure {
    Failure::usage(format!("job {} has not been submitted yet: submit it without --rerun", job.name))
}

fn is_meant(rerun: &Rerun, job: &Job, shard: &ShardStatus) -> bool {
    match rerun {
        Rerun::All => true,
        Rerun::Failed => shard.state == State::Failed,
        Rerun::Lost => shard.state == State::Lost,
        Rerun::Shard(name) => *name == job.label(shard.work) || *name == shard.work.shard.to_string(),
    }
}
