//! `runner cancel`: ends the tasks of a job.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::send::lock;
use super::status;
use crate::cli::CancelArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cluster::scheduler::{Outcome, QueueError, Submitter, listed_name};
use runner_cluster::{Job, Known, Submission};
use runner_lang::format::plural;
use runner_types::calendar_time;

pub fn run(args: &CancelArgs, console: &mut Console) -> Result<Exit, Failure> {
    let dir = args.job.as_path();
    let refused = |error: QueueError| Failure::environment(format!("nothing was cancelled: {error}"));
    let job = Job::read(dir).map_err(Failure::usage)?;
    // Keeps other processes from submitting tasks meanwhile.
    let _lock = lock(dir, console)?;
    let mut submissions = Submission::all(dir, &job).map_err(Failure::environment)?;
    let now = humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string();
    let queue = match job.settings.scheduler.submitter() {
        Submitter::Program(queue) => queue,
        Submitter::User { cancelling, .. } => {
            for submission in &mut submissions {
                submission.cancelled = Some(now.clone());
                submission.write(dir).map_err(Failure::environment)?;
            }
            console.print(&format!("{}\n", cancelling(&listed_name(&job))))?;
            console.say(
                "run this command to end the tasks; `runner submit` now counts those without results as cancelled",
            );
            return Ok(Exit::Success);
        }
    };
    // Finds arrays whose submission the scheduler did not confirm.
    status::shards(dir, &job, &mut submissions, console);
    let all: Vec<String> = submissions.iter().flat_map(Submission::ids).collect();
    let known = if all.is_empty() {
        BTreeMap::default()
    } else {
        queue.ask(&all, &status::users(&submissions)).map_err(refused)?.tasks
    };
    let is_open = |job: &String| {
        let is_its = |task: &String| task.split('_').next() == Some(job);
        known.iter().any(|(task, seen)| is_its(task) && !matches!(queue.outcome(&seen.state), Outcome::Ended(_)))
    };
    let open: Vec<String> = all.into_iter().filter(is_open).collect();
    if open.is_empty() {
        console.print(&format!("job {}: no task is queued or running\n", job.name))?;
        return Ok(Exit::Success);
    }
    queue.cancel(&open).map_err(Failure::environment)?;
    for submission in &mut submissions {
        if submission.ids().any(|id| open.contains(&id)) {
            submission.cancelled = Some(now.clone());
            submission.write(dir).map_err(Failure::environment)?;
        }
    }
    let mut view = Known::read(dir);
    view.expire();
    view.write(dir).map_err(Failure::environment)?;
    let count = plural(open.len() as u64, "job");
    console.print(&format!("job {}: cancelled {count} in the scheduler: {}\n", job.name, open.join(", ")))?;
    Ok(Exit::Success)
}
