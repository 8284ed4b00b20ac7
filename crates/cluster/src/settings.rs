//! Cluster-specific settings of a job. [`layers`](super::layers) reads and checks them.

use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SchedulerKind {
    #[default]
    Slurm,
    /// PBS Pro or `OpenPBS`. For this and all following schedulers, the user submits the scripts.
    Pbs,
    Lsf,
    Flux,
    HyperQueue,
    Kubernetes,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub scheduler: SchedulerKind,
    /// Kubernetes: container image that contains the program.
    pub image: Option<String>,
    /// Kubernetes: persistent volume claim for the shared volume.
    pub claim: Option<String>,
    /// Kubernetes: mount point of the shared volume that holds the job's folder, the cache and the program.
    pub mount: Option<String>,
    /// Slurm's `--partition`; the queue of other schedulers.
    pub partition: Option<String>,
    /// Account to charge.
    pub account: Option<String>,
    /// Quality of service.
    pub qos: Option<String>,
    /// Generic resources per task, e.g. `gpu:h100:1`.
    pub gres: Option<String>,
    /// GPUs per task, e.g. `1` or `h100:1`.
    pub gpus: Option<String>,
    /// Features that a node must have.
    pub constraint: Option<String>,
    /// Prefix of the driver version on the nodes, e.g. `580`.
    pub driver: Option<String>,
    /// Memory per task, e.g. `32G`.
    pub memory: Option<String>,
    pub cpus: Option<NonZeroU32>,
    /// Time limit of a task, e.g. `2h`. The default is derived from the estimate.
    pub time: Option<Seconds>,
    /// Environment modules to load.
    pub modules: Vec<String>,
    /// Additional scheduler options, e.g. `--exclusive`.
    pub extra: Vec<String>,
    /// Shell lines to run before a task.
    pub setup: Vec<String>,
    /// Shell command line that the collecting job runs at the end, with the outcome on standard input.
    pub notify: Option<String>,
    /// Maximum number of concurrent tasks.
    pub throttle: Option<NonZeroU32>,
    /// Maximum number of tasks that are queued or running. The collecting job submits the rest later.
    pub queue: Option<NonZeroU32>,
    /// Maximum job array size; `None` for the scheduler's own limit.
    pub max_array: Option<NonZeroU32>,
    /// Minimum estimated work per task, e.g. `10min`.
    pub min_task_time: Seconds,
    /// How often a task may ask to be restarted.
    pub requeues: u32,
    /// How long before its time limit a task is warned, e.g. `2min`.
    pub warning: Seconds,
    /// Factor by which memory grows when shards are resubmitted because their task ran out of memory.
    pub memory_factor: Option<f64>,
    /// Factor by which the time limit grows when shards are resubmitted because their task reached it.
    pub time_factor: Option<f64>,
    pub collect: CollectSettings,
}

/// Settings of the job that collects the results. The partition, the account and the quality of service default to
/// those of the tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectSettings {
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub memory: Option<String>,
    /// Time limit. The default is an hour, or less if the partition allows less.
    pub time: Option<Seconds>,
    /// Additional scheduler options.
    pub extra: Vec<String>,
}

/// A duration, written as `2h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Seconds(pub u64);

impl From<Seconds> for String {
    fn from(seconds: Seconds) -> Self {
        format!("{}s", seconds.0)
    }
}

impl TryFrom<String> for Seconds {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let duration = humantime::parse_duration(&text)
            .map_err(|error| format!("{text:?} is not a duration ({error}): write e.g. 10min or 2h"))?;
        Ok(Self(duration.as_secs()))
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

impl Settings {
    /// Amount and unit of the memory; the unit is one of `KMGT`.
    pub fn size(&self) -> Option<(&str, char)> {
        size(self.memory.as_deref()?)
    }
}

/// Splits a size such as `32G` into amount and unit; the unit defaults to M.
pub fn size(text: &str) -> Option<(&str, char)> {
    Some(match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, text.chars().last()?),
        None => (text, 'M'),
    })
}
