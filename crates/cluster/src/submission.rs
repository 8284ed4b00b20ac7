//! One `runner submit` of a job: its tasks, and the arrays of the scheduler that run them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Job;
use super::job::{JobError, Work, read_json, write_json};

/// One `runner submit`: tasks, and the arrays that the scheduler accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The number of the submission; the first is 1.
    pub number: u32,
    /// The number of the user who submitted it.
    pub user: Option<u32>,
    /// The time of the submission: RFC 3339, UTC.
    pub submitted: String,
    /// The identity of the files that its tasks run.
    pub snapshot: String,
    /// The shards that each task runs.
    pub tasks: Vec<Vec<Work>>,
    /// What each task gets more than the settings say; empty if none gets more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
    /// The job arrays in the order of their tasks. The tasks after the last one are not sent.
    pub arrays: Vec<Array>,
    /// Why the scheduler did not accept the tasks after the last array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The scheduler's id of the job that collects the results.
    pub collect: Option<String>,
    /// The time at which its tasks were cancelled: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// How often the tasks of a shard have ended before for want of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Retry {
    /// Tasks that ran out of memory.
    pub memory: u32,
    /// Tasks that reached their time limit.
    pub time: u32,
}

/// A job array of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The id that the scheduler gave it; `None` until it has said so.
    pub id: Option<String>,
    /// The task that element 0 of the array runs.
    pub first: usize,
    /// How many elements it has.
    pub count: usize,
    /// When it was sent, seconds since 1970.
    pub sent: u64,
}

impl Array {
    /// Whether a task is an element of the array.
    pub fn has(&self, task: usize) -> bool {
        (self.first..self.first.saturating_add(self.count)).contains(&task)
    }
}

impl Submission {
    /// Returns the array that has a task; `None` if the task was not sent.
    pub fn array_of(&self, task: usize) -> Option<&Array> {
        self.arrays.iter().find(|array| array.has(task))
    }

    /// Returns the scheduler's name of a task, such as `1234_7`; `None` if it has none.
    pub fn id_of(&self, task: usize) -> Option<String> {
        let array = self.array_of(task)?;
        Some(format!("{}_{}", array.id.as_ref()?, task - array.first))
    }

    /// Returns how many of the tasks were sent.
    pub fn sent(&self) -> usize {
        self.arrays.last().map_or(0, |array| array.first.saturating_add(array.count)).min(self.tasks.len())
    }

    /// Returns what a task gets more than the settings say.
    pub fn retry(&self, task: usize) -> Retry {
        self.retries.get(task).copied().unwrap_or_default()
    }

    /// Returns the ids of the scheduler: of the arrays, and of the collecting job.
    pub fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.arrays.iter().filter_map(|array| array.id.clone()).chain(self.collect.clone())
    }

    /// Reads every submission of a job, which is in `dir`, in order.
    pub fn all(dir: &Path, job: &Job) -> Result<Vec<Self>, JobError> {
        (1..)
            .take_while(|number| Self::path(dir, *number).exists())
            .map(|number| Self::read(dir, job, number))
            .collect()
    }

    /// Reads the submission with this number. Its tasks have shards of the job, and its arrays names of a scheduler.
    pub fn read(dir: &Path, job: &Job, number: u32) -> Result<Self, JobError> {
        let path = Self::path(dir, number);
        let submission: Self = read_json(&path)?;
        let is_of_job = |work: &&Work| {
            let experiment = job.experiments.get(work.experiment);
            experiment.is_some_and(|experiment| experiment.seconds.len() == work.shard.of as usize)
        };
        let strange = submission.tasks.iter().flatten().find(|work| !is_of_job(work));
        let why = strange.map(|work| format!("the job has no shard {} of experiment {}", work.shard, work.experiment));
        let is_name =
            |id: &str| id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(|c| c.is_ascii_graphic());
        let unnamed = submission.ids().find(|id| !is_name(id));
        let why = why.or_else(|| unnamed.map(|id| format!("`{}` cannot name an array", id.escape_debug())));
        why.map_or(Ok(submission), |why| Err(JobError::Invalid { path, why }))
    }

    /// Writes it, or replaces it.
    pub fn write(&self, dir: &Path) -> Result<(), JobError> {
        write_json(&Self::path(dir, self.number), self)
    }

    /// Returns the file of a submission.
    pub fn path(dir: &Path, number: u32) -> PathBuf {
        dir.join(format!("submission-{number}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_the_name_of_its_element_in_its_array() {
        let array = |id: Option<&str>, first, count| Array { id: id.map(str::to_owned), first, count, sent: 0 };
        let arrays = vec![array(Some("70"), 0, 1000), array(Some("71"), 1000, 5), array(None, 1005, 1)];
        let submission = Submission { number: 1, tasks: vec![Vec::new(); 1007], arrays, ..Submission::default() };
        assert_eq!(submission.id_of(999).as_deref(), Some("70_999"));
        assert_eq!(submission.id_of(1004).as_deref(), Some("71_4"));
        assert_eq!((submission.id_of(1005), submission.id_of(1006)), (None, None));
        assert_eq!((submission.sent(), submission.array_of(1006)), (1006, None));
    }
}
