//! `runner status`: shows a job's progress.

use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::job_view::JobView;
use super::{hints, jobs};
use crate::cli::StatusArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cluster::scheduler::{Queue, QueueError, array_tag};
use runner_cluster::{self, Job, Known, ShardStatus, State, Submission, now, user};

/// Interval of `--watch`. The scheduler is queried less often.
const PAUSE: Duration = Duration::from_secs(5);

/// Seconds for which commands reuse an earlier answer. Scripts may call them repeatedly.
const MEMORY: u64 = 5;

/// Seconds after which an array that the scheduler does not list counts as rejected.
pub const CONFIRMED_AFTER: u64 = 60;

pub fn run(args: &StatusArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.job {
        Some(dir) => one(dir, args, console),
        None => all(args, console),
    }
}

/// Prints a line for each job.
fn all(args: &StatusArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for jobs::Known { dir, job, mut submissions } in jobs::some(console)? {
        let mut known = Known::read(&dir);
        known.expire_after(MEMORY);
        let mut shards = runner_cluster::status(&dir, &job, &submissions, &known);
        // Shards that are neither queued nor running have ended, whatever the scheduler says.
        if shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running)) {
            let (asked, silence) = look(&dir, &job, &mut submissions, &mut known, console);
            warn_of(silence, console);
            shards = asked;
        }
        let view = JobView::new(&dir, &job, &submissions, &shards, &known);
        console.print(&format!("{}\n", if args.json { view.json() } else { view.line() }))?;
        if shards.iter().any(|shard| shard.state.is_missing()) {
            exit = Exit::CaseFailed;
        }
    }
    Ok(exit)
}

fn one(dir: &Path, args: &StatusArgs, console: &mut Console) -> Result<Exit, Failure> {
    let job = Job::read(dir).map_err(Failure::usage)?;
    let mut known = Known::read(dir);
    known.expire_after(MEMORY);
    loop {
        let mut submissions = Submission::all(dir, &job).map_err(Failure::environment)?;
        let (shards, silence) = look(dir, &job, &mut submissions, &mut known, console);
        warn_of(silence, console);
        let view = JobView::new(dir, &job, &submissions, &shards, &known);
        let waits = args.watch && view.is_open();
        if args.json {
            console.print(&format!("{}\n", view.json()))?;
        } else {
            if args.watch {
                console.clear()?;
            }
            console.print(&view.text())?;
        }
        if waits {
            let _ = std::io::stdout().flush();
            thread::sleep(PAUSE);
            continue;
        }
        let missing = shards.iter().filter(|shard| shard.state.is_missing()).count();
        if missing > 0 {
            console.say(&format!("submit again with {} to run what is missing", hints::again(dir, &job)));
        }
        return Ok(if missing > 0 { Exit::CaseFailed } else { Exit::Success });
    }
}

/// State of every shard, according to a fresh answer from the scheduler.
pub fn shards(dir: &Path, job: &Job, submissions: &mut [Submission], console: &mut Console) -> Vec<ShardStatus> {
    let mut known = Known::read(dir);
    // The caller cannot undo its actions after a later answer, so do not reuse an old one.
    known.expire();
    let (shards, silence) = look(dir, job, submissions, &mut known, console);
    warn_of(silence, console);
    shards
}

fn warn_of(silence: Option<QueueError>, console: &mut Console) {
    if let Some(error) = silence {
        console.say(&format!("warning: the scheduler does not answer ({error})"));
    }
}

pub fn users(submissions: &[Submission]) -> Vec<u32> {
    let mut users: Vec<u32> = submissions.iter().filter_map(|submission| submission.user).collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// State of every shard, and the scheduler's error if it did not answer. Queries the scheduler if the known answer is
/// old. `known` is this process's copy of the answer, which works even if the job's folder is read-only.
pub fn look(
    dir: &Path,
    job: &Job,
    submissions: &mut [Submission],
    known: &mut Known,
    console: &mut Console,
) -> (Vec<ShardStatus>, Option<QueueError>) {
    known.read_again(dir);
    let shards = runner_cluster::status(dir, job, submissions, known);
    let is_collected = submissions.iter().all(|submission| submission.collect.is_none())
        || runner_cluster::collected(dir) >= submissions.len() as u32;
    let is_open = !is_collected || shards.iter().any(|shard| shard.state != State::Done);
    let Some(queue) = job.settings.scheduler.queue().filter(|_| is_open && known.is_old()) else {
        return (shards, None);
    };
    if let Err(error) = confirm(queue, dir, job, submissions) {
        return (shards, Some(error));
    }
    let jobs: Vec<String> = submissions.iter().flat_map(Submission::ids).collect();
    if jobs.is_empty() {
        return (runner_cluster::status(dir, job, submissions, known), None);
    }
    match queue.ask(&jobs, &users(submissions)) {
        Ok(answer) => {
            if let Some(error) = &answer.gap {
                console.say(&format!("warning: the scheduler's accounting does not answer ({error})"));
            }
            let is_first = !known.has_answer();
            known.add(answer);
            // Users without write access can query the status, too.
            if let Err(error) = known.write(dir)
                && is_first
            {
                console.say(&format!("warning: could not save the scheduler's answer: {error}"));
            }
        }
        Err(error) => return (shards, Some(error)),
    }
    (runner_cluster::status(dir, job, submissions, known), None)
}

/// Looks for arrays that the scheduler has not confirmed. One that is still missing after a while was not accepted.
fn confirm(queue: &dyn Queue, dir: &Path, job: &Job, submissions: &mut [Submission]) -> Result<(), QueueError> {
    for submission in submissions.iter_mut().filter(|submission| submission.user == Some(user())) {
        let mut has_changed = false;
        let mut refused = None;
        for (index, array) in submission.arrays.iter_mut().enumerate().filter(|(_, array)| array.id.is_none()) {
            match queue.find(&array_tag(job, submission.number, array.first))? {
                Some(id) => {
                    array.id = Some(id);
                    has_changed = true;
                }
                None if now().saturating_sub(array.sent) > CONFIRMED_AFTER => {
                    refused = Some(index);
                    break;
                }
                None => {}
            }
        }
        if let Some(index) = refused {
            submission.arrays.truncate(index);
            submission.refused =
                Some("the scheduler did not confirm the submission and does not list the job".to_owned());
            has_changed = true;
        }
        if has_changed {
            // If another process is writing the submission, the next query finds the array again.
            let _ = submission.write(dir);
        }
    }
    Ok(())
}
