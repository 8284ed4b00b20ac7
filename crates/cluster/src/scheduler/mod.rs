//! Schedulers: how each one is given the tasks of a job. Every scheduler is one file and one line of [`SchedulerKind`].
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

/// Added to a time limit that is made from the estimate: starting, calibrating and reading the cache take this long,
/// seconds.
const STARTUP: f64 = 300.0;
/// An estimate is rough: the limit is this many times as long.
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

/// A scheduler as scripts and commands for its users.
pub trait Scheduler {
    /// Returns the keys of `cluster.toml` that mean nothing to this scheduler, and are refused.
    fn lacks(&self) -> &'static [&'static str];

    /// Returns the keys of `cluster.toml` that this scheduler cannot do without.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether `gpus` may name a model, as in `h100:1`.
    fn knows_models(&self) -> bool {
        false
    }

    /// Returns the script that runs some tasks of a submission.
    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError>;

    /// Returns who submits scripts and cancels tasks.
    fn hands(&self) -> Hands;

    /// Returns how this program submits scripts and asks about tasks; `None` if the user does.
    fn queue(&self) -> Option<&'static dyn Queue> {
        match self.hands() {
            Hands::Program(queue) => Some(queue),
            Hands::User { .. } => None,
        }
    }
}

/// Who runs the commands of a scheduler.
#[derive(Debug, Clone, Copy)]
pub enum Hands {
    /// This program runs them.
    Program(&'static dyn Queue),
    /// The user runs them.
    User {
        /// Returns the command of a shell that cancels the tasks of all jobs with a name in the scheduler's lists.
        cancelling: fn(&str) -> String,
    },
}

/// A scheduler whose commands this program runs.
pub trait Queue: std::fmt::Debug {
    /// Returns the most elements that an array may have.
    fn max_array(&self) -> Result<u32, QueueError>;

    /// Returns the longest time limit of a partition in seconds, or of the default one; `None` if it has none.
    fn longest(&self, partition: Option<&str>) -> Result<Option<u64>, QueueError>;

    /// Returns the script that collects the results of a submission. If tasks are not sent yet, it sends them by the
    /// script with the hash `rest`.
    fn collecting(&self, part: &Part<'_>, rest: Option<&str>) -> Result<Script, ScriptError>;

    /// Lets the tasks of a script start when these jobs have ended, however they did.
    fn start_after(&self, script: &mut Script, jobs: &[String]);

    /// Submits a script.
    fn submit(&self, script: &Script) -> Sent;

    /// Returns the id of the job of this user that has a tag of [`Part`]; `None` if the scheduler answers and has none.
    fn find(&self, tag: &str) -> Result<Option<String>, QueueError>;

    /// Cancels these jobs with all of their tasks.
    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError>;

    /// Returns what the scheduler knows of the tasks of these jobs, which these users have submitted.
    fn ask(&self, jobs: &[String], users: &[u32]) -> Result<Answer, QueueError>;

    /// Puts the scheduler's word for a state into words. How a task ended is no failure of a case.
    fn outcome(&self, state: &str) -> Outcome;

    /// Returns what a task that ended in this state had too little of.
    fn cause(&self, state: &str) -> Option<Cause>;

    /// Returns where this process runs.
    fn place(&self) -> Placement;

    /// Starts the task again that this process belongs to, not on the excluded node. The scheduler then ends this
    /// process.
    fn requeue(&self, id: &str, excluded: Option<&str>) -> Result<(), QueueError>;
}

/// The result of submitting a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The scheduler has the job, by this id.
    Accepted(String),
    /// The scheduler does not have it, for this reason.
    Refused(String),
    /// The scheduler may have it: there was no answer, for this reason.
    Unknown(String),
}

/// The answer of a scheduler about the tasks of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The tasks by their names.
    pub tasks: BTreeMap<String, Seen>,
    /// Why tasks that the scheduler knows may be missing.
    pub gap: Option<QueueError>,
}

/// A task as the scheduler knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The state in the scheduler's words.
    pub state: String,
    /// Why it waits or ended, if the scheduler says.
    pub reason: String,
    /// Where it runs or ran.
    pub nodes: String,
}

/// Whether a task waits, runs or has ended, as its scheduler says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The task has not begun.
    Waits,
    /// The task runs.
    Runs,
    /// The task has ended, in these words.
    Ended(String),
}

/// The resource that ended a task because it had too little of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The task had not enough host memory.
    Memory,
    /// The task reached its time limit.
    Time,
}

/// Where the scheduler runs this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The scheduler's name of the task; empty if it has none.
    pub id: String,
    /// The node.
    pub node: String,
    /// How often the task was started before.
    pub restart: u32,
}

impl Placement {
    /// Returns the place of a process that its scheduler says nothing about.
    pub fn of_host() -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { id: String::new(), node, restart: 0 }
    }
}

/// Why a scheduler did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The command cannot be started.
    #[error("cannot run {program}: {why}; run this where the scheduler's commands are, on a login node")]
    Missing {
        /// The command that was run.
        program: String,
        /// The reason that the system gives.
        why: String,
    },
    /// The command failed.
    #[error("{program} failed: {why}")]
    Failed {
        /// The command that was run.
        program: String,
        /// The last words of the command.
        why: String,
    },
}

/// Why a script cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} cannot be an argument of a shell command: rename it")]
pub struct ScriptError(String);

/// A script, and the command that submits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The file of the script.
    pub path: PathBuf,
    /// The content of the script.
    pub text: String,
    /// The command that submits the script. A word `<` stands for a redirection.
    pub words: Vec<String>,
}

