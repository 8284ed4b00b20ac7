//! The jobs of a checkout: every folder below [`JOBS`] that contains a job.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::failure::Failure;
use runner_cluster::{Job, JobError, Submission};

/// Folder of all jobs, relative to the folder that they are submitted from.
pub const JOBS: &str = "target/jobs";

#[derive(Debug)]
pub struct Known {
    pub dir: PathBuf,
    pub job: Job,
    pub submissions: Vec<Submission>,
}

impl Known {
    pub fn read(dir: &Path) -> Result<Self, JobError> {
        let job = Job::read(dir)?;
        let submissions = Submission::all(dir, &job)?;
        Ok(Self { dir: dir.to_owned(), job, submissions })
    }

    /// Time of the last submission: RFC 3339, UTC.
    pub fn submitted(&self) -> &str {
        self.submissions.last().map_or("", |last| last.submitted.as_str())
    }
}

/// All jobs, ordered by their last submission. Reports unreadable ones.
pub fn all(console: &mut Console) -> Vec<Known> {
    let folders = fs::read_dir(JOBS).into_iter().flatten().flatten();
    // A symbolic link may point outside this checkout.
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let mut jobs = Vec::new();
    // `prune` hides a job before it removes it.
    let is_hidden = |dir: &Path| dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    for dir in folders.filter(|dir| Job::exists(dir) && !is_hidden(dir)) {
        match Known::read(&dir) {
            Ok(known) => jobs.push(known),
            Err(error) => console.say(&format!("warning: {error}")),
        }
    }
    jobs.sort_by(|one, other| (one.submitted(), &one.dir).cmp(&(other.submitted(), &other.dir)));
    jobs
}

/// All jobs; fails if there are none.
pub fn some(console: &mut Console) -> Result<Vec<Known>, Failure> {
    let jobs = all(console);
    if jobs.is_empty() {
        return Err(Failure::usage(format!("there is no job in {JOBS}: `runner submit` creates one")));
    }
    Ok(jobs)
}
