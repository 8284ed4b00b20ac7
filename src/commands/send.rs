//! Submits tasks as job arrays, and the job that collects their results.
//!
//! Every submission is recorded before and after the scheduler receives it. An array whose submission the scheduler did
//! not confirm keeps its place in the record, and is later found by its tag.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::status;
use crate::console::Console;
use crate::failure::Failure;
use runner_cluster::scheduler::{Part, Queue, QueueError, Script, ScriptError, Sent, Submitter, listed_name};
use runner_cluster::{
    Array, Job, Known, Retry, Settings, ShardStatus, State, Submission, Work, collected, collecting, logs_folder,
    mark_collected, now, user,
};
use runner_files::atomic;
use runner_files::regular;
use runner_lang::format::{about, plural};
use runner_results::journal::{FolderLock, JournalError};
use runner_types::{calendar_time, sha256_hex};

/// Maximum job array size for schedulers that are not asked for their limit.
const MAX_ARRAY: u32 = 1000;

/// Delays before each check of the scheduler's queue after an unconfirmed submission.
const LOOKS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)];

/// Maximum time limits that the scheduler allows, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub tasks: Option<u64>,
    /// Maximum for the job that collects the results.
    pub collecting: Option<u64>,
}

impl Limits {
    /// Asks the scheduler. Without an answer, nothing is limited.
    pub fn ask(settings: &Settings) -> Self {
        let Some(queue) = settings.scheduler.queue() else { return Self::default() };
        let longest = |partition: Option<&str>| queue.longest(partition).ok().flatten();
        let of_tasks = settings.partition.as_deref();
        let tasks = longest(of_tasks);
        let collecting = settings.collect.partition.as_deref().map_or(tasks, |partition| longest(Some(partition)));
        Self { tasks, collecting }
    }

    /// Fails if the user's time limit exceeds the scheduler's, so that a task would wait forever, or does not exceed
    /// the warning time, so that a task would end as soon as it starts.
    pub fn allow(self, settings: &Settings) -> Result<(), Failure> {
        let has_warning = !settings.scheduler.unsupported_keys().contains(&"warning");
        if let Some(time) = settings.time.filter(|time| has_warning && time.0 <= settings.warning.0) {
            let (time, warning) = (about(time.0 as f64), about(settings.warning.0 as f64));
            return Err(Failure::usage(format!(
                "time is {time}, but a task is ended {warning} before its limit (`warning`): allow more time, or set \
                 a shorter warning in cluster.toml"
            )));
        }
        let times = [("time", settings.time, self.tasks), ("collect.time", settings.collect.time, self.collecting)];
        for (key, time, longest) in times {
            if let (Some(time), Some(longest)) = (time, longest)
                && time.0 > longest
            {
                let longest = about(longest as f64);
                return Err(Failure::usage(format!("{key}: the partition allows at most {longest}")));
            }
        }
        Ok(())
    }
}

/// Target of a submission: the job's folder, the job, and the scheduler's limits.
type Place<'a> = (&'a Path, &'a Job, Limits);

#[derive(Debug)]
pub struct Batch {
    /// Submission number.
    pub number: u32,
    pub tasks: Vec<Vec<Work>>,
    /// Extra resources of each retried task, if any.
    pub retries: Vec<Retry>,
    /// Hash that identifies the submitted files.
    pub snapshot: String,
    /// See [`Submission::files`].
    pub files: Option<String>,
    /// Jobs that must end before the first task starts.
    pub after: After,
}

/// Jobs that must end before the tasks of another one start.
#[derive(Debug, Clone, Default)]
pub struct After {
    /// Ids in a scheduler whose commands this program runs.
    ids: Vec<String>,
    /// Shell words for the submitting commands of other schedulers.
    words: String,
}