impl Script {
    /// Returns the command for a shell.
    pub fn command(&self) -> Result<String, ScriptError> {
        let word = |word: &String| if word == "<" { Ok(word.clone()) } else { quoted(word) };
        Ok(self.words.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" "))
    }
}

/// Some tasks of a submission, which one script runs.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// The job that is submitted.
    pub job: &'a Job,
    /// The folder of the job.
    pub folder: &'a Path,
    /// The number of the submission.
    pub number: u32,
    /// The number of the first task.
    pub first: usize,
    /// The number of tasks.
    pub count: usize,
    /// The estimated seconds of the longest task.
    pub seconds: f64,
    /// The identity of the files that the tasks run.
    pub snapshot: String,
    /// The resources that the tasks get beyond those of the settings.
    pub retry: Retry,
    /// The longest time limit that the scheduler allows, seconds.
    pub longest: Option<u64>,
}

impl Part<'_> {
    /// Returns the name in the scheduler's lists.
    fn name(&self) -> String {
        listed_name(self.job)
    }

    /// Returns what identifies these tasks among all jobs of the scheduler.
    pub fn tag(&self) -> String {
        array_tag(self.job, self.number, self.first)
    }

    /// Returns what identifies the job that collects the results after these tasks.
    pub fn collecting_tag(&self) -> String {
        format!("{}.{}.{}.collect-{}", self.name(), self.job.id, self.number, self.first)
    }

    /// Returns the time limit in seconds.
    fn limit(&self) -> u64 {
        let settings = &self.job.settings;
        let limit = settings.time.map_or(self.seconds * MARGIN + STARTUP, |time| time.0 as f64);
        let limit = (limit * grown(settings.time_factor, self.retry.time)).ceil() as u64;
        self.longest.map_or(limit, |longest| limit.min(longest))
    }

    /// Returns the memory of a task, as the scheduler takes it.
    fn memory(&self) -> Option<String> {
        let (number, unit) = self.job.settings.size()?;
        let number = number.parse::<f64>().ok()? * grown(self.job.settings.memory_factor, self.retry.memory);
        Some(format!("{}{unit}", number.ceil() as u64))
    }

    /// Returns the time limit in minutes.
    fn minutes(&self) -> u64 {
        self.limit().div_ceil(60).max(1)
    }

    /// Returns the path of a file in the job's folder.
    fn path(&self, name: &str) -> Result<String, ScriptError> {
        text(&self.folder.join(name)).map(str::to_owned)
    }

    /// Returns the path of the script.
    fn file(&self, extension: &str) -> Result<String, ScriptError> {
        self.path(&format!("task-{}-{}.{extension}", self.number, self.first))
    }

    /// Returns the path of the logs, by a pattern of the scheduler.
    fn log(&self, pattern: &str) -> Result<String, ScriptError> {
        self.path(&format!("logs/{pattern}"))
    }

    /// Returns the elements of the array, counted from `start`.
    fn range(&self, start: usize) -> String {
        format!("{start}-{}", start + self.count - 1)
    }

    /// Returns the limit of tasks that run at a time, as a suffix of the elements.
    fn throttle(&self) -> String {
        self.job.settings.throttle.map(|most| format!("%{most}")).unwrap_or_default()
    }

    /// Returns the command of the task of an element, which is an expression of the shell's arithmetic.
    fn task(&self, element: &str) -> Result<String, ScriptError> {
        self.task_of(&self.number.to_string(), &format!("{} + {element}", self.first))
    }

    /// Returns the command of the task `element` of the submission `number`, with what the user allows. Both are of the
    /// shell, the element of its arithmetic.
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

    /// Returns a command of this program about the job.
    fn command(&self, name: &str, arguments: &str) -> Result<String, ScriptError> {
        let (program, folder) = (quoted_path(&self.job.program)?, quoted_path(self.folder)?);
        Ok(format!("exec {program} {name} {folder} {arguments}").trim_end().to_owned())
    }

    /// Returns the lines that prepare the environment of a command, each with its end.
    fn setup(&self) -> Result<String, ScriptError> {
        let settings = &self.job.settings;
        let modules = settings.modules.iter().map(|module| quoted(module)).collect::<Result<Vec<_>, _>>()?;
        Ok(lines("module load ", modules) + &lines("", &settings.setup))
    }

    /// Returns a script for bash that begins with the lines `head`.
    fn shell(&self, head: &str, command: &str) -> Result<String, ScriptError> {
        let (directory, cache) = (quoted_path(&self.job.directory)?, quoted_path(&self.job.cache)?);
        let setup = self.setup()?;
        Ok(format!(
            "#!/bin/bash\n# Written by `runner submit`.\n{head}cd {directory} || exit 3\n{setup}export \
             RUNNER_CACHE={cache}\n{command}\n"
        ))
    }
}

/// Returns how many times as much a task gets after so many that ended for want of it.
fn grown(factor: Option<f64>, times: u32) -> f64 {
    factor.unwrap_or(1.0).powi(i32::try_from(times).unwrap_or(i32::MAX))
}

/// Returns what identifies the array of a submission whose first task has this number.
pub fn array_tag(job: &Job, number: u32, first: usize) -> String {
    format!("{}.{}.{number}.{first}", listed_name(job), job.id)
}

/// Returns the name of a job in the scheduler's lists, of lower-case letters, digits and dashes.
pub fn listed_name(job: &Job) -> String {
    format!("runner-{}", crate::file_names::slug(&job.name))
}

/// Returns lines that begin with a prefix, as options of the scheduler do.
fn lines(prefix: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for part in parts {
        text.extend([prefix, part.as_ref(), "\n"]);
    }
    text
}

/// Returns the options `{prefix}{value}` of the values that are given.
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
