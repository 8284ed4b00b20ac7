//! Waits for the results of a job.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::commands::job_view::counts;
use crate::commands::{collect, status};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cluster::{self, Job, Known, State, Submission, collected};
use runner_lang::format::seconds;

/// Interval for checking the folder. The scheduler is queried less often.
const PAUSE: Duration = Duration::from_secs(5);

/// Maximum interval between queries to a scheduler that does not answer.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);

/// How long the collecting job may take to start and end after the last task.
const PATIENCE: Duration = Duration::from_mins(10);

/// Waits until no shard is queued or running and the collecting job has ended, then collects: only one process may
/// write a report at a time. `out` is the reports folder.
pub fn wait(dir: &Path, out: Option<&Path>, console: &mut Console) -> Result<Exit, Failure> {
    let job = Job::read(dir).map_err(Failure::environment)?;
    let (mut last, mut ended) = (String::new(), None);
    let (mut silence, mut asks_at) = (Duration::ZERO, Instant::now());
    let mut known = Known::read(dir);
    if job.settings.scheduler.queue().is_none() {
        console.say("waiting for the tasks: run the commands above in another terminal; Ctrl-C ends only the waiting");
    }
    loop {
        let mut submissions = Submission::all(dir, &job).map_err(Failure::environment)?;
        let shards = if Instant::now() < asks_at {
            runner_cluster::status(dir, &job, &submissions, &known)
        } else {
            let (shards, error) = status::look(dir, &job, &mut submissions, &mut known, console);
            silence = error.as_ref().map_or(Duration::ZERO, |_| longer(silence));
            asks_at = Instant::now() + silence;
            if let Some(error) = error {
                let pause = seconds(silence.as_secs_f64());
                console.say(&format!("the scheduler does not answer ({error}); asking again in {pause}"));
            }
            shards
        };
        let line = counts(&job, &shards);
        if line != last {
            console.say(&line);
            last = line;
        }
        if shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running)) {
            ended = None;
        } else {
            let since = *ended.get_or_insert_with(Instant::now);
            let collects = submissions.last().is_some_and(|last| last.collect.is_some() && last.cancelled.is_none());
            if !collects || collected(dir) >= submissions.len() as u32 || since.elapsed() > PATIENCE {
                return collect::collect(dir, &job, out, &mut Vec::new(), console);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Next, longer pause before querying a scheduler that did not answer.
fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(PAUSE * 2, LONGEST_SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_that_does_not_answer_is_asked_less_and_less_often() {
        let mut pause = Duration::ZERO;
        let pauses = std::iter::repeat_with(|| {
            pause = longer(pause);
            pause.as_secs()
        });
        assert_eq!(pauses.take(7).collect::<Vec<_>>(), [10, 20, 40, 80, 160, 300, 300]);
    }
}
