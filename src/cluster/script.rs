//! Renders batch scripts from templates. Every path in them is one quoted word.

use std::path::Path;

use serde::Serialize;
use tera::{Context, Tera};

use super::{Job, Settings};

const TASK: &str = "slurm.sh";
const COLLECT: &str = "slurm-collect.sh";

/// Added to a time limit that is made from the estimate: starting, calibrating and reading the cache take this long,
/// seconds.
const STARTUP: f64 = 300.0;
/// An estimate is rough: the limit is this many times as long.
const MARGIN: f64 = 2.0;

/// The scripts of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scripts {
    /// Runs a task.
    pub task: String,
    /// Collects the results.
    pub collect: String,
}

/// Why a script cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A path has a byte that no argument can hold.
    #[error("{0:?} cannot be an argument of a shell command: rename it")]
    Unquotable(String),
    /// A fault of a template.
    #[error("cannot render the batch script: {0}")]
    Template(#[from] tera::Error),
}

#[derive(Serialize)]
struct View {
    name: String,
    /// The time limit in minutes.
    time: u64,
    warning: u64,
    options: Vec<String>,
    collect_options: Vec<String>,
    modules: Vec<String>,
    setup: Vec<String>,
    cache: String,
    program: String,
    folder: String,
    /// The folder of the reports.
    out: Option<String>,
}

impl Scripts {
    /// Returns the scripts of the job in `folder`, for tasks of at most `seconds` by the estimate.
    pub fn render(job: &Job, folder: &Path, seconds: f64) -> Result<Self, ScriptError> {
        let settings = &job.settings;
        let time = limit_seconds(job, seconds);
        let view = View {
            name: slug_name(job),
            time: time.div_ceil(60).max(1),
            warning: settings.warning,
            options: options(settings),
            collect_options: shared_options(settings),
            modules: settings.modules.iter().map(|module| quoted(module)).collect::<Result<_, _>>()?,
            setup: settings.setup.clone(),
            cache: quoted_path(&job.cache)?,
            program: quoted_path(&job.program)?,
            folder: quoted_path(folder)?,
            out: job.out.as_deref().map(quoted_path).transpose()?,
        };
        let mut tera = Tera::default();
        tera.add_raw_templates([
            (TASK, include_str!("templates/slurm.sh.tera")),
            (COLLECT, include_str!("templates/slurm-collect.sh.tera")),
        ])?;
        let context = Context::from_serialize(&view)?;
        Ok(Self { task: tera.render(TASK, &context)?, collect: tera.render(COLLECT, &context)? })
    }
}

/// Returns the name of a job in the scheduler's lists.
pub(super) fn slug_name(job: &Job) -> String {
    format!("runner-{}", crate::format::slug(&job.name))
}

/// Returns the time limit of tasks of at most `estimate` seconds.
pub(super) fn limit_seconds(job: &Job, estimate: f64) -> u64 {
    job.settings.time.unwrap_or((estimate * MARGIN + STARTUP).ceil() as u64)
}

/// Returns the options of every job.
fn shared_options(settings: &Settings) -> Vec<String> {
    let named = [("partition", &settings.partition), ("account", &settings.account), ("qos", &settings.qos)];
    named.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("--{name}={value}"))).collect()
}

/// Returns the options of a task.
fn options(settings: &Settings) -> Vec<String> {
    let mut options = shared_options(settings);
    let cpus = settings.cpus.map(|cpus| cpus.to_string());
    let named = [
        ("gres", &settings.gres),
        ("gpus", &settings.gpus),
        ("constraint", &settings.constraint),
        ("mem", &settings.memory),
        ("cpus-per-task", &cpus),
    ];
    options
        .extend(named.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("--{name}={value}"))));
    options.extend(settings.extra.iter().cloned());
    options
}

pub(super) fn quoted(text: &str) -> Result<String, ScriptError> {
    shlex::try_quote(text).map(std::borrow::Cow::into_owned).map_err(|_| ScriptError::Unquotable(text.to_owned()))
}

pub(super) fn quoted_path(path: &Path) -> Result<String, ScriptError> {
    path.to_str().ok_or_else(|| ScriptError::Unquotable(path.display().to_string())).and_then(quoted)
}