/// Locks the job, so that only one process at a time submits or cancels its tasks.
pub fn lock(dir: &Path, console: &mut Console) -> Result<Option<FolderLock>, Failure> {
    match FolderLock::take(dir) {
        Ok(lock) => Ok(Some(lock)),
        Err(JournalError::Held { holder, .. }) => {
            Err(Failure::environment(format!("{} is used by {holder}: wait until it ends", dir.display())))
        }
        Err(error) => {
            // Some shared file systems do not support locks.
            console.say(&format!("warning: {error}; do not submit the job twice at the same time"));
            Ok(None)
        }
    }
}

/// Prints what [`send`] would do.
pub fn show((dir, job, limits): Place<'_>, batch: Batch, console: &mut Console) -> Result<(), Failure> {
    let limit = limit(job).unwrap_or(u32::MAX);
    let after = batch.after.clone();
    let submission = submission(batch);
    let sent = room(job, 0).min(submission.tasks.len());
    let parts = parts((dir, job, limits), &submission, 0..sent, limit);
    let Scripts { mut arrays, collecting } =
        render(&parts, limits, (sent < submission.tasks.len()).then_some("HASH")).map_err(Failure::usage)?;
    if let Some(queue) = job.settings.scheduler.queue().filter(|_| !after.ids.is_empty()) {
        for script in &mut arrays {
            queue.start_after(script, &after.ids);
        }
    }
    if let Some(mut script) = if job.searches { arrays.pop() } else { collecting } {
        if let Some(queue) = job.settings.scheduler.queue() {
            queue.start_after(&mut script, &["IDS".to_owned()]);
        }
        arrays.push(script);
    }
    // Several arrays may share a script.
    let mut last = None;
    for script in &arrays {
        if last.replace(&script.path) != Some(&script.path) {
            console.print(&format!("# {}\n{}\n", script.path.display(), script.text))?;
        }
    }
    print_commands(job, &arrays, &after.words, console)
}

/// Prints the submission commands of scripts, with the words that make them wait for other jobs. A search's last task
/// starts after all others.
fn print_commands(job: &Job, scripts: &[Script], waiting: &str, console: &mut Console) -> Result<(), Failure> {
    let of_user = match job.settings.scheduler.submitter() {
        Submitter::User { waiting, .. } => Some(waiting),
        Submitter::Program(_) => None,
    };
    for (rest, script) in (0..scripts.len()).rev().zip(scripts) {
        let ends_search = rest == 0 && job.searches;
        let waiting = match of_user {
            // All tasks of the job have the same name, and those of the shards are in the queue by then.
            Some(Some(after)) if ends_search => Cow::Owned(after(&[listed_name(job)])),
            Some(None) if ends_search => {
                console.print("# when all of these have ended:\n")?;
                Cow::Borrowed(waiting)
            }
            _ => Cow::Borrowed(waiting),
        };
        console.print(&format!("{}\n", script.command(&waiting).map_err(Failure::usage)?))?;
    }
    Ok(())
}

