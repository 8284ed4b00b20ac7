//! What became of every shard: by its journals first, and where these do not say, by the scheduler and the tasks' logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::job::{read_json, write_json};
use super::scheduler::{Outcome, Queue, Seen};
use super::shards::outdated_by;
use super::{Job, JobError, Submission, TaskEvent, TaskLog, Work, is_done};

/// The scheduler is asked at most this often, seconds.
const INTERVAL: u64 = 60;
/// A task that the scheduler does not know is lost after this long, seconds.
const LOST_AFTER: u64 = 600;

/// What the scheduler said last, kept in the folder of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// When it was asked, seconds since 1970.
    pub at: u64,
    /// What was seen of each task, by the scheduler's names. A task that it has forgotten stays as it was seen last.
    pub tasks: BTreeMap<String, Sighting>,
}

/// A task as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The time in seconds since 1970.
    pub at: u64,
    /// What the scheduler said.
    #[serde(flatten)]
    pub seen: Seen,
}

/// Where a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// Every case was run; it has results, right or wrong.
    Done,
    /// The shard's task runs.
    Running,
    /// The shard's task waits.
    Queued,
    /// The shard's task ended without all results.
    Failed,
    /// The scheduler does not know the shard's task.
    Lost,
    /// The shard's results no longer apply: a source, an option or an input has changed.
    Outdated,
    /// The shard is in no task that the scheduler accepted.
    #[strum(serialize = "not submitted")]
    Unsubmitted,
}

impl State {
    /// Whether the shard has no result and none is on its way.
    pub const fn is_missing(self) -> bool {
        matches!(self, Self::Failed | Self::Lost | Self::Outdated | Self::Unsubmitted)
    }
}

/// A shard and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStatus {
    /// The shard that this is about.
    pub work: Work,
    /// Where it is.
    pub state: State,
    /// The scheduler's name of the shard's last task.
    pub task: Option<String>,
    /// Why, in words; may be empty.
    pub why: String,
}

impl Known {
    /// Returns what the scheduler said last about the job in `dir`.
    pub fn read(dir: &Path) -> Self {
        read_json(&Self::path(dir)).unwrap_or_default()
    }

    /// Whether it is time to ask again.
    pub fn is_old(&self) -> bool {
        now().saturating_sub(self.at) >= INTERVAL
    }

    /// Adds an answer and keeps it in `dir`.
    pub fn update(&mut self, dir: &Path, answer: BTreeMap<String, Seen>) -> Result<(), JobError> {
        self.at = now();
        let at = self.at;
        self.tasks.extend(answer.into_iter().map(|(id, seen)| (id, Sighting { at, seen })));
        write_json(&Self::path(dir), self)
    }

