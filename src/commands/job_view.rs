//! A job's state for people and programs: its progress, what is queued and why, what failed and where its log is.
//!
//! `status`, `collect` and `submit` share it, so that they describe a job in the same way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::hints;
use runner_cluster::scheduler::Cause;
use runner_cluster::{
    Job, Known, Settings, ShardStatus, Snapshot, State, Submission, collected, collecting, collecting_failure,
    logs_folder, now, ran_cases, waiting_in_vain,
};
use runner_files::regular;
use runner_lang::format::{about, plural, visible_json};

const MOST_LINES: usize = 20;

const MOST_LISTED_NAMES: usize = 3;

/// Size limit, in bytes, of logs whose last line is shown.
const LONGEST_LOG: u64 = 16 << 20;

/// States in the order in which counts list them.
const COUNTED: [State; 8] = [
    State::Done,
    State::Running,
    State::Queued,
    State::Failed,
    State::Lost,
    State::Damaged,
    State::Outdated,
    State::Unsubmitted,
];

/// States of shards without a result that will not produce one, in listing order.
const MISSING: [State; 5] = [State::Failed, State::Lost, State::Damaged, State::Outdated, State::Unsubmitted];

#[derive(Debug)]
pub struct JobView<'a> {
    dir: &'a Path,
    job: &'a Job,
    shards: &'a [ShardStatus],
    /// Number of finished cases, including those of unfinished shards.
    cases: u64,
    /// Seconds since the last submission, and the estimated remaining seconds, if known.
    time: Option<(u64, Option<f64>)>,
    /// Age of the scheduler's answer, in seconds.
    age: Option<u64>,
    /// The collecting job: its id, its state and the reason for it.
    collecting: Option<(String, State, String)>,
    /// Files of the last submission that have been edited since.
    edited: Vec<PathBuf>,
    /// When the job was last submitted: RFC 3339, UTC.
    submitted: Option<String>,
}

impl<'a> JobView<'a> {
    pub fn new(
        dir: &'a Path,
        job: &'a Job,
        submissions: &[Submission],
        shards: &'a [ShardStatus],
        known: &Known,
    ) -> Self {
        let version = Submission::version(submissions);
        let cases = |shard: &ShardStatus| match shard.state {
            State::Done => job.cases(shard.work),
            State::Running | State::Queued | State::Failed | State::Lost => {
                ran_cases(&job.folder(dir, shard.work), version)
            }
            State::Damaged | State::Outdated | State::Unsubmitted => 0,
        };
        let cases = shards.iter().map(cases).sum();
        let last = submissions.last();
        let collecting = last.and_then(|last| {
            let id = last.collect.clone()?;
            let (state, mut why) = collecting(job, last, known)?;
            if collected(dir) >= submissions.len() as u32 {
                return Some(match collecting_failure(dir) {
                    None => (id, State::Done, String::new()),
                    Some(failure) => (id, State::Failed, failure),
                });
            }
            if let [(first, reason), rest @ ..] = &waiting_in_vain(dir, job, last, shards, known)[..] {
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                let _ = write!(
                    why,
                    "; it waits for task {first}{more}, whose shards are done ({reason}): {} does not wait",
                    hints::of_job("collect", dir)
                );
            }
            Some((id, state, why))
        });
        let time = last.and_then(|last| time(job, last, shards));
        let edited = last.map(|last| edited(dir, job, last)).unwrap_or_default();
        let submitted = last.map(|last| last.submitted.clone());
        Self {
            dir,
            job,
            shards,
            cases,
            time,
            age: last.and_then(|last| known.age(last.user)),
            collecting,
            edited,
            submitted,
        }
    }

    /// Whether something of the job is still queued or running: a task, or the collecting job.
    pub fn is_open(&self) -> bool {
        let of_tasks = self.shards.iter().map(|shard| shard.state);
        let collecting = self.collecting.iter().map(|(_, state, _)| *state);
        of_tasks.chain(collecting).any(|state| matches!(state, State::Queued | State::Running))
    }

    /// The job on one line.
    pub fn line(&self) -> String {
        let submitted = self.submitted.as_deref().and_then(|time| time.get(..10));
        let submitted = submitted.map(|date| format!("; submitted on {date}")).unwrap_or_default();
        format!("{}: {}{submitted}", self.dir.display(), counts(self.job, self.shards))
    }