/// Submits every task and the collecting job. Without a supported scheduler, writes the scripts and prints the commands
/// for the user.
pub fn send(
    (dir, job, limits): Place<'_>,
    batch: Batch,
    earlier: &[Submission],
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    let limit = limit(job).map_err(Failure::environment)?;
    let after = batch.after.clone();
    let submission = submission(batch);
    let open = Open::find(dir, job, earlier, shards);
    let sent = room(job, open.tasks).min(submission.tasks.len());
    let parts = parts((dir, job, limits), &submission, 0..sent, limit);
    let first = whole((dir, job, limits), &submission);
    // All tasks share one script, so tasks submitted later run the same files.
    let rest = match job.settings.scheduler.queue() {
        Some(_) if sent < submission.tasks.len() => {
            let script = job.settings.scheduler.script(&first).map_err(Failure::usage)?;
            Some(sha256_hex(script.text.as_bytes()))
        }
        _ => None,
    };
    let tag = first.collecting_tag();
    let parts = if parts.is_empty() { vec![first] } else { parts };
    let Scripts { arrays, collecting } = render(&parts, limits, rest.as_deref()).map_err(Failure::usage)?;
    job.write(dir).map_err(Failure::environment)?;
    atomic::create_folder(&logs_folder(dir)).map_err(Failure::environment)?;
    for script in arrays.iter().chain(&collecting) {
        atomic::write(&script.path, script.text.as_bytes()).map_err(Failure::environment)?;
    }
    // Tasks read the submission, and each id is stored as soon as it is known.
    submission.write(dir).map_err(Failure::environment)?;
    let shown = word(&dir.strip_prefix(&job.directory).unwrap_or(dir).to_string_lossy())?;
    let Some(queue) = job.settings.scheduler.queue() else {
        print_commands(job, &arrays, &after.words, console)?;
        console.print(&format!("runner status {shown}\n"))?;
        return if job.searches { Ok(()) } else { print_collecting((dir, job), console) };
    };
    let mut sender = Sender { dir, job, queue, submission, open, after: after.ids };
    let ended = if sent == 0 { None } else { sender.arrays(parts.into_iter().zip(arrays), console)? };
    sender.finish(ended, collecting, &tag, console)?;
    console.print(&format!("runner status {shown}\n"))
}

/// Prints the command that collects the results.
fn print_collecting((dir, job): (&Path, &Job), console: &mut Console) -> Result<(), Failure> {
    let shown = word(&dir.strip_prefix(&job.directory).unwrap_or(dir).to_string_lossy())?;
    let out = job.out.as_ref().map(|out| word(&format!("--out={}", out.display()))).transpose()?;
    let out = out.map(|out| format!(" {out}")).unwrap_or_default();
    console.print(&format!("runner collect {shown}{out}\n"))
}

/// Submits the tasks of the last submission that a limit on queued tasks has held back. Their script must have the hash
/// `script`. The collecting job is resubmitted with its own script, `own`. Returns whether there were such tasks.
pub fn send_rest(dir: &Path, job: &Job, (script, own): (&str, &Path), console: &mut Console) -> Result<bool, Failure> {
    let Some(queue) = job.settings.scheduler.queue() else { return Ok(false) };
    let _lock = lock(dir, console)?;
    let mut submissions = Submission::all(dir, job).map_err(Failure::environment)?;
    let Some(submission) = submissions.pop() else { return Ok(false) };
    if submission.sent() == submission.tasks.len() || submission.cancelled.is_some() || submission.refused.is_some() {
        return Ok(false);
    }
    let limits = Limits::ask(&job.settings);
    let from = submission.sent();
    let until = from.saturating_add(room(job, 0)).min(submission.tasks.len());
    let parts = parts((dir, job, limits), &submission, from..until, limit(job).map_err(Failure::environment)?);
    let Scripts { arrays, collecting } = render(&parts, limits, Some(script)).map_err(Failure::usage)?;
    let collecting = collecting.map(|collecting| resubmitted(collecting, own)).transpose()?;
    for array in &arrays {
        // Others may be able to write to the job's folder, and the script would run as this user.
        let text = regular::read(&array.path).map_err(Failure::environment)?;
        if sha256_hex(&text) != script {
            return Err(Failure::usage(format!(
                "{} has changed since it was submitted: submit again",
                array.path.display()
            )));
        }
    }
    let Some(first) = parts.first() else { return Ok(false) };
    let tag = first.collecting_tag();
    let mut sender = Sender { dir, job, queue, submission, open: Open::default(), after: Vec::new() };
    let ended = sender.arrays(parts.into_iter().zip(arrays), console)?;
    sender.finish(ended, collecting, &tag, console)?;
    Ok(true)
}

