//! The file `job.json` in a job's folder: what to run and how it was submitted. Written once and read by every command
//! and task of the job. Another user may have written it, so its values are checked when it is read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use super::Settings;
use runner_files::atomic::{self, WriteError};
use runner_files::regular;
use runner_files::sealed::{self, BadLine};
use runner_types::{Shard, experiment_name};

/// Increased when an older program would misread a newer folder.
const VERSION: u32 = 3;
const JOB_FILE: &str = "job.json";
const COLLECTED: &str = "collected";

/// Mode bits that let the group or everybody write to a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Limit of `--shard`.
const MOST_SHARDS: usize = 1_000_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub version: u32,
    /// Name shown to users and in the scheduler's lists.
    pub name: String,
    /// Hexadecimal digits that distinguish jobs with the same name.
    pub id: String,
    /// Executable that ran `runner submit`.
    pub program: PathBuf,
    /// Working directory of the tasks. Manifest paths are relative to it.
    pub directory: PathBuf,
    /// Cache with the compiled kernels.
    pub cache: PathBuf,
    /// Options of `runner run` for every manifest. They say what to measure, never what a manifest may do.
    #[serde(deserialize_with = "options")]
    pub options: Vec<String>,
    /// Options that grant permissions to manifests. Written only to the scripts, because others can write this file.
    #[serde(skip)]
    pub trust: Vec<String>,
    /// Whether the tasks are shards of a search. The last task then runs the steps after the search.
    #[serde(default)]
    pub searches: bool,
    /// Arguments of `runner tune` for a search. Like `trust`, only in the scripts.
    #[serde(skip)]
    pub search: Vec<String>,
    /// Folder of the reports, as for `runner merge --out`.
    pub out: Option<PathBuf>,
    /// Git revision whose reports the collecting job compares with.
    #[serde(default, deserialize_with = "revision")]
    pub compare_with: Option<String>,
    /// Whether the collecting job fails on a broken claim.
    #[serde(default)]
    pub gate: bool,
    /// Name of the GPU that the job was planned for; `None` for the simulator.
    pub device: Option<String>,
    pub experiments: Vec<Experiment>,
    pub settings: Settings,
    /// Words of the submitting command, without the program's name; empty for jobs of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// The field that every version of the file has.
#[derive(Deserialize)]
struct JobVersion {
    version: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Path as given on the command line.
    pub manifest: PathBuf,
    /// Name of the experiment and of its folder below the job.
    #[serde(deserialize_with = "experiment_name")]
    pub name: String,
    /// Hash of the manifest's text.
    pub hash: String,
    /// Estimated seconds per shard.
    pub seconds: Vec<f64>,
    /// Cases per shard.
    pub cases: Vec<u64>,
    /// Number of groups in the whole plan.
    pub groups: u32,
}

/// Options that a job file may contain: those with a value, then flags.
const WITH_VALUE: [&str; 6] = ["--backend", "--sim-device", "--set", "--filter", "--variant", "--processes"];
const FLAGS: [&str; 6] = ["--no-sanitize", "--counters", "--memcheck", "--energy", "--thorough", "--lines"];

/// Rejects unknown options, because others may have written the file.
fn options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let is_known = |word: &&String| match word.split_once('=') {
        Some((name, _)) => WITH_VALUE.contains(&name),
        None => FLAGS.contains(&word.as_str()),
    };
    match words.iter().find(|word| !is_known(word)) {
        Some(word) => Err(D::Error::custom(format!("`{}` is not allowed as an option of a job", word.escape_debug()))),
        None => Ok(words),
    }
}

/// Rejects names that git would take for options, because others may have written the file.
fn revision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    match name {
        Some(name) if name.starts_with('-') || name.contains(char::is_control) => {
            Err(D::Error::custom(format!("`{}` is not a valid revision", name.escape_debug())))
        }
        name => Ok(name),
    }
}