    /// The job in lines for people.
    pub fn text(&self) -> String {
        let mut text = counts(self.job, self.shards) + "\n";
        let planned: u64 = self.shards.iter().map(|shard| self.job.cases(shard.work)).sum();
        let mut facts = Vec::new();
        if !self.job.searches {
            facts.push(format!("{} of {planned} cases done", self.cases));
        }
        let tasks = self.tasks();
        if tasks.len() > 1 && !self.job.searches {
            let listed = tasks.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>();
            facts.push(format!("tasks: {}", listed.join(", ")));
        }
        let is_open = self.shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running));
        if let Some((elapsed, left)) = self.time.filter(|_| is_open) {
            let left = left.map(|left| format!(", about {} left", about(left))).unwrap_or_default();
            facts.push(format!("{} since it was submitted{left}", about(elapsed as f64)));
        }
        if let Some(age) = self.age.filter(|_| is_open) {
            facts.push(format!("the scheduler answered {} ago", about(age as f64)));
        }
        if !facts.is_empty() {
            let _ = writeln!(text, "  {}", facts.join("; "));
        }
        if let Some((id, state, why)) = &self.collecting {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let _ = writeln!(text, "  job {id} collects the results: {state}{why}");
        }
        if let Some(line) = self.job.command_line() {
            let _ = writeln!(text, "  submitted by: {line}");
        }
        if let [first, rest @ ..] = self.edited.as_slice() {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let _ = writeln!(
                text,
                "  edited since it was submitted: {}{more}; {}",
                first.display(),
                hints::after_edit(self.dir, self.job, self.shards, &self.edited)
            );
        }
        text + &listed(self.dir, self.job, self.shards)
    }

    /// Everything as JSON, on one line.
    pub fn json(&self) -> String {
        let count = |state: State| self.shards.iter().filter(|shard| shard.state == state).count();
        let states: BTreeMap<String, usize> =
            COUNTED.into_iter().map(|state| (state.to_string().replace(' ', "_"), count(state))).collect();
        let tasks: BTreeMap<String, usize> =
            self.tasks().into_iter().map(|(state, count)| (state.to_string().replace(' ', "_"), count)).collect();
        let waiting: BTreeMap<&str, usize> = grouped(self.shards, State::Queued, |shard| shard.why.as_str());
        let described = |shard: &ShardStatus| {
            let log = shard.task.as_deref().map(|task| log_of(self.dir, task));
            let log = log.filter(|log| log.is_file());
            json!({
                "shard": self.job.label(shard.work),
                "state": shard.state.to_string().replace(' ', "_"),
                "cases": self.job.cases(shard.work),
                "task": shard.task,
                "why": shard.why,
                "last_line": log.as_deref().and_then(last_line),
                "log": log,
            })
        };
        let of_states = |states: &[State]| -> Vec<Value> {
            self.shards.iter().filter(|shard| states.contains(&shard.state)).map(described).collect()
        };
        let value = json!({
            "job": self.job.name,
            "folder": self.dir,
            "command": self.job.command,
            "submitted": self.submitted,
            "shards": states,
            "tasks": tasks,
            "cases": {
                "planned": self.shards.iter().map(|shard| self.job.cases(shard.work)).sum::<u64>(),
                "done": self.cases,
            },
            "elapsed_seconds": self.time.map(|(elapsed, _)| elapsed),
            "left_seconds": self.time.and_then(|(_, left)| left),
            "answer_age_seconds": self.age,
            "collecting": self.collecting.as_ref().map(|(id, state, why)| {
                json!({ "id": id, "state": state.to_string(), "why": why })
            }),
            "edited": self.edited,
            "waiting": waiting,
            "running": of_states(&[State::Running]),
            "missing": of_states(&MISSING),
        });
        visible_json(&value.to_string()).into_owned()
    }

    /// Counts the tasks by state. A task has the state of its worst shard.
    fn tasks(&self) -> BTreeMap<State, usize> {
        let mut states: BTreeMap<(u32, usize), State> = BTreeMap::new();
        for shard in self.shards {
            if let Some(place) = shard.place {
                let state = states.entry(place).or_insert(shard.state);
                *state = (*state).max(shard.state);
            }
        }
        let mut counts = BTreeMap::new();
        for state in states.into_values() {
            *counts.entry(state).or_default() += 1;
        }
        counts
    }
}

/// Files of a submission that have been edited since, relative to the tasks' working directory if below it.
fn edited(dir: &Path, job: &Job, submission: &Submission) -> Vec<PathBuf> {
    // A search runs without copies. If the checkout has moved, edits cannot be detected.
    let snapshot = Snapshot::read(dir, &submission.snapshot).ok().filter(|_| job.directory.exists());
    let relative = |path: &Path| path.strip_prefix(&job.directory).unwrap_or(path).to_owned();
    snapshot.map(|snapshot| snapshot.edited(dir).map(relative).collect()).unwrap_or_default()
}

/// Seconds since a submission, and the estimated remaining seconds. The estimate assumes that the remaining work
/// proceeds at the rate of the shards finished since then.
fn time(job: &Job, last: &Submission, shards: &[ShardStatus]) -> Option<(u64, Option<f64>)> {
    let submitted = humantime::parse_rfc3339(&last.submitted).ok()?;
    let elapsed = now().saturating_sub(submitted.duration_since(UNIX_EPOCH).ok()?.as_secs());
    let is_newer = |journal: &PathBuf| {
        let written: Option<SystemTime> = fs::metadata(journal).and_then(|metadata| metadata.modified()).ok();
        written.is_some_and(|written| written >= submitted)
    };
    // A shard without an estimate still counts as some work.
    let work = |shard: &ShardStatus| job.seconds(shard.work).max(1e-9);
    let done: f64 = shards.iter().filter(|shard| shard.journal.as_ref().is_some_and(is_newer)).map(work).sum();
    let open = shards.iter().filter(|shard| matches!(shard.state, State::Queued | State::Running));
    let open: f64 = open.map(work).sum();
    Some((elapsed, (done > 0.0 && open > 0.0).then(|| elapsed as f64 * open / done)))
}

