//! How each scheduler receives the tasks of a job. A scheduler is one file and one line of [`SchedulerKind`].
//!
//! A script is text for bash, and every path in it is one quoted word.

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

/// Seconds added to a time limit that is derived from the estimate: start, calibration, reading the cache.
const STARTUP: f64 = 300.0;
/// Factor between the estimate, which is rough, and the time limit.
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

/// A scheduler, for which this crate writes scripts and commands.
pub trait Scheduler {
    /// Keys of `cluster.toml` without a meaning for this scheduler. They are refused.
    fn unsupported_keys(&self) -> &'static [&'static str];

    /// Keys of `cluster.toml` that this scheduler requires.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether `gpus` may name a model, as in `h100:1`.
    fn knows_models(&self) -> bool {
        false
    }

    /// Renders the script that runs `part`.
    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError>;

    /// Who submits scripts and cancels tasks.
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
        /// Formats the shell command that cancels all jobs of a given name.
        cancelling: fn(&str) -> String,
    },
}

/// A scheduler whose commands this program runs.
pub trait Queue: std::fmt::Debug {
    /// Largest number of elements of an array.
    fn max_array(&self) -> Result<u32, QueueError>;

    /// Longest time limit in seconds of a partition or of the default one; `None` without a limit.
    fn longest(&self, partition: Option<&str>) -> Result<Option<u64>, QueueError>;

    /// Renders the script that collects the results of a submission. It first submits the tasks that are not sent
    /// yet, if any, with the script of hash `rest`.
    fn collecting(&self, part: &Part<'_>, rest: Option<&str>) -> Result<Script, ScriptError>;

    /// Makes the tasks of a script wait until these jobs have ended, successfully or not.
    fn start_after(&self, script: &mut Script, jobs: &[String]);

    fn submit(&self, script: &Script) -> Sent;

    /// Finds this user's job with a tag of [`Part`]; `None` if the scheduler answers that there is none.
    fn find(&self, tag: &str) -> Result<Option<String>, QueueError>;

    /// Cancels these jobs with all their tasks.
    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError>;

    /// Asks for the tasks of these jobs, which these users have submitted.
    fn ask(&self, jobs: &[String], users: &[u32]) -> Result<Answer, QueueError>;

    /// Translates the scheduler's name of a state. The end of a task says nothing about its cases.
    fn outcome(&self, state: &str) -> Outcome;

    /// The resource that ran out, for a state in which a task ended.
    fn cause(&self, state: &str) -> Option<Cause>;

    /// Where this process runs.
    fn place(&self) -> Placement;

    /// Restarts the task of this process on a node other than `excluded`. The scheduler then ends this process.
    fn requeue(&self, id: &str, excluded: Option<&str>) -> Result<(), QueueError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The scheduler has the job, under this id.
    Accepted(String),
    /// The scheduler does not have the job, for this reason.
    Refused(String),
    /// The scheduler gave no answer, for this reason, and may have the job.
    Unknown(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The tasks by the scheduler's names.
    pub tasks: BTreeMap<String, Seen>,
    /// Why tasks may be missing from the answer.
    pub gap: Option<QueueError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// State in the scheduler's words.
    pub state: String,
    /// Why the task waits or ended, if the scheduler says.
    pub reason: String,
    pub nodes: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Waits,
    Runs,
    /// How the task ended, in words.
    Ended(String),
}

/// The resource whose exhaustion ended a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Host memory.
    Memory,
    Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The scheduler's name of the task; empty without a scheduler.
    pub id: String,
    pub node: String,
    /// Number of earlier starts of the task.
    pub restart: u32,
}

impl Placement {
    /// The place of a process without a scheduler.
    pub fn of_host() -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { id: String::new(), node, restart: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("cannot run {program}: {why}; run this where the scheduler's commands are, on a login node")]
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
#[error("{0:?} cannot be an argument of a shell command: rename it")]
pub struct ScriptError(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub path: PathBuf,
    pub text: String,
    /// Command that submits the script. The word `<` is a redirection.
    pub words: Vec<String>,
}

impl Script {
    /// The submitting command as a line of shell.
    pub fn command(&self) -> Result<String, ScriptError> {
        let word = |word: &String| if word == "<" { Ok(word.clone()) } else { quoted(word) };
        Ok(self.words.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" "))
    }
}

/// The tasks of a submission that one script runs.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    pub job: &'a Job,
    pub folder: &'a Path,
    /// Number of the submission.
    pub number: u32,
    /// Number of the first task.
    pub first: usize,
    /// Number of tasks.
    pub count: usize,
    /// Estimated seconds of the longest task.
    pub seconds: f64,
    /// Identity of the files that the tasks run.
    pub snapshot: String,
    /// Earlier failures for lack of a resource, which raise the limits.
    pub retry: Retry,
    /// Longest time limit that the scheduler allows, in seconds.
    pub longest: Option<u64>,
}

