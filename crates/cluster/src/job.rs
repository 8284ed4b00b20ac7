//! The folder of a job: what is to be run, and how it was submitted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use super::Settings;
use crate::atomic::{self, WriteError};
use crate::model::{Shard, experiment_name};
use crate::regular;

/// Increased when an older program would misread a newer folder.
const VERSION: u32 = 3;
const JOB_FILE: &str = "job.json";
const COLLECTED: &str = "collected";

/// More shards has no experiment, as `--shard` takes them.
const MOST_SHARDS: usize = 1_000_000;

/// What a job is to run. The file is written once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The version of the format.
    pub version: u32,
    /// The name for people and for the scheduler's lists.
    pub name: String,
    /// What tells the job apart from every other one, also of the same name: hexadecimal digits.
    pub id: String,
    /// The executable that the job was submitted with.
    pub program: PathBuf,
    /// The folder that tasks run in, to which the manifests' paths are relative.
    pub directory: PathBuf,
    /// The cache with the compiled kernels.
    pub cache: PathBuf,
    /// Options of `runner run` that apply to every manifest. Each says what to measure, and none what may be done.
    #[serde(deserialize_with = "options")]
    pub options: Vec<String>,
    /// The options of tasks that say what manifests may do. They are in the scripts only: others may have written the
    /// file.
    #[serde(skip)]
    pub trust: Vec<String>,
    /// Whether the tasks are the shards of a search, and the last one what comes after them.
    #[serde(default)]
    pub searches: bool,
    /// The arguments of `runner tune` for such tasks. They are in the scripts only, as trust is.
    #[serde(skip)]
    pub search: Vec<String>,
    /// The folder of the reports, as `runner merge --out` takes it.
    pub out: Option<PathBuf>,
    /// The git revision whose reports the collecting job compares with.
    #[serde(default, deserialize_with = "revision")]
    pub compare_with: Option<String>,
    /// Whether the collecting job fails if a claim is broken.
    #[serde(default)]
    pub gate: bool,
    /// The name of the GPU that was planned for; `None` for the simulator.
    pub device: Option<String>,
    /// The manifests that the job runs.
    pub experiments: Vec<Experiment>,
    /// How it is submitted.
    pub settings: Settings,
}

/// The part of a job that tells whether the rest can be read.
#[derive(Deserialize)]
struct JobVersion {
    version: u32,
}

/// A manifest of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The manifest's path as the command line gave it.
    pub manifest: PathBuf,
    /// The experiment's name, which is also a folder of the job.
    #[serde(deserialize_with = "experiment_name")]
    pub name: String,
    /// The hash of the manifest's text.
    pub hash: String,
    /// The estimated seconds of each shard.
    pub seconds: Vec<f64>,
    /// The cases that each shard has.
    pub cases: Vec<u64>,
    /// The number of groups that the whole plan has.
    pub groups: u32,
}

/// The options of a job that have a value, and those that have none.
const WITH_VALUE: [&str; 5] = ["--backend", "--sim-device", "--set", "--filter", "--variant"];
const FLAGS: [&str; 5] = ["--no-sanitize", "--counters", "--memcheck", "--energy", "--thorough"];

/// Reads the options of a job from a file that others may have written.
fn options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let is_known = |word: &&String| match word.split_once('=') {
        Some((name, _)) => WITH_VALUE.contains(&name),
        None => FLAGS.contains(&word.as_str()),
    };
    match words.iter().find(|word| !is_known(word)) {
        Some(word) => Err(D::Error::custom(format!("`{}` cannot be an option of a job", word.escape_debug()))),
        None => Ok(words),
    }
}

/// Reads the name of a git revision from a file that others may have written.
fn revision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    match name {
        Some(name) if name.starts_with('-') || name.contains(char::is_control) => {
            Err(D::Error::custom(format!("`{}` cannot name a revision", name.escape_debug())))
        }
        name => Ok(name),
    }
}

impl Experiment {
    /// Returns the shards of the experiment, in order.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let of = self.seconds.len() as u32;
        (1..=of).map(move |index| Shard { index, of })
    }
}

/// A shard of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Work {
    /// The position among the experiments of the job.
    pub experiment: usize,
    /// The part of the experiment's groups.
    pub shard: Shard,
}

