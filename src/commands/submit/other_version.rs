//! Refuses to submit a version of a job while tasks of another version are queued or running.

use std::path::Path;

use crate::commands::hints;
use crate::failure::Failure;
use runner_cluster::{ShardStatus, State, Submission};
use runner_lang::format::plural;

/// Refuses to submit shards while queued or running tasks use different versions of the files: one report would mix
/// their results.
pub fn refuse_other_version(
    dir: &Path,
    earlier: &[Submission],
    shards: &[ShardStatus],
    is_other: impl Fn(&Submission) -> bool,
) -> Result<(), Failure> {
    let others: Vec<u32> = earlier.iter().filter(|sent| is_other(sent)).map(|submission| submission.number).collect();
    let is_open = |shard: &&ShardStatus| {
        let is_other = shard.place.is_some_and(|(submission, _)| others.contains(&submission));
        is_other && matches!(shard.state, State::Queued | State::Running)
    };
    match shards.iter().filter(is_open).count() {
        0 => Ok(()),
        open => Err(Failure::usage(format!(
            "sources or inputs have changed since {} still queued or running {} submitted: cancel them with {} and submit \
             again, or wait for them",
            plural(open as u64, "shard"),
            if open == 1 { "was" } else { "were" },
            hints::of_job("cancel", dir)
        ))),
    }
}
