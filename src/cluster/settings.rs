//! What a site needs to know about a job, from three layers: the command line, the project's `cluster.toml`, and the
//! user's.
//!
//! Values become options of the scheduler, each on a line of its own. They may hold only characters that such a line
//! keeps as they are, so that no value ends its option.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::regular;

/// The name of the file, in the project and in the user's configuration folder.
pub const SETTINGS_FILE: &str = "cluster.toml";

/// The characters that values may have besides letters and digits.
const PLAIN: &str = "_.,:;=+%@/&|!*()[]-";

/// What distributes the tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// Slurm: tasks are submitted and asked for.
    #[default]
    Slurm,
    /// The scheduler is PBS Pro or `OpenPBS`. For this and those below, scripts are written, and the user submits them.
    Pbs,
    /// The scheduler is LSF.
    Lsf,
    /// The scheduler is Flux.
    Flux,
    /// Kubernetes: an indexed Job.
    Kubernetes,
}

/// Settings that one layer makes. Every key may be absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// What distributes the tasks.
    pub scheduler: Option<Scheduler>,
    /// Kubernetes: the image of the container, which has the program.
    pub image: Option<String>,
    /// Kubernetes: the claim of the shared volume.
    pub claim: Option<String>,
    /// Kubernetes: where the shared volume is mounted. The job's folder, the cache and the program are in it.
    pub mount: Option<String>,
    /// The value of Slurm's `--partition`; the queue of other schedulers.
    pub partition: Option<String>,
    /// The account that is charged.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The generic resources that a task gets, as in `gpu:h100:1`.
    pub gres: Option<String>,
    /// The GPUs that a task gets, as in `1` or `h100:1`.
    pub gpus: Option<String>,
    /// Features that a node must have.
    pub constraint: Option<String>,
    /// What the version of the driver on the nodes begins with, as in `580`.
    pub driver: Option<String>,
    /// The memory that a task gets, as in `32G`.
    pub memory: Option<String>,
    /// The CPU cores that a task gets.
    pub cpus: Option<u32>,
    /// The time limit that a task has, as in `2h`. Otherwise it is made from the estimate.
    pub time: Option<String>,
    /// Environment modules to load.
    pub modules: Option<Vec<String>>,
    /// The further options that the scheduler gets, as in `--exclusive`.
    pub extra: Option<Vec<String>>,
    /// Lines of shell that run before a task.
    pub setup: Option<Vec<String>>,
    /// Most tasks that run at a time.
    pub throttle: Option<u32>,
    /// The largest number of elements that an array may have.
    pub max_array: Option<u32>,
    /// The least estimated work that a task has, as in `10min`.
    pub min_task_time: Option<String>,
    /// How often a task may ask to be started again.
    pub requeues: Option<u32>,
    /// How long before the time limit a task is warned, as in `2min`.
    pub warning: Option<String>,
}

/// What is wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// Settings of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// See [`Layer::scheduler`].
    #[serde(default)]
    pub scheduler: Scheduler,
    /// See [`Layer::image`].
    #[serde(default)]
    pub image: Option<String>,
    /// See [`Layer::claim`].
    #[serde(default)]
    pub claim: Option<String>,
    /// See [`Layer::mount`].
    #[serde(default)]
    pub mount: Option<String>,
    /// See [`Layer::partition`].
    pub partition: Option<String>,
    /// See [`Layer::account`].
    pub account: Option<String>,
    /// See [`Layer::qos`].
    pub qos: Option<String>,
    /// See [`Layer::gres`].
    pub gres: Option<String>,
    /// See [`Layer::gpus`].
    pub gpus: Option<String>,
    /// See [`Layer::constraint`].
    pub constraint: Option<String>,
    /// See [`Layer::driver`].
    #[serde(default)]
    pub driver: Option<String>,
    /// See [`Layer::memory`].
    pub memory: Option<String>,
    /// See [`Layer::cpus`].
    pub cpus: Option<u32>,
    /// Seconds; `None` to make it from the estimate.
    pub time: Option<u64>,
    /// See [`Layer::modules`].
    pub modules: Vec<String>,
    /// See [`Layer::extra`].
    pub extra: Vec<String>,
    /// See [`Layer::setup`].
    pub setup: Vec<String>,
    /// See [`Layer::throttle`].
    pub throttle: Option<u32>,
    /// See [`Layer::max_array`]; `None` for the scheduler's own limit.
    pub max_array: Option<u32>,
    /// The least estimated work of a task, in seconds.
    pub min_task_time: u64,
    /// See [`Layer::requeues`].
    pub requeues: u32,
    /// The time between the warning and the end of a task, in seconds.
    pub warning: u64,
}