/// Changes the submission of a collecting job to its own script, `own`: others may be able to write to the job's
/// folder, and a script from there would run as this user.
fn resubmitted(mut script: Script, own: &Path) -> Result<Script, Failure> {
    let path = own.to_str().ok_or_else(|| Failure::usage(format!("{} is not UTF-8: rename it", own.display())))?;
    for word in script.words.iter_mut().filter(|word| Path::new(word) == script.path) {
        path.clone_into(word);
    }
    Ok(script)
}

/// Resubmits the collecting job, unless the last submission's is queued or running, or the results are already
/// collected.
pub fn collect_again(
    place: Place<'_>,
    submissions: &[Submission],
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    let open = Open::find(place.0, place.1, submissions, shards);
    if open.collecting.is_some() || collected(place.0) >= submissions.len() as u32 {
        return Ok(());
    }
    collect_after(place, (submissions, open), shards, console)
}

/// Replaces the collecting job, whose options have changed since it was submitted.
pub fn collect_otherwise(
    place: Place<'_>,
    submissions: &[Submission],
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    let (dir, job, _) = place;
    if job.settings.scheduler.queue().is_none() {
        return print_collecting((dir, job), console);
    }
    mark_collected(dir, 0, None).map_err(Failure::environment)?;
    collect_after(place, (submissions, Open::find(dir, job, submissions, shards)), shards, console)
}

/// Submits a collecting job for the last submission, to start when the open tasks have ended.
fn collect_after(
    (dir, job, limits): Place<'_>,
    (submissions, open): (&[Submission], Open),
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    let Some((queue, submission)) = job.settings.scheduler.queue().zip(submissions.last()) else { return Ok(()) };
    // The collecting job depends on the arrays, so their ids must be known first.
    let is_unknown =
        open.arrays.is_empty() && shards.iter().any(|shard| !shard.state.is_missing() && shard.journal.is_none());
    if is_unknown || submission.cancelled.is_some() {
        return Ok(());
    }
    let part = Part { longest: limits.collecting, ..whole((dir, job, limits), submission) };
    let script = queue.collecting(&part, None).map_err(Failure::usage)?;
    atomic::write(&script.path, script.text.as_bytes()).map_err(Failure::environment)?;
    let mut sender = Sender { dir, job, queue, submission: submission.clone(), open, after: Vec::new() };
    sender.collecting(Some(script), &part.collecting_tag(), console)
}

/// Prints the commands that submit tasks which have not started, for a scheduler whose commands the user runs.
pub fn show_unstarted(
    (dir, job, limits): Place<'_>,
    submissions: &[Submission],
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    if job.settings.scheduler.queue().is_some() {
        return Ok(());
    }
    let mut scripts = Vec::new();
    for submission in submissions {
        let parts = parts((dir, job, limits), submission, 0..submission.tasks.len(), limit(job).unwrap_or(u32::MAX));
        let is_open = |part: &&Part<'_>| {
            let tasks = part.first..part.first + part.count;
            let is_its = |(number, task): (u32, usize)| number == part.number && tasks.contains(&task);
            shards.iter().any(|shard| shard.state == State::Queued && shard.place.is_some_and(is_its))
        };
        let open: Vec<Part<'_>> = parts.iter().filter(is_open).cloned().collect();
        scripts.extend(render(&open, limits, None).map_err(Failure::usage)?.arrays);
    }
    scripts.retain(|script| script.path.exists());
    if !scripts.is_empty() {
        console.print("# tasks that have not started; unless the scheduler has them:\n")?;
    }
    print_commands(job, &scripts, "", console)
}