    fn path(dir: &Path) -> PathBuf {
        dir.join("scheduler.json")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the state of every shard of the job in `dir`.
pub fn status(dir: &Path, job: &Job, submissions: &[Submission], known: &Known) -> Vec<ShardStatus> {
    // Later submissions replace earlier ones.
    let mut tasks: BTreeMap<Work, (&Submission, usize)> = BTreeMap::new();
    for submission in submissions {
        for (task, shards) in submission.tasks.iter().enumerate() {
            tasks.extend(shards.iter().map(|work| (*work, (submission, task))));
        }
    }
    let queue = job.settings.scheduler.queue();
    let status_of = |work: Work| {
        let task = tasks.get(&work).copied();
        let id = task.and_then(|(submission, task)| submission.id_of(task));
        let folder = job.folder(dir, work);
        let is_outdated = || {
            let last = task.map(|(submission, _)| submission.number);
            outdated_by(&folder).is_some_and(|submissions| last.is_none_or(|last| last <= submissions))
        };
        let (state, why) = if is_done(&folder) {
            (State::Done, String::new())
        } else if is_outdated() {
            (State::Outdated, "code or inputs have changed".to_owned())
        } else {
            match (task, queue, &id) {
                (Some((submission, task)), None, _) => explain_by_log(&TaskLog::new(dir, submission.number, task)),
                (Some((submission, task)), Some(queue), Some(id)) => {
                    let log = TaskLog::new(dir, submission.number, task);
                    explain((queue, known), id, &submission.submitted, &log, now())
                }
                _ => (State::Unsubmitted, String::new()),
            }
        };
        ShardStatus { work, state, task: id, why }
    };
    job.work().map(status_of).collect()
}

/// Returns the state of a task whose shards have no results.
fn explain(
    (queue, known): (&dyn Queue, &Known),
    id: &str,
    submitted: &str,
    log: &TaskLog,
    now: u64,
) -> (State, String) {
    let said = last_words(log);
    let joined = |parts: [String; 2]| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let Some(Sighting { at, seen }) = known.tasks.get(id) else {
        if knows_others(known, id) {
            let gone = "the scheduler no longer lists it, so it was cancelled or has ended";
            return (State::Failed, joined([gone.to_owned(), said]));
        }
        let since = humantime::parse_rfc3339(submitted).ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        let age = now.saturating_sub(since.map_or(0, |since| since.as_secs()));
        return if age > LOST_AFTER {
            (State::Lost, joined(["unknown to the scheduler".to_owned(), said]))
        } else {
            (State::Queued, "not seen by the scheduler yet".to_owned())
        };
    };
    let place = if seen.nodes.is_empty() { String::new() } else { format!(" on {}", seen.nodes) };
    match queue.outcome(&seen.state) {
        Outcome::Waits => (State::Queued, seen.reason.clone()),
        // The scheduler forgets tasks some time after their end.
        Outcome::Runs if *at < known.at && now.saturating_sub(*at) > LOST_AFTER => {
            (State::Lost, joined([format!("ran{place} when the scheduler saw it last"), said]))
        }
        Outcome::Runs => (State::Running, place.trim_start().to_owned()),
        Outcome::Ended(word) => (State::Failed, joined([format!("{word}{place}"), said])),
    }
}

/// Explains the state of a shard by its log, for a scheduler that is not asked.
fn explain_by_log(log: &TaskLog) -> (State, String) {
    match log.read().pop().map(|attempt| attempt.event) {
        None => (State::Queued, "it has not begun".to_owned()),
        Some(TaskEvent::Started { node, .. }) => (State::Running, format!("on {node}, unless it was killed")),
        Some(_) => (State::Failed, last_words(log)),
    }
}

/// Whether the last answer has other tasks of the same array.
fn knows_others(known: &Known, id: &str) -> bool {
    let Some((array, _)) = id.split_once('_') else { return false };
    let is_other = |(other, sighting): (&String, &Sighting)| {
        sighting.at == known.at && other.split_once('_').is_some_and(|(name, _)| name == array)
    };
    known.tasks.iter().any(is_other)
}

/// Returns what the task wrote last about its trouble.
fn last_words(log: &TaskLog) -> String {
    let words = |event: TaskEvent| match event {
        TaskEvent::Refused { node, why } => Some(format!("{node}: {why}")),
        TaskEvent::Stopped { why } => Some(why),
        TaskEvent::Started { .. } | TaskEvent::Requeued { .. } | TaskEvent::Finished => None,
    };
    log.read().into_iter().rev().find_map(|attempt| words(attempt.event)).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::SchedulerKind;

    const SUBMITTED: &str = "2026-01-01T00:00:00Z";
    /// A moment in seconds since 1970.
    const THEN: u64 = 1_767_225_600;

    fn seen(state: &str, reason: &str, nodes: &str) -> Known {
        let seen = Seen { state: state.to_owned(), reason: reason.to_owned(), nodes: nodes.to_owned() };
        Known { at: THEN, tasks: BTreeMap::from([("7_0".to_owned(), Sighting { at: THEN, seen })]) }
    }

    fn explained(known: &Known, later: u64) -> (State, String) {
        let log = TaskLog::new(Path::new("/nonexistent"), 1, 0);
        let queue = SchedulerKind::Slurm.queue().unwrap();
        explain((queue, known), "7_0", SUBMITTED, &log, THEN + later)
    }

    #[test]
    fn the_ends_of_a_task_differ() {
        let words = |state| explained(&seen(state, "", "n1"), 10);
        assert_eq!(words("TIMEOUT"), (State::Failed, "reached its time limit on n1".to_owned()));
        assert_eq!(words("NODE_FAIL"), (State::Failed, "its node failed on n1".to_owned()));
        assert_eq!(words("CANCELLED"), (State::Failed, "cancelled on n1".to_owned()));
        assert_eq!(words("RUNNING"), (State::Running, "on n1".to_owned()));
        assert_eq!(explained(&seen("PENDING", "Priority", ""), 10_000), (State::Queued, "Priority".to_owned()));
    }

    #[test]
    fn a_task_that_is_missing_among_others_of_its_array_has_ended() {
        let mut known = seen("RUNNING", "", "n1");
        let sighting = known.tasks.remove("7_0").map(|seen| ("7_1".to_owned(), seen));
        known.tasks.extend(sighting);
        let (state, why) = explained(&known, 10);
        assert_eq!(state, State::Failed);
        assert!(why.contains("cancelled or has ended"), "{why}");
    }

    #[test]
    fn a_task_that_the_scheduler_does_not_know_is_lost_after_a_while() {
        let nothing = Known { at: THEN + 900, ..Known::default() };
        assert_eq!(explained(&nothing, 30).0, State::Queued);
        assert_eq!(explained(&nothing, 601), (State::Lost, "unknown to the scheduler".to_owned()));
        // It ran, and is in no later answer.
        let known = Known { at: THEN + 60, ..seen("RUNNING", "", "n1") };
        assert_eq!(explained(&known, 590).0, State::Running);
        assert_eq!(explained(&known, 601).0, State::Lost);
    }
}