impl Layer {
    /// Reads a file; a file that does not exist makes no settings.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = match regular::read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(SettingsError(format!("cannot read {}: {error}", path.display()))),
        };
        toml::from_str(&text).map_err(|error| SettingsError(format!("{}: {error}", path.display())))
    }

    /// Returns what a batch script of these settings runs besides this program: lines of shell, environment modules,
    /// containers and options of the scheduler, which can name programs.
    pub fn code(&self) -> Option<String> {
        let lists = [&self.setup, &self.modules, &self.extra].map(|list| list.clone().unwrap_or_default());
        let has_code = self.image.is_some() || lists.iter().any(|list| !list.is_empty());
        has_code.then(|| format!("{lists:?} {:?}", self.image))
    }

    /// Merges two layers; this layer wins.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            scheduler: self.scheduler.or(lower.scheduler),
            image: self.image.or(lower.image),
            claim: self.claim.or(lower.claim),
            mount: self.mount.or(lower.mount),
            partition: self.partition.or(lower.partition),
            account: self.account.or(lower.account),
            qos: self.qos.or(lower.qos),
            gres: self.gres.or(lower.gres),
            gpus: self.gpus.or(lower.gpus),
            constraint: self.constraint.or(lower.constraint),
            driver: self.driver.or(lower.driver),
            memory: self.memory.or(lower.memory),
            cpus: self.cpus.or(lower.cpus),
            time: self.time.or(lower.time),
            modules: self.modules.or(lower.modules),
            extra: self.extra.or(lower.extra),
            setup: self.setup.or(lower.setup),
            throttle: self.throttle.or(lower.throttle),
            max_array: self.max_array.or(lower.max_array),
            min_task_time: self.min_task_time.or(lower.min_task_time),
            requeues: self.requeues.or(lower.requeues),
            warning: self.warning.or(lower.warning),
        }
    }

    /// Checks every value; all faults at once.
    pub fn resolve(self) -> Result<Settings, SettingsError> {
        let mut faults = Vec::new();
        let plain = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("qos", &self.qos),
            ("gres", &self.gres),
            ("gpus", &self.gpus),
            ("constraint", &self.constraint),
            ("memory", &self.memory),
        ];
        for (key, value) in plain {
            faults.extend(value.as_deref().and_then(|value| unfit(key, value)));
        }
        faults.extend(self.extra.iter().flatten().filter_map(|option| unfit_option(option)));
        for (key, lines) in [("modules", &self.modules), ("setup", &self.setup)] {
            let broken = lines.iter().flatten().filter(|line| line.contains(['\n', '\r', '\0']));
            faults.extend(broken.map(|line| format!("{key}: {line:?} is more than one line")));
        }
        for (key, number) in [("throttle", self.throttle), ("max_array", self.max_array), ("cpus", self.cpus)] {
            faults.extend((number == Some(0)).then(|| format!("{key}: must be at least 1")));
        }
        let mut seconds = |key: &str, text: Option<String>| -> Option<u64> {
            let text = text?;
            match humantime::parse_duration(&text) {
                Ok(duration) => Some(duration.max(Duration::ZERO).as_secs()),
                Err(error) => {
                    faults.push(format!("{key}: {text:?} is not a duration ({error}): write for example 10min or 2h"));
                    None
                }
            }
        };
        let (time, least) = (seconds("time", self.time), seconds("min_task_time", self.min_task_time));
        let warning = seconds("warning", self.warning);
        if self.scheduler == Some(Scheduler::Kubernetes) {
            let needed = [("image", &self.image), ("claim", &self.claim), ("mount", &self.mount)];
            let absent = needed.into_iter().filter(|(_, value)| value.is_none());
            faults.extend(absent.map(|(key, _)| format!("{key}: Kubernetes needs it, in {SETTINGS_FILE}")));
        }
        if !faults.is_empty() {
            return Err(SettingsError(faults.join("\n")));
        }
        Ok(Settings {
            scheduler: self.scheduler.unwrap_or_default(),
            image: self.image,
            claim: self.claim,
            mount: self.mount,
            partition: self.partition,
            account: self.account,
            qos: self.qos,
            gres: self.gres,
            gpus: self.gpus,
            constraint: self.constraint,
            driver: self.driver,
            memory: self.memory,
            cpus: self.cpus,
            time,
            modules: self.modules.unwrap_or_default(),
            extra: self.extra.unwrap_or_default(),
            setup: self.setup.unwrap_or_default(),
            throttle: self.throttle,
            max_array: self.max_array,
            min_task_time: least.unwrap_or(600),
            requeues: self.requeues.unwrap_or(3),
            warning: warning.unwrap_or(120),
        })
    }
}

fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c))
}

fn unfit(key: &str, value: &str) -> Option<String> {
    (value.is_empty() || !is_plain(value))
        .then(|| format!("{key}: {value:?} has characters that an option of the scheduler cannot hold"))
}

fn unfit_option(option: &str) -> Option<String> {
    let fits = option.starts_with('-') && is_plain(option);
    (!fits).then(|| {
        format!("extra: {option:?} is no option of the scheduler: write for example --exclusive or --reservation=name")
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn layer(text: &str) -> Layer {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_layer_goes_before_those_below_it() {
        let user = layer("partition = 'short'\naccount = 'me'\nmodules = ['a', 'b']");
        let project = layer("partition = 'gpu'\nmodules = ['cuda/13']");
        let settings = layer("time = '2h'").over(project).over(user).resolve().unwrap();
        assert_eq!(settings.partition.as_deref(), Some("gpu"));
        assert_eq!(settings.account.as_deref(), Some("me"));
        assert_eq!(settings.modules, ["cuda/13"]);
        assert_eq!(settings.time, Some(7200));
        assert_eq!((settings.min_task_time, settings.requeues, settings.warning), (600, 3, 120));
    }

    #[test]
    fn a_value_that_would_end_its_option_is_refused_with_every_other_fault() {
        let hostile =
            layer("partition = \"gpu\\n#SBATCH --wrap=x\"\ngres = 'gpu 1'\nextra = ['$(touch x)']\ntime = 'soon'");
        let message = hostile.resolve().unwrap_err().to_string();
        let keys: Vec<&str> = message.lines().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(keys, ["partition", "gres", "extra", "time"], "{message}");
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS_FILE);
        std::fs::write(&path, "account = 'x'\npartitoin = 'gpu'\n").unwrap();
        let message = Layer::read(&path).unwrap_err().to_string();
        assert!(message.contains("line 2") && message.contains("partitoin"), "{message}");
        assert_eq!(Layer::read(&dir.path().join("absent.toml")), Ok(Layer::default()));
    }
}
