//! One `runner submit` of a job: its tasks, and the scheduler's arrays that run them. Each submission has its own file,
//! since failed shards can be submitted again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Job;
use super::job::{JobError, Work, read_json, write_json};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// 1-based number of the submission.
    pub number: u32,
    /// Id of the submitting user.
    pub user: Option<u32>,
    /// RFC 3339, UTC.
    pub submitted: String,
    /// Identity of the snapshot that the tasks run.
    pub snapshot: String,
    /// Hash of the snapshot's files, which identifies the version of the job; `None` from older versions of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Shards of each task.
    pub tasks: Vec<Vec<Work>>,
    /// Earlier resource shortages of each task; empty if no task gets raised limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
    /// Job arrays in task order. Tasks after the last array are not submitted yet.
    pub arrays: Vec<Array>,
    /// Why the scheduler refused the tasks after the last array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The scheduler's id of the job that collects the results.
    pub collect: Option<String>,
    /// When the tasks were cancelled: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// How often earlier tasks of a shard ran out of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Retry {
    pub memory: u32,
    /// Number of tasks that reached their time limit.
    pub time: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The scheduler's id; `None` until it has answered.
    pub id: Option<String>,
    /// Index of the task that array index 0 runs.
    pub first: usize,
    pub count: usize,
    /// When the array was submitted, in seconds since 1970.
    pub sent: u64,
}

impl Array {
    pub fn has(&self, task: usize) -> bool {
        (self.first..self.first.saturating_add(self.count)).contains(&task)
    }
}

impl Submission {
    /// The array that contains a task; `None` if the task was not submitted.
    pub fn array_of(&self, task: usize) -> Option<&Array> {
        self.arrays.iter().find(|array| array.has(task))
    }

    /// The scheduler's id of a task, e.g. `1234_7`, if known.
    pub fn id_of(&self, task: usize) -> Option<String> {
        let array = self.array_of(task)?;
        Some(format!("{}_{}", array.id.as_ref()?, task - array.first))
    }

    /// Number of submitted tasks.
    pub fn sent(&self) -> usize {
        self.arrays.last().map_or(0, |array| array.first.saturating_add(array.count)).min(self.tasks.len())
    }

    /// Earlier resource shortages of a task.
    pub fn retry(&self, task: usize) -> Retry {
        self.retries.get(task).copied().unwrap_or_default()
    }

    /// The scheduler's ids of the arrays and of the collecting job.
    pub fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.arrays.iter().filter_map(|array| array.id.clone()).chain(self.collect.clone())
    }

    /// Reads all submissions of the job in `dir`, in order.
    pub fn all(dir: &Path, job: &Job) -> Result<Vec<Self>, JobError> {
        (1..)
            .take_while(|number| Self::path(dir, *number).exists())
            .map(|number| Self::read(dir, job, number))
            .collect()
    }

    /// Reads a submission. Fails unless its number is the file's, its shards belong to the job and its ids are valid for
    /// the scheduler.
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
        let why = why.or_else(|| unnamed.map(|id| format!("`{}` is not a valid array id", id.escape_debug())));
        let is_other = submission.number != number;
        let why = why.or_else(|| is_other.then(|| format!("the file holds submission {}", submission.number)));
        why.map_or(Ok(submission), |why| Err(JobError::Invalid { path, why }))
    }

    pub fn write(&self, dir: &Path) -> Result<(), JobError> {
        write_json(&Self::path(dir, self.number), self)
    }

    /// Hash of the files of the last submission, which identifies the job's current version; `None` if unknown.
    pub fn version(all: &[Self]) -> Option<&str> {
        all.last()?.files.as_deref()
    }

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