/// Counts the shards by state: `job reduce-1f3a: 40 shards: 30 done, 10 queued`.
pub fn counts(job: &Job, shards: &[ShardStatus]) -> String {
    let count = |state: State| shards.iter().filter(|shard| shard.state == state).count();
    let parts: Vec<String> = COUNTED
        .into_iter()
        .map(|state| (count(state), state))
        .filter(|(n, _)| *n > 0)
        .map(|(n, state)| format!("{n} {state}"))
        .collect();
    // The last task of a search is not a shard.
    let what = if job.searches { "task" } else { "shard" };
    format!("job {}: {}: {}", job.name, plural(shards.len() as u64, what), parts.join(", "))
}

/// Lists the unfinished shards. A few missing ones are listed individually with the end of their log; the others are
/// grouped by what they wait for and where they run.
pub fn listed(dir: &Path, job: &Job, shards: &[ShardStatus]) -> String {
    let mut text = String::new();
    for state in MISSING {
        let of_state: Vec<&ShardStatus> = shards.iter().filter(|shard| shard.state == state).collect();
        for shard in of_state.iter().take(MOST_LINES) {
            let task = shard.task.as_ref().map(|task| format!(" (task {task})")).unwrap_or_default();
            let why = if shard.why.is_empty() { String::new() } else { format!(": {}", shard.why) };
            let _ = writeln!(text, "  {state:<13}  {}{task}{why}", job.label(shard.work));
            let log = shard.task.as_deref().map(|task| log_of(dir, task));
            if let Some((log, line)) = log.and_then(|log| last_line(&log).map(|line| (log, line))) {
                let _ = writeln!(text, "  {:<13}  {}: {line}", "", log.display());
            }
        }
        for cause in [Cause::Time, Cause::Memory] {
            if of_state.iter().any(|shard| shard.cause == Some(cause)) {
                let _ = writeln!(text, "  {:<13}  {}", "", remedy(&job.settings, cause));
            }
        }
        let rest: Vec<&ShardStatus> = of_state.into_iter().skip(MOST_LINES).collect();
        for (why, count) in grouped(rest.iter().copied(), state, |shard| shard.why.as_str()) {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let _ = writeln!(text, "  {state:<13}  and {count} more{why}");
        }
    }
    for state in [State::Running, State::Queued] {
        let mut groups: BTreeMap<&str, Vec<&ShardStatus>> = BTreeMap::new();
        for shard in shards.iter().filter(|shard| shard.state == state) {
            groups.entry(&shard.why).or_default().push(shard);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, shards)| std::cmp::Reverse(shards.len()));
        for (why, shards) in groups.iter().take(MOST_LINES) {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let named = shards.iter().take(MOST_LISTED_NAMES).map(|shard| {
                let task = shard.task.as_ref().map(|task| format!(" (task {task})")).unwrap_or_default();
                format!("{}{task}", job.label(shard.work))
            });
            let named = named.collect::<Vec<_>>().join(", ");
            let more = shards.len().saturating_sub(MOST_LISTED_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(text, "  {state:<13}  {named}{more}{why}");
        }
        let rest = groups.iter().skip(MOST_LINES).map(|(_, shards)| shards.len()).sum::<usize>();
        if rest > 0 {
            let _ = writeln!(text, "  {state:<13}  and {rest} more");
        }
    }
    text
}

/// What to do about tasks that ran out of a resource.
fn remedy(settings: &Settings, cause: Cause) -> &'static str {
    match cause {
        Cause::Time if settings.time_factor.is_some() => "the next submission allows more time (time_factor)",
        Cause::Time => "out of time: submit again with a longer --time or more --requeues, or set time_factor",
        Cause::Memory if settings.memory_factor.is_some() => "the next submission asks for more memory (memory_factor)",
        Cause::Memory => "out of memory: submit again with more --memory, or set memory_factor",
    }
}

/// Groups shards by a key, and counts each group.
fn grouped<'s, T: 's + ?Sized + Ord>(
    shards: impl IntoIterator<Item = &'s ShardStatus>,
    state: State,
    text: impl Fn(&'s ShardStatus) -> &'s T,
) -> BTreeMap<&'s T, usize> {
    let mut counts = BTreeMap::new();
    for shard in shards.into_iter().filter(|shard| shard.state == state) {
        *counts.entry(text(shard)).or_default() += 1;
    }
    counts
}

/// Log of the task with this name in the scheduler.
fn log_of(dir: &Path, task: &str) -> PathBuf {
    logs_folder(dir).join(format!("task-{task}.out"))
}

/// Last line of a log, which may contain arbitrary program output.
fn last_line(log: &Path) -> Option<String> {
    let bytes = regular::read_up_to(log, LONGEST_LOG).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).collect())
}
