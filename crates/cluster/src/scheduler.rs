//! How to pass a job's tasks to each scheduler. Adding a scheduler takes one file and one line of [`SchedulerKind`].
//!
//! Scripts are for bash, and every path in them is one quoted word.

mod command;
mod flux;
mod hyperqueue;
mod kubernetes;
mod lsf;
mod pbs;
mod slurm;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::settings::SchedulerKind;
use super::{Job, Retry};
use runner_files::file_names::hyphenated;

/// Seconds for start-up, calibration and reading the cache, added to a time limit derived from the estimate.
const STARTUP: f64 = 300.0;
/// Ratio of the time limit to the estimate, which is rough.
const MARGIN: f64 = 2.0;

impl Deref for SchedulerKind {
    type Target = dyn Scheduler;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Slurm => &slurm::Slurm,
            Self::Pbs => &pbs::Pbs,
            Self::Lsf => &lsf::Lsf,
            Self::Flux => &flux::Flux,
            Self::HyperQueue => &hyperqueue::HyperQueue,
            Self::Kubernetes => &kubernetes::Kubernetes,
        }
    }
}

pub trait Scheduler {
    /// Keys of `cluster.toml` that do not apply to this scheduler and are rejected.
    fn unsupported_keys(&self) -> &'static [&'static str];

    /// Keys of `cluster.toml` that this scheduler requires.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether `gpus` may include a model, as in `h100:1`.
    fn knows_models(&self) -> bool {
        false
    }

    /// Renders the script that runs `part`.
    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError>;

    /// Who submits scripts and cancels tasks: this program or the user.
    fn submitter(&self) -> Submitter;

    /// The commands of the scheduler, if this program runs them.
    fn queue(&self) -> Option<&'static dyn Queue> {
        match self.submitter() {
            Submitter::Program(queue) => Some(queue),
            Submitter::User { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Submitter {
    Program(&'static dyn Queue),
    User {
        /// Formats the shell command that cancels all jobs with a given name.
        cancelling: fn(&str) -> String,
        /// Formats the shell words that make a submitting command wait until all jobs with these names have ended,
        /// successfully or not; `None` if the scheduler has no dependencies between jobs.
        waiting: Option<fn(&[String]) -> String>,
    },
}

/// A scheduler whose commands this program runs.
pub trait Queue: std::fmt::Debug {
    /// Maximum job array size.
    fn max_array(&self) -> Result<u32, QueueError>;

    /// Longest time limit of the partition, or of the default partition, in seconds; `None` if unlimited.
    fn longest(&self, partition: Option<&str>) -> Result<Option<u64>, QueueError>;

    /// Renders the script that collects the results of a submission. It first submits any unsubmitted tasks, using the
    /// script with hash `rest`.
    fn collecting(&self, part: &Part<'_>, rest: Option<&str>) -> Result<Script, ScriptError>;

    /// Makes the script's tasks wait until these jobs have ended, successfully or not.
    fn start_after(&self, script: &mut Script, jobs: &[String]);

    fn submit(&self, script: &Script) -> Sent;

    /// Finds this user's job by a tag of [`Part`]; `None` if the scheduler answers that there is no such job.
    fn find(&self, tag: &str) -> Result<Option<String>, QueueError>;

    /// Cancels these jobs with all their tasks.
    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError>;

    /// Asks for the state of these jobs' tasks, submitted by these users.
    fn ask(&self, jobs: &[String], users: &[u32]) -> Result<Answer, QueueError>;

    /// Translates the scheduler's name for a state. The end of a task says nothing about its cases.
    fn outcome(&self, state: &str) -> Outcome;

    /// The resource that ran out, if that is why a task ended in this state.
    fn cause(&self, state: &str) -> Option<Cause>;

    /// The task and node of this process.
    fn place(&self) -> Placement;

    /// Restarts this process's task on a node other than `excluded`. The scheduler then ends this process.
    fn requeue(&self, id: &str, excluded: Option<&str>) -> Result<(), QueueError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The scheduler accepted the job under this id.
    Accepted(String),
    /// The scheduler refused the job, for this reason.
    Refused(String),
    /// The scheduler did not answer, for this reason; it may have accepted the job.
    Unknown(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Tasks by their ids.
    pub tasks: BTreeMap<String, Seen>,
    /// Why the answer may be incomplete.
    pub gap: Option<QueueError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The scheduler's name for the state.
    pub state: String,
    /// The scheduler's reason why the task is pending or has ended, if it states one.
    pub reason: String,
    pub nodes: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Waits,
    Runs,
    /// How the task ended, for messages.
    Ended(String),
}

/// Resource that a task ran out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Host memory.
    Memory,
    Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The scheduler's id of the task; empty without a scheduler.
    pub id: String,
    pub node: String,
    /// Number of earlier starts of the task.
    pub restart: u32,
}

impl Placement {
    /// Placement of a process without a scheduler.
    pub fn of_host() -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { id: String::new(), node, restart: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("cannot run {program}: {why}; run this on a login node, where the scheduler's commands are installed")]
    Missing { program: String, why: String },
    #[error("{program} failed: {why}")]
    Failed {
        program: String,
        /// Last line that the command printed.
        why: String,
    },
}

/// A path or word that cannot be quoted for a shell.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} cannot be quoted for a shell: rename it")]
pub struct ScriptError(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub path: PathBuf,
    pub text: String,
    /// Command that submits the script. A word `<` is a redirection.
    pub words: Vec<String>,
}

impl Script {
    /// The submitting command as a shell command line. `waiting` is inserted unquoted before its options.
    pub fn command(&self, waiting: &str) -> Result<String, ScriptError> {
        let word = |word: &String| if word == "<" { Ok(word.clone()) } else { quoted(word) };
        let mut words = self.words.iter().map(word).collect::<Result<Vec<_>, _>>()?;
        if !waiting.is_empty() {
            let options = self.words.iter().take_while(|word| !word.starts_with('-')).count();
            words.insert(options, waiting.to_owned());
        }
        Ok(words.join(" "))
    }
}

/// The tasks of a submission that share one script.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    pub job: &'a Job,
    pub folder: &'a Path,
    /// 1-based number of the submission.
    pub number: u32,
    /// Index of the first task.
    pub first: usize,
    pub count: usize,
    /// Estimated seconds of the longest task.
    pub seconds: f64,
    /// Identity of the snapshot that the tasks run.
    pub snapshot: String,
    /// How often earlier tasks ran out of a resource; this raises the limits.
    pub retry: Retry,
    /// Longest time limit that the scheduler allows, in seconds.
    pub longest: Option<u64>,
}

impl Part<'_> {
    /// Job name in the scheduler's lists.
    fn name(&self) -> String {
        listed_name(self.job)
    }

    /// Identifies these tasks among all of the scheduler's jobs.
    pub fn tag(&self) -> String {
        array_tag(self.job, self.number, self.first)
    }

    /// Identifies the job that collects these tasks' results.
    pub fn collecting_tag(&self) -> String {
        format!("{}.{}.{}.collect-{}", self.name(), self.job.id, self.number, self.first)
    }

    /// Time limit in seconds.
    fn limit(&self) -> u64 {
        let settings = &self.job.settings;
        let limit = settings.time.map_or(self.seconds * MARGIN + STARTUP, |time| time.0 as f64);
        let limit = (limit * grown(settings.time_factor, self.retry.time)).ceil() as u64;
        self.longest.map_or(limit, |longest| limit.min(longest))
    }

    /// Memory of a task, in the unit that the user gave.
    fn memory(&self) -> Option<String> {
        let (number, unit) = self.job.settings.size()?;
        let number = number.parse::<f64>().ok()? * grown(self.job.settings.memory_factor, self.retry.memory);
        Some(format!("{}{unit}", number.ceil() as u64))
    }

    /// The limits that were raised because earlier tasks ran out of a resource, and how to lower them; `None` without any.
    pub fn grown(&self) -> Option<String> {
        let settings = &self.job.settings;
        let memory = self.memory().filter(|_| self.retry.memory > 0 && settings.memory_factor.is_some());
        let memory = memory.map(|memory| format!("memory = {memory:?} after memory_factor"));
        let has_time = self.retry.time > 0 && settings.time_factor.is_some();
        let time = has_time.then(|| format!("time = \"{}min\" after time_factor", self.minutes()));
        let raised: Vec<String> = memory.into_iter().chain(time).collect();
        (!raised.is_empty()).then(|| format!("asked for {}; lower the factor if that is too much", raised.join(", ")))
    }

    fn minutes(&self) -> u64 {
        self.limit().div_ceil(60).max(1)
    }

    /// Path of a file in the job's folder.
    fn path(&self, name: &str) -> Result<String, ScriptError> {
        text(&self.folder.join(name)).map(str::to_owned)
    }

    fn file(&self, extension: &str) -> Result<String, ScriptError> {
        self.path(&format!("task-{}-{}.{extension}", self.number, self.first))
    }

    /// Path of the logs; `pattern` is in the scheduler's syntax.
    fn log(&self, pattern: &str) -> Result<String, ScriptError> {
        self.path(&format!("logs/{pattern}"))
    }

    /// Index range of the job array, starting at `start`.
    fn range(&self, start: usize) -> String {
        format!("{start}-{}", start + self.count - 1)
    }

    /// Limit of concurrent tasks, as a suffix of the index range.
    fn throttle(&self) -> String {
        self.job.settings.throttle.map(|most| format!("%{most}")).unwrap_or_default()
    }

    /// Command that runs one task of the array. `element` is a shell arithmetic expression for the array index.
    fn task(&self, element: &str) -> Result<String, ScriptError> {
        self.task_of(&self.number.to_string(), &format!("{} + {element}", self.first))
    }

    /// Command that runs a task with the permissions that the user gave. `number`, the submission, is a shell word;
    /// `element` is an arithmetic expression.
    fn task_of(&self, number: &str, element: &str) -> Result<String, ScriptError> {
        let words = |words: &[String]| {
            let words = words.iter().map(|word| Ok(format!(" {}", quoted(word)?)));
            words.collect::<Result<String, ScriptError>>()
        };
        let trust = words(&self.job.trust)?;
        let what = match self.job.search.as_slice() {
            [] => format!(" --snapshot={}{trust}", self.snapshot),
            arguments => format!(" --{}{trust}", words(arguments)?),
        };
        self.command("task", &format!("{number} \"$(({element}))\"{what}"))
    }

    /// Command line that calls this program with a subcommand for the job.
    fn command(&self, name: &str, arguments: &str) -> Result<String, ScriptError> {
        let (program, folder) = (quoted_path(&self.job.program)?, quoted_path(self.folder)?);
        Ok(format!("exec {program} {name} {folder} {arguments}").trim_end().to_owned())
    }

    /// Shell lines that prepare the command's environment.
    fn setup(&self) -> Result<String, ScriptError> {
        let settings = &self.job.settings;
        let modules = settings.modules.iter().map(|module| quoted(module)).collect::<Result<Vec<_>, _>>()?;
        Ok(lines("module load ", modules) + &lines("", &settings.setup))
    }

    /// A bash script that starts with the lines `head`.
    fn shell(&self, head: &str, command: &str) -> Result<String, ScriptError> {
        let (directory, cache) = (quoted_path(&self.job.directory)?, quoted_path(&self.job.cache)?);
        let setup = self.setup()?;
        Ok(format!(
            "#!/bin/bash\n# Written by `runner submit`.\n{head}cd {directory} || exit 3\n{setup}export \
             RUNNER_CACHE={cache}\n{command}\n"
        ))
    }
}

/// Factor by which a resource limit grows after the resource ran out `times` times.
fn grown(factor: Option<f64>, times: u32) -> f64 {
    factor.unwrap_or(1.0).powi(i32::try_from(times).unwrap_or(i32::MAX))
}

/// Identifies the array whose first task is `first` among all of the scheduler's jobs.
pub fn array_tag(job: &Job, number: u32, first: usize) -> String {
    format!("{}.{}.{number}.{first}", listed_name(job), job.id)
}

/// Job name in the scheduler's lists: letters, digits and hyphens.
pub fn listed_name(job: &Job) -> String {
    format!("runner-{}", hyphenated(&job.name))
}

/// Joins lines with a common prefix, e.g. scheduler options.
fn lines(prefix: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for part in parts {
        text.extend([prefix, part.as_ref(), "\n"]);
    }
    text
}

/// Formats the options that have a value.
fn given<const N: usize>(options: [(&str, Option<String>); N]) -> impl Iterator<Item = String> {
    options.map(|(prefix, value)| value.map(|value| format!("{prefix}{value}"))).into_iter().flatten()
}

fn quoted(text: &str) -> Result<String, ScriptError> {
    shlex::try_quote(text).map(std::borrow::Cow::into_owned).map_err(|_| ScriptError(text.to_owned()))
}

fn text(path: &Path) -> Result<&str, ScriptError> {
    path.to_str().ok_or_else(|| ScriptError(path.display().to_string()))
}

fn quoted_path(path: &Path) -> Result<String, ScriptError> {
    text(path).and_then(quoted)
}

#[cfg(test)]
mod tests;
