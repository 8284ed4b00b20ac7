//! What the scheduler has said about the tasks of a job. Each user has a file in the job's folder, since a scheduler
//! may show different tasks to each user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::JobError;
use super::job::{read_json, write_json};
use super::scheduler::{Answer, Outcome, Queue, Seen};

/// Minimum number of seconds between two queries to the scheduler.
const INTERVAL: u64 = 60;

/// Id of the user who runs this process.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// What the scheduler told this user and others about a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    own: View,
    others: Vec<View>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub user: u32,
    /// When the scheduler last answered, in seconds since 1970.
    pub asked: u64,
    /// When the scheduler last answered completely, in seconds since 1970.
    pub answered: u64,
    /// Last sighting of each task, by task id. Tasks that the scheduler has forgotten are kept.
    pub tasks: BTreeMap<String, Sighting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// Seconds since 1970.
    pub at: u64,
    /// When a complete answer first listed other tasks of the array but not this one, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u64>,
    #[serde(flatten)]
    pub seen: Seen,
}

impl Known {
    /// Reads the files of all users in `dir`. Unreadable ones are skipped.
    pub fn read(dir: &Path) -> Self {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let is_view = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_prefix("scheduler-")?.strip_suffix(".json")).is_some()
        };
        let views = entries.map(|entry| entry.path()).filter(is_view).filter_map(|path| read_json(&path).ok());
        Self::new(user(), views)
    }

    /// Separates this user's view from the others.
    pub fn new(user: u32, views: impl IntoIterator<Item = View>) -> Self {
        let (own, others): (Vec<View>, _) = views.into_iter().partition(|view| view.user == user);
        Self { own: own.into_iter().next().unwrap_or(View { user, ..View::default() }), others }
    }

    /// Adopts newer views of other users and of this user's other processes.
    pub fn read_again(&mut self, dir: &Path) {
        let Self { own, others } = Self::read(dir);
        if own.asked > self.own.asked && self.has_answer() {
            self.own = own;
        }
        self.others = others;
    }

    /// Whether the scheduler has ever answered this user.
    pub const fn has_answer(&self) -> bool {
        self.own.asked > 0
    }

    /// Whether it is time to query the scheduler again.
    pub fn is_old(&self) -> bool {
        now().saturating_sub(self.own.asked) >= INTERVAL
    }

    /// Seconds since the scheduler last gave the submitting user a complete answer; `None` if it never did.
    pub fn age(&self, submitted_by: Option<u32>) -> Option<u64> {
        self.view_of(submitted_by).filter(|view| view.answered > 0).map(|view| now().saturating_sub(view.answered))
    }

    pub fn add(&mut self, answer: Answer) {
        self.own.accept(now(), answer);
    }

    /// Forces the next status query to ask the scheduler, however recent its last answer is.
    pub fn expire(&mut self) {
        self.own.asked = 0;
    }

    /// Forces the next status query to ask the scheduler if its last answer is at least `seconds` old.
    pub fn expire_after(&mut self, seconds: u64) {
        if now().saturating_sub(self.own.asked) >= seconds {
            self.expire();
        }
    }

    pub fn write(&self, dir: &Path) -> Result<(), JobError> {
        write_json(&dir.join(format!("scheduler-{}.json", self.own.user)), &self.own)
    }

    /// Last sighting of a task. Once an array has ended as a whole, the scheduler may list only the array.
    pub(super) fn sighting(&self, queue: &dyn Queue, id: &str) -> Option<&Sighting> {
        let last = |id: &str| self.views().filter_map(|view| view.tasks.get(id)).max_by_key(|sighting| sighting.at);
        let has_ended = |sighting: &&Sighting| matches!(queue.outcome(&sighting.seen.state), Outcome::Ended(_));
        let array = id.split_once('_').and_then(|(array, _)| last(array)).filter(has_ended);
        let own = last(id);
        own.filter(|own| array.is_none_or(|array| own.at >= array.at)).or(array)
    }

    /// The view of a user. Users see all of their own tasks that the scheduler knows. Submissions by older versions
    /// name no user; any view then counts.
    pub(super) fn view_of(&self, user: Option<u32>) -> Option<&View> {
        self.views().filter(|view| user.is_none_or(|user| view.user == user)).max_by_key(|view| view.answered)
    }

    fn views(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.own).chain(&self.others)
    }
}

impl View {
    pub(super) fn accept(&mut self, at: u64, answer: Answer) {
        self.asked = at;
        self.tasks.extend(answer.tasks.into_iter().map(|(id, seen)| (id, Sighting { at, gone: None, seen })));
        if answer.gap.is_none() {
            self.answered = at;
            self.mark_gone();
        }
    }

    /// Marks the tasks that the last answer, which is complete, lacks although it lists others of their array.
    fn mark_gone(&mut self) {
        let at = self.answered;
        let array = |id: &String| id.split_once('_').map(|(array, _)| array.to_owned());
        let listed = self.tasks.iter().filter(|(_, sighting)| sighting.at == at);
        let arrays: BTreeSet<String> = listed.filter_map(|(id, _)| array(id)).collect();
        for (id, sighting) in &mut self.tasks {
            if sighting.at < at && array(id).is_some_and(|array| arrays.contains(&array)) {
                sighting.gone.get_or_insert(at);
            }
        }
    }

    /// Whether the last complete answer contains other tasks of the same array.
    pub(super) fn has_others(&self, id: &str) -> bool {
        let Some((array, _)) = id.split_once('_') else { return false };
        let is_other = |(other, sighting): (&String, &Sighting)| {
            sighting.at == self.answered && other.split_once('_').is_some_and(|(name, _)| name == array)
        };
        self.tasks.iter().any(is_other)
    }
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
