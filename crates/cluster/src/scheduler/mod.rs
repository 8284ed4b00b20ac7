//! Schedulers: how each one is given the tasks of a job. Every scheduler is one file and one line of [`SchedulerKind`].
//!
//! A script is text for bash, and every path in it is one quoted word.

mod flux;
mod kubernetes;
mod lsf;
mod pbs;
mod slurm;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Job;
use super::settings::SchedulerKind;

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

    /// Returns the command of a shell that cancels the tasks of all jobs with this name in the scheduler's lists.
    fn cancelling(&self, name: &str) -> String;

    /// Returns how this program submits scripts and asks about tasks; `None` if the user does.
    fn queue(&self) -> Option<&'static dyn Queue> {
        None
    }
}

/// A scheduler whose commands this program runs.
pub trait Queue {
    /// Returns the most elements that an array may have.
    fn max_array(&self) -> Result<u32, QueueError>;

    /// Returns the script that collects the results of a submission.
    fn collecting(&self, part: &Part<'_>) -> Result<Script, ScriptError>;

    /// Lets the tasks of a script start when these jobs have ended, however they did.
    fn start_after(&self, script: &mut Script, jobs: &[String]);

    /// Submits a script and returns the job's id.
    fn submit(&self, script: &Script) -> Result<String, QueueError>;

    /// Cancels these jobs with all of their tasks.
    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError>;

    /// Returns what the scheduler knows of the tasks of these jobs, which these users have submitted.
    fn ask(&self, jobs: &[String], users: &[u32]) -> Result<Answer, QueueError>;

    /// Puts the scheduler's word for a state into words. How a task ended is no failure of a case.
    fn outcome(&self, state: &str) -> Outcome;

    /// Returns where this process runs.
    fn place(&self) -> Placement;

    /// Starts the task again that this process belongs to, not on the excluded node. The scheduler then ends this
    /// process.
    fn requeue(&self, id: &str, excluded: Option<&str>) -> Result<(), QueueError>;
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
#[derive(Debug, Clone, Copy)]
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
}

impl Part<'_> {
    /// Returns the name in the scheduler's lists.
    fn name(&self) -> String {
        listed_name(self.job)
    }

    /// Returns the time limit in seconds.
    fn limit(&self) -> u64 {
        self.job.settings.time.map_or((self.seconds * MARGIN + STARTUP).ceil() as u64, |time| time.0)
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
        let Self { number, first, .. } = self;
        self.task_command(&format!("{number} \"$(({first} + {element}))\""))
    }

