//! State of every shard of a job. The journals decide; the scheduler and the tasks' logs only explain what the journals
//! leave open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::log::{Attempt, OUT_OF_MEMORY, TIME_WAS_NEAR, TaskEvent, TaskLog};
use super::scheduler::{Cause, Outcome, Queue};
use super::shards::{Outdated, damage, finished_journal, is_done, outdated};
use super::view::{Known, Sighting};
use super::{Job, Submission, Work};

/// Seconds without mention by the scheduler after which a task counts as lost.
const LOST_AFTER: u64 = 600;

/// Why results do not count for the job's current version.
const CHANGED: &str = "code or inputs have changed";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// Every case ran, with a right or wrong result.
    Done,
    Running,
    Queued,
    /// The task ended without all its results.
    Failed,
    /// The scheduler does not know the task.
    Lost,
    /// The results were complete, but their file has changed since.
    Damaged,
    /// A source, an option or an input has changed since the results were measured.
    Outdated,
    /// The shard is in no task that the scheduler accepted.
    #[strum(serialize = "not submitted")]
    Unsubmitted,
}

impl State {
    /// Whether the shard has no result and no task will produce one.
    pub const fn is_missing(self) -> bool {
        matches!(self, Self::Failed | Self::Lost | Self::Damaged | Self::Outdated | Self::Unsubmitted)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStatus {
    pub work: Work,
    pub state: State,
    /// The scheduler's id of the shard's last task.
    pub task: Option<String>,
    /// Reason for the state; may be empty.
    pub why: String,
    /// Resource that the failed task ran out of.
    pub cause: Option<Cause>,
    /// Number of the last task's submission, and index of the task in it.
    pub place: Option<(u32, usize)>,
    /// Journal with the results, if the shard is done.
    pub journal: Option<PathBuf>,
}

/// State of every shard of the job in `dir`.
pub fn status(dir: &Path, job: &Job, submissions: &[Submission], known: &Known) -> Vec<ShardStatus> {
    // Later submissions override earlier ones.
    let mut tasks: BTreeMap<Work, (&Submission, usize)> = BTreeMap::new();
    for submission in submissions {
        for (task, shards) in submission.tasks.iter().enumerate() {
            tasks.extend(shards.iter().map(|work| (*work, (submission, task))));
        }
    }
    let queue = job.settings.scheduler.queue();
    let version = Submission::version(submissions);
    let status_of = |work: Work| {
        let task = tasks.get(&work).copied();
        let id = task.and_then(|(submission, task)| submission.id_of(task));
        let folder = job.folder(dir, work);
        let last = task.map(|(submission, _)| submission.number);
        let applies_not = |mark: &Outdated| last.is_none_or(|last| last <= mark.submissions);
        let journal = finished_journal(&folder, version);
        // The last submission left out this shard, whose results come from another version.
        let is_left = || task.is_none_or(|(sent, _)| sent.files.as_deref() != version) && is_done(&folder, None);
        let mut cause = None;
        let log = || task.map(|(sent, task)| TaskLog::new(dir, sent.number, task).of_shard(work)).unwrap_or_default();
        let is_searched = || job.searches && log().last().is_some_and(|line| line.event == TaskEvent::Finished);
        let (state, why) = if journal.is_some() || is_searched() {
            (State::Done, String::new())
        } else if let Some(mark) = outdated(&folder).filter(applies_not) {
            let why = if mark.is_rerun { "marked for a rerun" } else { CHANGED };
            (State::Outdated, why.to_owned())
        } else if is_left() {
            (State::Outdated, CHANGED.to_owned())
        } else {
            match (task, queue) {
                (Some((submission, _)), None) => explain_by_log(submission, &log()),
                (Some((submission, task)), Some(queue)) if submission.array_of(task).is_some() => {
                    let log = log();
                    let name = id.as_deref().unwrap_or_default();
                    let explained = explain((queue, known), submission, name, &log);
                    let ended = known.sighting(queue, name).and_then(|sighting| queue.cause(&sighting.seen.state));
                    let said = match last_words(&log).as_str() {
                        TIME_WAS_NEAR => Some(Cause::Time),
                        OUT_OF_MEMORY => Some(Cause::Memory),
                        _ => None,
                    };
                    cause = ended.or(said).filter(|_| explained.0 == State::Failed);
                    explained
                }
                (Some((submission, _)), Some(queue)) => explain_unsent((queue, known), submission),
                (None, _) => (State::Unsubmitted, String::new()),
            }
        };
        let damage = match state {
            State::Done | State::Outdated => None,
            // A task that logged its end has also written the end of its journal.
            _ if log().last().is_some_and(|line| line.event == TaskEvent::Finished) => {
                damage(&folder).or_else(|| Some("its journal has no end record".to_owned()))
            }
            // If a later task is still pending, it may replace the damaged results.
            _ if state.is_missing() => damage(&folder),
            _ => None,
        };
        let (state, why) = damage.map_or((state, why), |why| (State::Damaged, why));
        let place = task.map(|(submission, task)| (submission.number, task));
        ShardStatus { work, state, task: id, why, cause, place, journal }
    };
    job.work().map(status_of).collect()
}

/// Folder of the report that a search has written, relative to the job's directory, if it has ended.
pub fn report_of_search(dir: &Path, shards: &[ShardStatus]) -> Option<PathBuf> {
    let (number, task) = shards.last()?.place?;
    TaskLog::new(dir, number, task).read().into_iter().rev().find_map(|line| match line.event {
        TaskEvent::Reported { folder } => Some(folder),
        _ => None,
    })
}

/// State of the job that collects a submission's results, with the reason; `None` without such a job.
pub fn collecting(job: &Job, submission: &Submission, known: &Known) -> Option<(State, String)> {
    let queue = job.settings.scheduler.queue()?;
    Some(explain((queue, known), submission, submission.collect.as_deref()?, &[]))
}

/// Tasks that are still queued although their shards are done, with the scheduler's reason. They also block the
/// collecting job. One cause: Slurm holds tasks that a new controller has started twice. Answers from before the end of
/// the task itself do not count.
pub fn waiting_in_vain<'a>(
    dir: &Path,
    job: &Job,
    last: &Submission,
    shards: &'a [ShardStatus],
    known: &Known,
) -> Vec<(&'a str, String)> {
    let (Some(queue), Some(view)) = (job.settings.scheduler.queue(), known.view_of(last.user)) else {
        return Vec::new();
    };
    let waits = |task: &&str, place: Option<(u32, usize)>| {
        let (number, index) = place?;
        let ended = TaskLog::new(dir, number, index).read().last().map(|line| seconds(&line.at));
        let is_current = |at: u64| at >= view.answered && ended.is_none_or(|ended| ended < at);
        let sighting = known.sighting(queue, task).filter(|sighting| is_current(sighting.at))?;
        (queue.outcome(&sighting.seen.state) == Outcome::Waits).then(|| sighting.seen.reason.clone())
    };
    let done = shards.iter().filter(|shard| shard.state == State::Done);
    let mut tasks: Vec<(&str, String)> = done
        .filter_map(|shard| Some((shard.task.as_deref()?, shard.place)))
        .filter_map(|(task, place)| Some((task, waits(&task, place)?)))
        .collect();
    tasks.dedup();
    tasks
}

/// State of a task that belongs to no array. The collecting job may submit it later.
fn explain_unsent((queue, known): (&dyn Queue, &Known), submission: &Submission) -> (State, String) {
    if let Some(why) = &submission.refused {
        return (State::Unsubmitted, why.clone());
    }
    let Some(collect) = submission.collect.as_deref() else { return (State::Unsubmitted, String::new()) };
    let (state, why) = explain((queue, known), submission, collect, &[]);
    if state.is_missing() {
        (State::Unsubmitted, format!("job {collect}, which was to submit it: {why}"))
    } else {
        (State::Queued, "it is submitted once earlier tasks have ended".to_owned())
    }
}

/// State of a task whose shards have no results. Only a report of the task or the scheduler changes it, never the
/// scheduler's silence.
fn explain(
    (queue, known): (&dyn Queue, &Known),
    submission: &Submission,
    id: &str,
    log: &[Attempt],
) -> (State, String) {
    let said = last_words(log);
    let joined = |parts: [String; 2]| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let sighting = known.sighting(queue, id);
    let outcome = sighting.map(|Sighting { seen, .. }| queue.outcome(&seen.state));
    let seen_at = sighting.map_or(0, |sighting| sighting.at);
    // A task that writes its log has not ended, unless the scheduler has reported its end since or the task was about
    // to end.
    let own = log.last().filter(|line| {
        let is_newer = seconds(&line.at) > seen_at;
        let begins = matches!(line.event, TaskEvent::Started { .. } | TaskEvent::Requeued { .. });
        is_newer && (begins || !matches!(outcome, Some(Outcome::Ended(_))))
    });
    let at = own.map_or(seen_at, |line| seconds(&line.at)).max(seconds(&submission.submitted));
    let on = |nodes: &str| if nodes.is_empty() { String::new() } else { format!(" on {nodes}") };
    let (state, why, last) = match (own.map(|line| &line.event), sighting, outcome) {
        (Some(TaskEvent::Requeued { .. }), ..) => (State::Queued, restarts(&said), "waiting when last seen".to_owned()),
        (Some(_), ..) => {
            let place = on(last_node(log));
            (State::Running, place.trim_start().to_owned(), format!("running{place} when last seen"))
        }
        (None, Some(Sighting { seen, .. }), Some(Outcome::Ended(word))) => {
            return (State::Failed, joined([format!("{word}{}", on(&seen.nodes)), said]));
        }
        (None, Some(Sighting { seen, .. }), Some(Outcome::Runs)) => {
            let place = on(&seen.nodes);
            (State::Running, place.trim_start().to_owned(), format!("running{place} when last seen"))
        }
        (None, Some(Sighting { seen, .. }), _) => {
            let restarted = if log.is_empty() { String::new() } else { restarts(&said) };
            let why = [seen.reason.clone(), restarted].into_iter().filter(|part| !part.is_empty());
            (State::Queued, why.collect::<Vec<_>>().join("; "), "waiting when last seen".to_owned())
        }
        (None, None, _) if id.is_empty() => {
            let why = "it is unknown whether the scheduler has accepted it".to_owned();
            (State::Queued, why.clone(), why)
        }
        (None, None, _) => {
            (State::Queued, "not seen by the scheduler yet".to_owned(), "unknown to the scheduler".to_owned())
        }
    };
    let stopped = matches!(own.map(|line| &line.event), Some(TaskEvent::Stopped { .. }));
    if submission.cancelled.as_deref().is_some_and(|time| stopped || seconds(time) >= at) {
        return (State::Failed, "cancelled".to_owned());
    }
    // Users may not see each other's tasks. So only the submitting user's answer can show that a task is missing.
    let Some(view) = known.view_of(submission.user).filter(|view| view.answered > at) else { return (state, why) };
    if view.has_others(id) || sighting.and_then(|sighting| sighting.gone).is_some_and(|gone| gone > at) {
        let gone = "the scheduler no longer lists it, so it was cancelled or has ended";
        (State::Failed, joined([gone.to_owned(), said]))
    } else if view.answered - at > LOST_AFTER {
        (State::Lost, joined([last, said]))
    } else {
        (state, why)
    }
}

/// Why a task waits that has started before, with its last words.
fn restarts(said: &str) -> String {
    let why = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("it is restarted{why}")
}

/// Converts an RFC 3339 time to seconds since 1970.
fn seconds(time: &str) -> u64 {
    let since = humantime::parse_rfc3339(time).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_secs())
}