impl Experiment {
    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let of = self.seconds.len() as u32;
        (1..=of).map(move |index| Shard { index, of })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Work {
    /// Index into the job's experiments.
    pub experiment: usize,
    pub shard: Shard,
}

#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("{} has no {JOB_FILE}: pass a folder written by `runner submit`", .0.display())]
    NoJob(PathBuf),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is damaged: {source}", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error(
        "{} has version {found}, but this program reads version {VERSION}: use the `runner` that submitted the job",
        path.display()
    )]
    Version { path: PathBuf, found: u32 },
    /// A file whose content is invalid.
    #[error("{}: {why}; pass a folder written by `runner submit`", path.display())]
    Invalid { path: PathBuf, why: String },
    /// A symbolic link in place of a folder of the job.
    #[error("{} is a symbolic link, but a job needs a folder there: remove the link", .0.display())]
    Link(PathBuf),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl JobError {
    /// Whether a file is missing. On a shared file system, it may still appear.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::NoJob(_) => true,
            Self::Read { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

impl Job {
    pub const VERSION: u32 = VERSION;

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
            return Err(JobError::Invalid { path, why: format!("two experiments are named `{}`", twice.name) });
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
                why: format!("`{}` must have one number of cases per shard", odd.name),
            });
        }
        if job.id.is_empty() || !job.id.chars().all(|c| c.is_ascii_hexdigit()) {
            let why = format!("`{}` is not a valid job id", job.id.escape_debug());
            return Err(JobError::Invalid { path, why });
        }
        Ok(job)
    }

    /// Whether only this user could have written the job file.
    pub fn is_own(dir: &Path) -> bool {
        let only_own = |path: &Path| {
            path.symlink_metadata().is_ok_and(|found| {
                found.uid() == rustix::process::getuid().as_raw() && found.mode() & WRITABLE_BY_OTHERS == 0
            })
        };
        only_own(dir) && only_own(&dir.join(JOB_FILE))
    }

    /// The submitting command, quoted for a shell; `None` for jobs of older versions.
    pub fn command_line(&self) -> Option<String> {
        let words = self.command.iter().map(|word| shlex::try_quote(word).ok());
        let words = words.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty())?;
        Some(format!("runner {}", words.join(" ")))
    }

    /// Rejects symbolic links in the job's folder, through which a task would write elsewhere.
    pub fn refuse_links(&self, dir: &Path, work: Work) -> Result<(), JobError> {
        let folder = self.folder(dir, work);
        let inside = folder.ancestors().take_while(|above| *above != dir).map(Path::to_owned);
        match inside.chain([tasks_folder(dir)]).find(|path| path.is_symlink()) {
            Some(link) => Err(JobError::Link(link)),
            None => Ok(()),
        }
    }

    pub fn exists(dir: &Path) -> bool {
        dir.join(JOB_FILE).exists()
    }

    /// Writes the job to `dir`, creating the folder.
    pub fn write(&self, dir: &Path) -> Result<(), JobError> {
        write_text(&dir.join(JOB_FILE), serde_json::to_string_pretty(self))
    }

    /// Every shard of every experiment.
    pub fn work(&self) -> impl Iterator<Item = Work> + '_ {
        let shards_of = |(index, experiment): (usize, &Experiment)| {
            experiment.shards().map(move |shard| Work { experiment: index, shard })
        };
        self.experiments.iter().enumerate().flat_map(shards_of)
    }

    pub fn seconds(&self, work: Work) -> f64 {
        let experiment = self.experiments.get(work.experiment);
        experiment.and_then(|e| e.seconds.get(work.shard.index as usize - 1)).copied().unwrap_or(0.0)
    }

    pub fn cases(&self, work: Work) -> u64 {
        let experiment = self.experiments.get(work.experiment);
        experiment.and_then(|e| e.cases.get(work.shard.index as usize - 1)).copied().unwrap_or(0)
    }

    /// Name of a shard in messages, e.g. `reduce 3/40`.
    pub fn label(&self, work: Work) -> String {
        let name = self.experiments.get(work.experiment).map_or("", |experiment| experiment.name.as_str());
        match self.search_shard(work.shard.index) {
            _ if !self.searches => format!("{name} {}", work.shard),
            Some(shard) => format!("{name} {shard}"),
            None => format!("{name} finalists"),
        }
    }

    /// Search shard that task `task` (1-based) runs; `None` for the task after the shards.
    pub fn search_shard(&self, task: u32) -> Option<Shard> {
        let shards = self.experiments.first().map_or(0, |search| search.seconds.len() as u32).saturating_sub(1);
        (task <= shards).then_some(Shard { index: task, of: shards })
    }

    /// Folder with the attempts at a shard.
    pub fn folder(&self, dir: &Path, work: Work) -> PathBuf {
        let name = self.experiments.get(work.experiment).map_or("", |experiment| experiment.name.as_str());
        shards_folder(dir).join(name).join(work.shard.folder())
    }
}

pub fn shards_folder(dir: &Path) -> PathBuf {
    dir.join("shards")
}

/// Folder of the logs that tasks write themselves.
pub(super) fn tasks_folder(dir: &Path) -> PathBuf {
    dir.join("tasks")
}

/// Folder of the tasks' standard output and error.
pub fn logs_folder(dir: &Path) -> PathBuf {
    dir.join("logs")
}

/// Records that the results of the first `submissions` submissions were collected, or why that failed.
pub fn mark_collected(dir: &Path, submissions: u32, failure: Option<&str>) -> Result<(), WriteError> {
    let failure = failure.map(|why| format!("\n{why}")).unwrap_or_default();
    sealed::write(&dir.join(COLLECTED), format!("{submissions}{failure}").as_bytes())
}

/// Number of submissions for which collecting has ended.
pub fn collected(dir: &Path) -> u32 {
    collecting_end(dir).0
}

/// Why the last collecting failed, if it did.
pub fn collecting_failure(dir: &Path) -> Option<String> {
    collecting_end(dir).1
}

fn collecting_end(dir: &Path) -> (u32, Option<String>) {
    let text = sealed::read(&dir.join(COLLECTED)).and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    let (number, failure) = text.split_once('\n').map_or((text.as_str(), None), |(number, why)| (number, Some(why)));
    (number.parse().unwrap_or(0), failure.map(str::to_owned))
}

/// Subfolders of a folder, without symbolic links; empty if the folder does not exist.
pub(super) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, JobError> {
    let bytes = regular::read_data(path, regular::LONGEST_DATA)
        .map_err(|source| JobError::Read { path: path.to_owned(), source })?;
    let damaged = |source| JobError::Damaged { path: path.to_owned(), source };
    // Older versions wrote no checksum.
    if let Err(bad @ BadLine::OtherSum { .. }) = sealed::check_line(bytes.trim_ascii_end()) {
        return Err(damaged(serde_json::Error::custom(bad)));
    }
    serde_json::from_slice(&bytes).map_err(damaged)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), JobError> {
    write_text(path, serde_json::to_string(value))
}

fn write_text(path: &Path, text: serde_json::Result<String>) -> Result<(), JobError> {
    let text = text.map_err(|source| JobError::Damaged { path: path.to_owned(), source })?;
    Ok(atomic::write(path, (sealed::line(text) + "\n").as_bytes())?)
}