/// What must end before the tasks of `job` start: everything queued or running of the jobs in `folders`.
pub fn open_jobs(folders: &[PathBuf], job: &Job, console: &mut Console) -> Result<After, Failure> {
    let (mut after, mut names) = (After::default(), Vec::new());
    let own = job.settings.scheduler;
    for dir in folders {
        let other = Job::read(dir).map_err(Failure::usage)?;
        let scheduler = other.settings.scheduler;
        if scheduler != own {
            return Err(Failure::usage(format!(
                "--after {}: that job is for {scheduler}, this one for {own}: submit it when the other has ended",
                dir.display()
            )));
        }
        names.push(listed_name(&other));
        if own.queue().is_some() {
            let mut submissions = Submission::all(dir, &other).map_err(Failure::environment)?;
            let shards = status::shards(dir, &other, &mut submissions, console);
            let Open { arrays, collecting, .. } = Open::find(dir, &other, &submissions, &shards);
            after.ids.extend(arrays.into_iter().chain(collecting));
        }
    }
    if let Submitter::User { waiting, .. } = own.submitter()
        && !names.is_empty()
    {
        let waiting = waiting.ok_or_else(|| {
            Failure::usage(format!("--after: {own} has no dependencies between jobs: submit when the other has ended"))
        })?;
        after.words = waiting(&names);
    }
    Ok(after)
}

/// The queued and running parts of a job.
#[derive(Debug, Default)]
struct Open {
    /// Arrays with queued or running tasks.
    arrays: Vec<String>,
    /// Number of queued or running tasks.
    tasks: usize,
    /// Id of the collecting job.
    collecting: Option<String>,
}

impl Open {
    fn find(dir: &Path, job: &Job, submissions: &[Submission], shards: &[ShardStatus]) -> Self {
        let open = shards.iter().filter(|shard| matches!(shard.state, State::Queued | State::Running));
        let tasks: BTreeSet<&String> = open.filter_map(|shard| shard.task.as_ref()).collect();
        let of_tasks: BTreeSet<&str> = tasks.iter().filter_map(|task| task.split('_').next()).collect();
        // In submission order.
        let ids = submissions.iter().flat_map(|submission| &submission.arrays).filter_map(|array| array.id.clone());
        let arrays = ids.filter(|id| of_tasks.contains(id.as_str())).collect();
        let known = Known::read(dir);
        let collecting = submissions.last().and_then(|last| {
            let (state, _) = collecting(job, last, &known)?;
            last.collect.clone().filter(|_| !state.is_missing())
        });
        Self { arrays, tasks: tasks.len(), collecting }
    }
}

struct Sender<'a> {
    dir: &'a Path,
    job: &'a Job,
    queue: &'a dyn Queue,
    submission: Submission,
    open: Open,
    /// Ids of jobs that must end before the first task starts.
    after: Vec<String>,
}