/// State of a shard according to its task's log, for a scheduler that this program cannot query.
fn explain_by_log(submission: &Submission, log: &[Attempt]) -> (State, String) {
    let is_open_at = |at: u64| {
        log.last().is_none_or(|line| matches!(line.event, TaskEvent::Started { .. }) && at >= seconds(&line.at))
    };
    if submission.cancelled.as_deref().map(seconds).is_some_and(is_open_at) {
        return (State::Failed, "cancelled".to_owned());
    }
    match log.last().map(|attempt| &attempt.event) {
        None => (State::Queued, "it has not started".to_owned()),
        Some(TaskEvent::Started { node, .. }) => (State::Running, format!("on {node}, unless it was killed")),
        Some(_) => (State::Failed, last_words(log)),
    }
}

/// Reason for the task's last refusal or stop.
fn last_words(log: &[Attempt]) -> String {
    let words = |event: &TaskEvent| match event {
        TaskEvent::Refused { node, why } => Some(format!("{node}: {why}")),
        TaskEvent::Stopped { why } => Some(why.clone()),
        _ => None,
    };
    log.iter().rev().find_map(|attempt| words(&attempt.event)).unwrap_or_default()
}

fn last_node(log: &[Attempt]) -> &str {
    log.iter()
        .rev()
        .find_map(|attempt| match &attempt.event {
            TaskEvent::Started { node, .. } => Some(node.as_str()),
            _ => None,
        })
        .unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::collections::BTreeMap;

    use super::super::scheduler::{Answer, Seen};
    use super::super::view::View;
    use super::*;
    use crate::SchedulerKind;

    const SUBMITTED: &str = "2026-01-01T00:00:00Z";
    /// [`SUBMITTED`] in seconds since 1970.
    const THEN: u64 = 1_767_225_600;
    const USER: u32 = 7;

    /// A view last answered `answered` seconds after the submission. `seen` is the state of task 0 of array 7 and when
    /// it was seen.
    fn view(user: u32, seen: Option<(u64, &str)>, answered: u64) -> View {
        let sighting = |(at, state): (u64, &str)| {
            let seen = Seen { state: state.to_owned(), reason: "Priority".to_owned(), nodes: "n1".to_owned() };
            ("7_0".to_owned(), Sighting { at: THEN + at, gone: None, seen })
        };
        let answered = THEN + answered;
        View { user, asked: answered, answered, tasks: seen.map(sighting).into_iter().collect() }
    }

    fn explained(views: &[View], log: &[Attempt]) -> (State, String) {
        let submission =
            Submission { number: 1, user: Some(USER), submitted: SUBMITTED.to_owned(), ..Submission::default() };
        let known = Known::new(USER, views.iter().cloned());
        explain((SchedulerKind::Slurm.queue().unwrap(), &known), &submission, "7_0", log)
    }

    fn state(seen: Option<(u64, &str)>, answered: u64) -> State {
        explained(&[view(USER, seen, answered)], &[]).0
    }

    fn line(at: &str, event: TaskEvent) -> Attempt {
        Attempt { at: format!("2026-01-01T00:{at}.000Z"), work: None, event }
    }

    fn started(at: &str) -> Attempt {
        line(at, TaskEvent::Started { id: "7_0".to_owned(), node: "n2".to_owned(), restart: 0 })
    }

    #[test]
    fn the_ends_of_a_task_differ() {
        let words = |state| explained(&[view(USER, Some((10, state)), 10)], &[]);
        assert_eq!(words("TIMEOUT"), (State::Failed, "reached its time limit on n1".to_owned()));
        assert_eq!(words("NODE_FAIL"), (State::Failed, "its node failed on n1".to_owned()));
        assert_eq!(words("CANCELLED"), (State::Failed, "cancelled on n1".to_owned()));
        assert_eq!(words("OUT_OF_MEMORY"), (State::Failed, "out of host memory on n1".to_owned()));
        assert_eq!(words("RUNNING"), (State::Running, "on n1".to_owned()));
        assert_eq!(words("PENDING"), (State::Queued, "Priority".to_owned()));
    }

    #[test]
    fn a_task_that_is_missing_among_others_of_its_array_has_ended() {
        let mut known = view(USER, Some((10, "RUNNING")), 10);
        let sighting = known.tasks.remove("7_0").map(|seen| ("7_1".to_owned(), seen));
        known.tasks.extend(sighting);
        let (state, why) = explained(&[known], &[]);
        assert_eq!(state, State::Failed);
        assert!(why.contains("cancelled or has ended"), "{why}");
    }

    /// The state of task 0 of array 7 after the scheduler's answers at these times.
    fn after(answers: &[(u64, &[(&str, &str)])]) -> State {
        let mut view = view(USER, None, 0);
        for (at, rows) in answers {
            let at = THEN + at;
            let seen = |state: &str| Seen { state: state.to_owned(), reason: String::new(), nodes: String::new() };
            let rows = rows.iter().map(|(id, state)| ((*id).to_owned(), seen(state)));
            view.accept(at, Answer { tasks: rows.collect(), gap: None });
        }
        explained(&[view], &[]).0
    }

    #[test]
    fn the_end_of_an_array_is_the_end_of_its_tasks_that_are_not_listed() {
        let pending = [("7_0", "PENDING"), ("7_1", "PENDING")];
        assert_eq!(after(&[(10, &pending)]), State::Queued);
        assert_eq!(after(&[(10, &pending), (20, &[("7", "CANCELLED")])]), State::Failed);
        assert_eq!(after(&[(20, &[("7", "CANCELLED")])]), State::Failed);
        assert_eq!(after(&[(10, &pending), (20, &[("7", "CANCELLED"), ("7_0", "RUNNING")])]), State::Running);
        assert_eq!(after(&[(20, &[("7", "CANCELLED")]), (30, &[("7_0", "RUNNING")])]), State::Running);
        // The line of an array that waits says nothing of its tasks.
        assert_eq!(after(&[(10, &[("7_0", "RUNNING")]), (20, &[("7", "PENDING")])]), State::Running);
    }

    #[test]
    fn a_task_that_has_ended_stays_so_when_its_whole_array_is_forgotten() {
        let gone: [(u64, &[(&str, &str)]); 2] =
            [(10, &[("7_0", "PENDING"), ("7_1", "PENDING")]), (20, &[("7_1", "RUNNING")])];
        assert_eq!(after(&gone), State::Failed);
        assert_eq!(after(&[&gone[..], &[(30, &[])]].concat()), State::Failed);
        // Unless it is listed again.
        assert_eq!(after(&[&gone[..], &[(30, &[("7_0", "PENDING")])]].concat()), State::Queued);
        let ended: [(u64, &[(&str, &str)]); 2] = [(10, &[("7_0", "CANCELLED")]), (20, &[])];
        assert_eq!(after(&ended), State::Failed);
    }

    #[test]
    fn a_task_that_the_scheduler_no_longer_knows_is_lost_after_a_while_whether_it_ran_or_waited() {
        for (seen, open) in
            [(None, State::Queued), (Some((0, "PENDING")), State::Queued), (Some((0, "RUNNING")), State::Running)]
        {
            assert_eq!(state(seen, 600), open, "{seen:?}");
            assert_eq!(state(seen, 601), State::Lost, "{seen:?}");
        }
        let words = explained(&[view(USER, Some((0, "PENDING")), 601)], &[]).1;
        assert_eq!(words, "waiting when last seen");
    }

    #[test]
    fn no_answer_changes_nothing() {
        // The real clock is later than all of these times.
        assert_eq!(state(Some((0, "RUNNING")), 0), State::Running);
        assert_eq!(explained(&[], &[]).0, State::Queued);
    }

    #[test]
    fn only_the_view_of_the_user_who_submitted_can_lack_a_task() {
        let (other, blind) = (view(8, None, 10_000), View { tasks: BTreeMap::new(), ..view(USER, None, 0) });
        assert_eq!(explained(&[blind.clone(), other], &[]).0, State::Queued);
        // A sighting by another user counts, too.
        let other = view(8, Some((20, "TIMEOUT")), 20);
        assert_eq!(explained(&[blind, other], &[]).0, State::Failed);
    }

    #[test]
    fn the_log_of_a_task_shows_that_it_was_there() {
        let began = [started("10:00")];
        let one = |seen, answered, log: &[Attempt]| explained(&[view(USER, seen, answered)], log);
        // 00:10:00 is 600 s after the submission.
        assert_eq!(one(Some((0, "PENDING")), 0, &began), (State::Running, "on n2".to_owned()));
        assert_eq!(one(None, 1200, &began).0, State::Running);
        assert_eq!(one(None, 1201, &began), (State::Lost, "running on n2 when last seen".to_owned()));
        // The scheduler's state takes precedence over an end in the task's log.
        let stopped = [began[0].clone(), line("10:05", TaskEvent::Stopped { why: "warned".to_owned() })];
        assert_eq!(one(Some((604, "CANCELLED")), 604, &stopped).0, State::Failed);
        let again = [&stopped[..], &[line("10:06", TaskEvent::Requeued { excluded: None })]].concat();
        assert_eq!(one(Some((604, "CANCELLED")), 604, &again).0, State::Queued);
    }
}