    /// Returns the command of a task with its arguments, and with what the user allows.
    fn task_command(&self, arguments: &str) -> Result<String, ScriptError> {
        let trust = self.job.trust.iter().map(|option| Ok(format!(" {}", quoted(option)?)));
        self.command("task", &format!("{arguments}{}", trust.collect::<Result<String, ScriptError>>()?))
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
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Returns the script of three tasks of a job with every setting that the scheduler has.
    fn script(scheduler: &str, settings: &str, device: Option<&str>) -> Script {
        let settings = format!("scheduler = '{scheduler}'\nsetup = ['echo \"here\"']\ntime = '90min'\n{settings}");
        let job = Job {
            name: "Reduce_1".to_owned(),
            program: PathBuf::from("/opt/it's/runner"),
            directory: PathBuf::from("/data/$(touch x)"),
            cache: PathBuf::from("/cache"),
            device: device.map(str::to_owned),
            settings: toml::from_str(&settings).unwrap(),
            ..Job::default()
        };
        let part = Part { job: &job, folder: Path::new("/data/a job"), number: 2, first: 100, count: 3, seconds: 10.0 };
        job.settings.scheduler.script(&part).unwrap()
    }

    /// Returns the options in the lines of a script that begin with a directive.
    fn options<'a>(script: &'a Script, directive: &str) -> Vec<&'a str> {
        script.text.lines().filter_map(|line| line.strip_prefix(directive)?.strip_prefix(' ')).collect()
    }

    const ALL: &str = "partition = 'p'\naccount = 'a'\ncpus = 4\nextra = ['--x=y']\n";

    #[test]
    fn slurm_gets_every_setting() {
        let more = "qos = 'q'\ngres = 'gpu:1'\ngpus = 'h100:1'\nconstraint = 'c&d'\nmemory = '32G'\nthrottle = 2\nwarning \
                    = '1min'";
        let script = script("slurm", &format!("{ALL}{more}"), None);
        let words = "sbatch --parsable '--array=0-2%2' '--output=/data/a job/logs/task-%A_%a.out' '/data/a job/task-2.sh' \
                     2 100";
        assert_eq!(script.command().unwrap(), words);
        let expected = [
            "--job-name=runner-reduce-1",
            "--time=90",
            "--requeue",
            "--open-mode=append",
            "--partition=p",
            "--account=a",
            "--qos=q",
            "--signal=B:USR1@60",
            "--gres=gpu:1",
            "--gpus=h100:1",
            "--constraint=c&d",
            "--mem=32G",
            "--cpus-per-task=4",
            "--x=y",
        ];
        assert_eq!(options(&script, "#SBATCH"), expected);
        let body = "trap '' USR1\ncd '/data/$(touch x)' || exit 3\necho \"here\"\nexport RUNNER_CACHE=/cache\nexec \
                    \"/opt/it's/runner\" task '/data/a job' \"$1\" \"$(($2 + SLURM_ARRAY_TASK_ID))\"\n";
        assert!(script.text.ends_with(body), "{}", script.text);
    }

    #[test]
    fn pbs_gets_every_setting_that_it_has() {
        let script = script("pbs", &format!("{ALL}gpus = '1'\nmemory = '32G'\nthrottle = 2"), None);
        assert_eq!(script.command().unwrap(), "qsub -o '/data/a job/logs/' '/data/a job/task-2-100.sh'");
        let chunk = "-l select=1:ncpus=4:ngpus=1:mem=32gb";
        let name = "-N runner-reduce-1";
        let expected = [name, "-J 0-2%2", "-l walltime=01:30:00", chunk, "-r y", "-j oe", "-q p", "-A a", "--x=y"];
        assert_eq!(options(&script, "#PBS"), expected);
        let task = "exec \"/opt/it's/runner\" task '/data/a job' 2 \"$((100 + ${PBS_ARRAY_INDEX:-0}))\"\n";
        assert!(script.text.ends_with(task), "{}", script.text);
    }

    #[test]
    fn lsf_gets_every_setting_that_it_has() {
        let more = "gpus = 'h100:1'\nmemory = '500'\nthrottle = 2\nconstraint = 'nvme'";
        let script = script("lsf", &format!("{ALL}{more}"), None);
        let command = "bsub -o '/data/a job/logs/task-%J_%I.out' < '/data/a job/task-2-100.sh'";
        assert_eq!(script.command().unwrap(), command);
        let expected = [
            "-J \"runner-reduce-1[1-3]%2\"",
            "-W 90",
            "-r",
            "-R \"span[hosts=1]\"",
            "-n 4",
            "-gpu \"num=1:gmodel=h100\"",
            "-M 500MB",
            "-R \"rusage[mem=500MB]\"",
            "-R \"select[nvme]\"",
            "-q p",
            "-P a",
            "--x=y",
        ];
        assert_eq!(options(&script, "#BSUB"), expected);
        assert!(script.text.ends_with("2 \"$((100 + LSB_JOBINDEX - 1))\"\n"), "{}", script.text);
    }

    #[test]
    fn flux_gets_every_setting_that_it_has() {
        let script = script("flux", &format!("{ALL}gpus = '1'\nconstraint = 'h100'"), None);
        let expected = "flux submit --cc=0-2 --job-name=runner-reduce-1 --time-limit=90m --queue=p --bank=a --requires=h100 --gpus-per-task=1 \
                        --cores-per-task=4 --x=y bash";
        let (path, words) = script.words.split_last().unwrap();
        assert_eq!((words.join(" ").as_str(), path.as_str()), (expected, "/data/a job/task-2-100.sh"));
        assert!(script.text.ends_with("2 \"$((100 + FLUX_JOB_CC))\"\n"), "{}", script.text);
    }

    #[test]
    fn kubernetes_gets_every_setting_that_it_has_and_no_gpu_for_the_simulator() {
        let needed = "image = 'runner:1'\nclaim = 'shared'\nmount = '/data'\n";
        let more = "cpus = 4\nmemory = '32G'\nthrottle = 2\nrequeues = 1";
        let Script { text, words, .. } = script("kubernetes", &format!("{needed}{more}"), None);
        assert_eq!(words, ["kubectl", "apply", "-f", "/data/a job/task-2-100.json"]);
        let job: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(job["metadata"]["name"], "runner-reduce-1-2-100");
        let spec = &job["spec"];
        let numbers = ["completions", "parallelism", "backoffLimitPerIndex"].map(|key| spec[key].as_u64());
        assert_eq!(numbers, [Some(3), Some(2), Some(1)]);
        let actions = [0, 1].map(|rule| spec["podFailurePolicy"]["rules"][rule]["action"].as_str());
        assert_eq!(actions, [Some("Ignore"), Some("FailIndex")]);
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["activeDeadlineSeconds"], 5400);
        let task = &pod["containers"][0];
        assert_eq!(task["workingDir"], "/data/$(touch x)");
        assert_eq!(task["resources"]["limits"], serde_json::json!({ "cpu": "4", "memory": "32Gi" }));
        let command =
            "echo \"here\"\nexec \"/opt/it's/runner\" task '/data/a job' 2 \"$((100 + JOB_COMPLETION_INDEX))\"";
        assert_eq!(task["command"][2], command);
        let limits = |settings: &str, device| {
            let text = script("kubernetes", &format!("{needed}{settings}"), device).text;
            let job: serde_json::Value = serde_json::from_str(&text).unwrap();
            job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"].clone()
        };
        assert_eq!(limits("", Some("H100")), serde_json::json!({ "nvidia.com/gpu": "1" }));
        assert_eq!(limits("gpus = '2'", Some("H100")), serde_json::json!({ "nvidia.com/gpu": "2" }));
    }
}