impl Sender<'_> {
    fn write(&self) -> Result<(), Failure> {
        self.submission.write(self.dir).map_err(Failure::environment)
    }

    /// Submits arrays until one is not accepted, and returns the outcome of that one.
    fn arrays<'a>(
        &mut self,
        scripts: impl Iterator<Item = (Part<'a>, Script)>,
        console: &mut Console,
    ) -> Result<Option<Sent>, Failure> {
        for (part, mut script) in scripts {
            let ends_search = self.job.searches && part.first + part.count == self.submission.tasks.len();
            let before = match self.open.arrays.as_slice() {
                all if ends_search => all,
                // The throttle applies to all arrays together, so each array waits for the previous one.
                [.., last] if self.job.settings.throttle.is_some() => std::slice::from_ref(last),
                _ => &[],
            };
            let before: Vec<String> = before.iter().chain(&self.after).cloned().collect();
            if !before.is_empty() {
                self.queue.start_after(&mut script, &before);
            }
            self.submission.arrays.push(Array { id: None, first: part.first, count: part.count, sent: now() });
            self.write()?;
            match place(self.queue, &script, &part.tag(), console) {
                Sent::Accepted(id) => {
                    console.print(&format!("array {id}: {}\n", plural(part.count as u64, "task")))?;
                    if let Some(array) = self.submission.arrays.last_mut() {
                        array.id = Some(id.clone());
                    }
                    self.open.arrays.push(id);
                    self.write()?;
                }
                Sent::Refused(why) => {
                    let why = part.grown().map_or(why.clone(), |grown| format!("{why} ({grown})"));
                    self.submission.arrays.pop();
                    self.submission.refused = Some(why.clone());
                    self.write()?;
                    return Ok(Some(Sent::Refused(why)));
                }
                Sent::Unknown(why) => {
                    if self.submission.sent() < self.submission.tasks.len() {
                        self.submission.refused = Some(why.clone());
                    }
                    self.write()?;
                    return Ok(Some(Sent::Unknown(why)));
                }
            }
        }
        Ok(None)
    }

    /// Submits the collecting job after the arrays. Fails if an array was not accepted.
    fn finish(
        &mut self,
        ended: Option<Sent>,
        collecting: Option<Script>,
        tag: &str,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let unsent = (self.submission.tasks.len() - self.submission.sent()) as u64;
        let unsent = if unsent > 0 { format!("; {} not submitted", plural(unsent, "task")) } else { String::new() };
        let remedy = "run the same command again to submit what is missing";
        match ended {
            Some(Sent::Unknown(why)) => Err(Failure::environment(format!(
                "{why}; it is not known yet whether the job was accepted{unsent}: {remedy}"
            ))),
            Some(Sent::Refused(why)) => {
                self.collecting(collecting, tag, console)?;
                Err(Failure::environment(format!("{why}{unsent}: {remedy}")))
            }
            Some(Sent::Accepted(_)) | None => self.collecting(collecting, tag, console),
        }
    }

    /// Submits the job that collects the results when all arrays have ended. It replaces the previous one.
    fn collecting(&mut self, script: Option<Script>, tag: &str, console: &mut Console) -> Result<(), Failure> {
        let Some(mut script) = script else { return Ok(()) };
        if self.open.arrays.is_empty() && self.submission.refused.is_some() {
            return Ok(());
        }
        // With nothing to wait for, it starts at once and submits the tasks itself.
        let before: Vec<String> = self.open.arrays.iter().chain(&self.after).cloned().collect();
        if !before.is_empty() {
            self.queue.start_after(&mut script, &before);
        }
        match place(self.queue, &script, tag, console) {
            Sent::Accepted(id) => {
                console.print(&format!("job {id}: collects the results\n"))?;
                self.submission.collect = Some(id);
                self.write()?;
                if let Some(before) = self.open.collecting.take() {
                    // If it cannot be cancelled, it collects what there is, and the next one collects again.
                    let _ = self.queue.cancel(&[before]);
                }
            }
            Sent::Refused(why) | Sent::Unknown(why) => {
                console.say(&format!(
                    "warning: the job that collects the results was not accepted ({why}): run the same command again \
                     to submit it, or use `runner collect`"
                ));
            }
        }
        Ok(())
    }
}

/// Submits a script. Without an answer, checks whether the scheduler received it.
fn place(queue: &dyn Queue, script: &Script, tag: &str, console: &mut Console) -> Sent {
    let sent = queue.submit(script);
    let Sent::Unknown(why) = &sent else { return sent };
    console.say(&format!("{why}; checking whether it was accepted"));
    for pause in LOOKS {
        thread::sleep(pause);
        if let Ok(Some(id)) = queue.find(tag) {
            return Sent::Accepted(id);
        }
    }
    sent
}

/// A submission of a version that needs no task: `snapshot` and `files` identify it.
pub fn without_tasks(number: u32, (snapshot, files): (String, String)) -> Submission {
    let (tasks, retries, after) = (Vec::new(), Vec::new(), After::default());
    submission(Batch { number, tasks, retries, snapshot, files: Some(files), after })
}

fn submission(batch: Batch) -> Submission {
    let Batch { number, tasks, retries, snapshot, files, .. } = batch;
    let submitted = humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string();
    Submission { number, user: Some(user()), submitted, snapshot, files, tasks, retries, ..Submission::default() }
}