impl Part<'_> {
    /// Name in the scheduler's lists.
    fn name(&self) -> String {
        listed_name(self.job)
    }

    /// Identifies these tasks among all jobs of the scheduler.
    pub fn tag(&self) -> String {
        array_tag(self.job, self.number, self.first)
    }

    /// Identifies the job that collects the results of these tasks.
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

    /// Memory of a task with the unit that the user gave.
    fn memory(&self) -> Option<String> {
        let (number, unit) = self.job.settings.size()?;
        let number = number.parse::<f64>().ok()? * grown(self.job.settings.memory_factor, self.retry.memory);
        Some(format!("{}{unit}", number.ceil() as u64))
    }

    fn minutes(&self) -> u64 {
        self.limit().div_ceil(60).max(1)
    }

    /// Path of a file in the job's folder.
    fn path(&self, name: &str) -> Result<String, ScriptError> {
        text(&self.folder.join(name)).map(str::to_owned)
    }

    /// Path of the script.
    fn file(&self, extension: &str) -> Result<String, ScriptError> {
        self.path(&format!("task-{}-{}.{extension}", self.number, self.first))
    }

    /// Path of the logs, with a pattern of the scheduler.
    fn log(&self, pattern: &str) -> Result<String, ScriptError> {
        self.path(&format!("logs/{pattern}"))
    }

    /// Elements of the array, counted from `start`.
    fn range(&self, start: usize) -> String {
        format!("{start}-{}", start + self.count - 1)
    }

    /// Limit of concurrent tasks, as a suffix of the elements.
    fn throttle(&self) -> String {
        self.job.settings.throttle.map(|most| format!("%{most}")).unwrap_or_default()
    }

    /// Command of one element's task. `element` is an arithmetic expression of the shell.
    fn task(&self, element: &str) -> Result<String, ScriptError> {
        self.task_of(&self.number.to_string(), &format!("{} + {element}", self.first))
    }

    /// Command of a task with the permissions that the user gave. `number` is a shell word, `element` an arithmetic
    /// expression.
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

    /// A command of this program about the job.
    fn command(&self, name: &str, arguments: &str) -> Result<String, ScriptError> {
        let (program, folder) = (quoted_path(&self.job.program)?, quoted_path(self.folder)?);
        Ok(format!("exec {program} {name} {folder} {arguments}").trim_end().to_owned())
    }

    /// Lines that prepare a command's environment.
    fn setup(&self) -> Result<String, ScriptError> {
        let settings = &self.job.settings;
        let modules = settings.modules.iter().map(|module| quoted(module)).collect::<Result<Vec<_>, _>>()?;
        Ok(lines("module load ", modules) + &lines("", &settings.setup))
    }

    /// A bash script that begins with the lines `head`.
    fn shell(&self, head: &str, command: &str) -> Result<String, ScriptError> {
        let (directory, cache) = (quoted_path(&self.job.directory)?, quoted_path(&self.job.cache)?);
        let setup = self.setup()?;
        Ok(format!(
            "#!/bin/bash\n# Written by `runner submit`.\n{head}cd {directory} || exit 3\n{setup}export \
             RUNNER_CACHE={cache}\n{command}\n"
        ))
    }
}

/// Factor by which a resource grows after it ran out `times` times.
fn grown(factor: Option<f64>, times: u32) -> f64 {
    factor.unwrap_or(1.0).powi(i32::try_from(times).unwrap_or(i32::MAX))
}

/// Identifies the array whose first task is `first` among all jobs of the scheduler.
pub fn array_tag(job: &Job, number: u32, first: usize) -> String {
    format!("{}.{}.{number}.{first}", listed_name(job), job.id)
}

/// Name in the scheduler's lists: letters, digits and dashes.
pub fn listed_name(job: &Job) -> String {
    format!("runner-{}", hyphenated(&job.name))
}

/// Joins lines, each with a prefix, such as options of the scheduler.
fn lines(prefix: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for part in parts {
        text.extend([prefix, part.as_ref(), "\n"]);
    }
    text
}

/// Formats those options that have a value.
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