/// Why the folder of a job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The folder holds no job.
    #[error("{} has no {JOB_FILE}: name a folder that `runner submit` has written", .0.display())]
    NoJob(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file that cannot be read.
        path: PathBuf,
        /// The reason that the system gives.
        source: std::io::Error,
    },
    /// A file is damaged.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The path of the damaged file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The job was written by another version of the program.
    #[error(
        "{} is of version {found}, this program reads {VERSION}: use the runner that submitted the job",
        path.display()
    )]
    Version {
        /// The path of the file that has another version.
        path: PathBuf,
        /// The version that the file has.
        found: u32,
    },
    /// A file says what no job is.
    #[error("{}: {why}; name a folder that `runner submit` has written", path.display())]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// What no job has.
        why: String,
    },
    /// The path is a link where a job has a folder.
    #[error("{} is a symbolic link, and a job has a folder there: remove the link", .0.display())]
    Link(PathBuf),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl JobError {
    /// Whether a file is not there, or not visible yet.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::NoJob(_) => true,
            Self::Read { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

impl Job {
    /// The version of the format that this program writes.
    pub const VERSION: u32 = VERSION;

    /// Reads the job in `dir`.
    pub fn read(dir: &Path) -> Result<Self, JobError> {
        let path = dir.join(JOB_FILE);
        if !path.is_file() {
            return Err(JobError::NoJob(dir.to_owned()));
        }
        let JobVersion { version: found } = read_json(&path)?;
        if found != VERSION {
            return Err(JobError::Version { path, found });
        }
        let job: Self = read_json(&path)?;
        let mut names = BTreeSet::new();
        if let Some(twice) = job.experiments.iter().find(|experiment| !names.insert(&experiment.name)) {
            return Err(JobError::Invalid { path, why: format!("there are two experiments `{}`", twice.name) });
        }
        if let Some(large) = job.experiments.iter().find(|experiment| experiment.seconds.len() > MOST_SHARDS) {
            return Err(JobError::Invalid {
                path,
                why: format!("`{}` has more than {MOST_SHARDS} shards", large.name),
            });
        }
        if let Some(odd) = job.experiments.iter().find(|experiment| experiment.seconds.len() != experiment.cases.len())
        {
            return Err(JobError::Invalid {
                path,
                why: format!("`{}` has no number of cases for each shard", odd.name),
            });
        }
        if job.id.is_empty() || !job.id.chars().all(|c| c.is_ascii_hexdigit()) {
            let why = format!("`{}` cannot be the identity of a job", job.id.escape_debug());
            return Err(JobError::Invalid { path, why });
        }
        Ok(job)
    }

    /// Fails if a link in the folder of the job leads what a task writes somewhere else.
    pub fn refuse_links(&self, dir: &Path, work: Work) -> Result<(), JobError> {
        let folder = self.folder(dir, work);
        let inside = folder.ancestors().take_while(|above| *above != dir).map(Path::to_owned);
        match inside.chain([tasks_folder(dir)]).find(|path| path.is_symlink()) {
            Some(link) => Err(JobError::Link(link)),
            None => Ok(()),
        }
    }

    /// Whether `dir` has a job.
    pub fn exists(dir: &Path) -> bool {
        dir.join(JOB_FILE).exists()
    }

    /// Writes the job to `dir`, which is created.
    pub fn write(&self, dir: &Path) -> Result<(), JobError> {
        write_text(&dir.join(JOB_FILE), serde_json::to_string_pretty(self))
    }

    /// Returns every shard of every experiment.
    pub fn work(&self) -> impl Iterator<Item = Work> + '_ {
        let shards_of = |(index, experiment): (usize, &Experiment)| {
            experiment.shards().map(move |shard| Work { experiment: index, shard })
        };
        self.experiments.iter().enumerate().flat_map(shards_of)
    }

    /// Returns the estimated seconds of a shard.
    pub fn seconds(&self, work: Work) -> f64 {
        let experiment = self.experiments.get(work.experiment);
        experiment.and_then(|e| e.seconds.get(work.shard.index as usize - 1)).copied().unwrap_or(0.0)
    }

    /// Returns how many cases a shard has.
    pub fn cases(&self, work: Work) -> u64 {
        let experiment = self.experiments.get(work.experiment);
        experiment.and_then(|e| e.cases.get(work.shard.index as usize - 1)).copied().unwrap_or(0)
    }

    /// Names a shard in messages: `reduce 3/40`.
    pub fn label(&self, work: Work) -> String {
        let name = self.experiments.get(work.experiment).map_or("", |experiment| experiment.name.as_str());
        match self.search_shard(work.shard.index) {
            _ if !self.searches => format!("{name} {}", work.shard),
            Some(shard) => format!("{name} {shard}"),
            None => format!("{name} finalists"),
        }
    }

    /// Returns the shard of a search that a task of this number does, counted from 1; `None` for the one after the shards.
    pub fn search_shard(&self, task: u32) -> Option<Shard> {
        let shards = self.experiments.first().map_or(0, |search| search.seconds.len() as u32).saturating_sub(1);
        (task <= shards).then_some(Shard { index: task, of: shards })
    }

    /// Returns the folder with the attempts of a shard.
    pub fn folder(&self, dir: &Path, work: Work) -> PathBuf {
        let name = self.experiments.get(work.experiment).map_or("", |experiment| experiment.name.as_str());
        shards_folder(dir).join(name).join(work.shard.folder())
    }
}

/// Returns the folder of all shards.
pub fn shards_folder(dir: &Path) -> PathBuf {
    dir.join("shards")
}

/// Returns the folder of the logs of tasks.
pub(super) fn tasks_folder(dir: &Path) -> PathBuf {
    dir.join("tasks")
}

/// Returns the folder of what the tasks print.
pub fn logs_folder(dir: &Path) -> PathBuf {
    dir.join("logs")
}

/// Notes in `dir` that the results of the first `submissions` were collected.
pub fn mark_collected(dir: &Path, submissions: u32) -> Result<(), WriteError> {
    atomic::write(&dir.join(COLLECTED), submissions.to_string().as_bytes())
}

/// Returns how many submissions had their results collected.
pub fn collected(dir: &Path) -> u32 {
    regular::read_text(&dir.join(COLLECTED)).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the folders in a folder, which may not exist. Links to folders are none.
pub(super) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, JobError> {
    let bytes = regular::read_data(path, regular::LONGEST_DATA)
        .map_err(|source| JobError::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| JobError::Damaged { path: path.to_owned(), source })
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), JobError> {
    write_text(path, serde_json::to_string(value))
}

fn write_text(path: &Path, text: serde_json::Result<String>) -> Result<(), JobError> {
    let text = text.map_err(|source| JobError::Damaged { path: path.to_owned(), source })?;
    Ok(atomic::write(path, (text + "\n").as_bytes())?)
}
