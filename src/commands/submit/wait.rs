//! Waits for the results of a job.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::{Job, State, Submission, collected};
use crate::commands::{Console, Exit, Failure, collect, status};

/// How often the folder is looked at. The scheduler is asked less often.
const PAUSE: Duration = Duration::from_secs(5);

/// How long the collecting job may take to start and end after the last task.
const PATIENCE: Duration = Duration::from_mins(10);

/// Waits until no shard is queued or running and the collecting job has ended, then collects: only one may write a
/// report at a time. `out` is the folder of the reports.
pub fn wait(dir: &Path, out: Option<&Path>, console: &mut Console) -> Result<Exit, Failure> {
    let failure = |error: crate::cluster::JobError| Failure::environment(error.to_string());
    let job = Job::read(dir).map_err(failure)?;
    let (mut last, mut ended) = (String::new(), None);
    loop {
        let submissions = Submission::all(dir, &job).map_err(failure)?;
        let shards = status::shards(dir, &job, &submissions, console);
        let line = status::counts(&job, &shards);
        if line != last {
            console.say(&line);
            last = line;
        }
        if shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running)) {
            ended = None;
        } else {
            let since = *ended.get_or_insert_with(Instant::now);
            let collects = submissions.last().is_some_and(|last| last.collect.is_some());
            if !collects || collected(dir) >= submissions.len() as u32 || since.elapsed() > PATIENCE {
                return collect::collect(dir, &job, out, console);
            }
        }
        thread::sleep(PAUSE);
    }
}
