//! Waits for the results of a job.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::cluster::{Job, State, Submission};
use crate::commands::{Console, Exit, Failure, collect, status};

/// How often the folder is looked at. The scheduler is asked less often.
const PAUSE: Duration = Duration::from_secs(5);

/// Waits until no shard is queued or running, then collects.
pub fn wait(dir: &Path, console: &mut Console) -> Result<Exit, Failure> {
    let failure = |error: crate::cluster::JobError| Failure::environment(error.to_string());
    let job = Job::read(dir).map_err(failure)?;
    let mut last = String::new();
    loop {
        let submissions = Submission::all(dir).map_err(failure)?;
        let shards = status::shards(dir, &job, &submissions, console)?;
        let line = status::counts(&job, &shards);
        if line != last {
            console.say(&line);
            last = line;
        }
        if !shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running)) {
            return collect::collect(dir, &job, console);
        }
        thread::sleep(PAUSE);
    }
}