/// All tasks of a submission.
fn whole<'a>((folder, job, limits): Place<'a>, submission: &Submission) -> Part<'a> {
    let seconds = submission.tasks.iter().map(|task| task.iter().map(|work| job.seconds(*work)).sum());
    let seconds = seconds.fold(0.0, f64::max);
    let (number, count) = (submission.number, submission.tasks.len());
    let snapshot = submission.snapshot.clone();
    let longest = limits.tasks;
    Part { job, folder, number, first: 0, count, seconds, snapshot, retry: Retry::default(), longest }
}

/// Number of tasks that may still be submitted while `open` tasks are queued.
fn room(job: &Job, open: usize) -> usize {
    job.settings.queue.map_or(usize::MAX, |most| (most.get() as usize).saturating_sub(open))
}

struct Scripts {
    arrays: Vec<Script>,
    /// Script that collects the results, if this program submits it.
    collecting: Option<Script>,
}

fn render(parts: &[Part<'_>], limits: Limits, rest: Option<&str>) -> Result<Scripts, ScriptError> {
    let Some(first) = parts.first() else { return Ok(Scripts { arrays: Vec::new(), collecting: None }) };
    let scheduler = first.job.settings.scheduler;
    let arrays = parts.iter().map(|part| scheduler.script(part)).collect::<Result<_, _>>()?;
    let of_collecting = Part { longest: limits.collecting, ..first.clone() };
    // A search's last task collects the results itself.
    let queue = scheduler.queue().filter(|_| !first.job.searches);
    Ok(Scripts { arrays, collecting: queue.map(|queue| queue.collecting(&of_collecting, rest)).transpose()? })
}

/// Maximum job array size that the scheduler accepts.
fn limit(job: &Job) -> Result<u32, QueueError> {
    match (job.settings.max_array, job.settings.scheduler.queue()) {
        (Some(limit), _) => Ok(limit.get()),
        (None, Some(queue)) => queue.max_array(),
        (None, None) => Ok(MAX_ARRAY),
    }
}

/// Divides tasks into arrays of at most `limit` tasks with equal resources.
fn parts<'a>(place: Place<'a>, submission: &Submission, tasks: std::ops::Range<usize>, limit: u32) -> Vec<Part<'a>> {
    let whole = whole(place, submission);
    let limit = limit.max(1) as usize;
    let mut parts: Vec<Part<'a>> = Vec::new();
    for task in tasks {
        let retry = submission.retry(task);
        let ends_search = whole.job.searches && task + 1 == submission.tasks.len();
        match parts.last_mut() {
            Some(part) if part.retry == retry && part.count < limit && !ends_search => part.count += 1,
            _ => parts.push(Part { first: task, count: 1, retry, ..whole.clone() }),
        }
    }
    parts
}

fn word(text: &str) -> Result<String, Failure> {
    shlex::try_quote(text)
        .map(Cow::into_owned)
        .map_err(|_| Failure::usage(format!("{text:?} cannot be passed to a shell command")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(tasks: usize, retries: &[Retry], limit: u32) -> Vec<(usize, usize)> {
        let job = Job::default();
        let submission =
            Submission { tasks: vec![Vec::new(); tasks], retries: retries.to_vec(), ..Submission::default() };
        let place = (Path::new("job"), &job, Limits::default());
        parts(place, &submission, 0..tasks, limit).iter().map(|part| (part.first, part.count)).collect()
    }

    #[test]
    fn arrays_are_split_at_the_limit_of_the_site_and_where_tasks_get_more() {
        assert_eq!(bounds(2500, &[], 1001), [(0, 1001), (1001, 1001), (2002, 498)]);
        assert_eq!(bounds(3, &[], 1001), [(0, 3)]);
        assert_eq!(bounds(0, &[], 1001), []);
        let (plain, more) = (Retry::default(), Retry { memory: 1, time: 0 });
        assert_eq!(bounds(4, &[plain, plain, more, more], 1001), [(0, 2), (2, 2)]);
    }
}
