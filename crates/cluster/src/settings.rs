//! Defines the settings of a job that depend on the cluster.

use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

/// A scheduler, which starts the tasks of a job on the nodes of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SchedulerKind {
    /// Slurm: tasks are submitted and asked for.
    #[default]
    Slurm,
    /// The scheduler is PBS Pro or `OpenPBS`. For this and those below, scripts are written, and the user submits them.
    Pbs,
    /// The scheduler is LSF.
    Lsf,
    /// The scheduler is Flux.
    Flux,
    /// The scheduler is `HyperQueue`.
    HyperQueue,
    /// Kubernetes: an indexed Job.
    Kubernetes,
}

/// Settings of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The scheduler that starts the tasks.
    pub scheduler: SchedulerKind,
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
    pub cpus: Option<NonZeroU32>,
    /// The time limit that a task has, as in `2h`. Otherwise it is made from the estimate.
    pub time: Option<Seconds>,
    /// Environment modules to load.
    pub modules: Vec<String>,
    /// The further options that the scheduler gets, as in `--exclusive`.
    pub extra: Vec<String>,
    /// Lines of shell that run before a task.
    pub setup: Vec<String>,
    /// Most tasks that run at a time.
    pub throttle: Option<NonZeroU32>,
    /// Most tasks that the scheduler has at a time, waiting or running. The collecting job sends the rest later.
    pub queue: Option<NonZeroU32>,
    /// The largest number of elements that an array may have; `None` for the scheduler's own limit.
    pub max_array: Option<NonZeroU32>,
    /// The least estimated work that a task has, as in `10min`.
    pub min_task_time: Seconds,
    /// How often a task may ask to be started again.
    pub requeues: u32,
    /// How long before the time limit a task is warned, as in `2min`.
    pub warning: Seconds,
    /// How many times the memory the shards of a task get that ran out of it, when they are submitted again.
    pub memory_factor: Option<f64>,
    /// How many times the time limit the shards of a task get that reached it, when they are submitted again.
    pub time_factor: Option<f64>,
    /// The settings that differ for the job that collects the results.
    pub collect: CollectSettings,
}

/// Settings of the job that collects the results. What is not given is as for tasks, without their GPUs and nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectSettings {
    /// The partition of the job.
    pub partition: Option<String>,
    /// The account that is charged.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The memory that the job gets.
    pub memory: Option<String>,
    /// The time limit of the job; an hour, or less where the partition allows less.
    pub time: Option<Seconds>,
    /// The further options of the scheduler.
    pub extra: Vec<String>,
}

/// A duration, written as in `2h`.
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
            .map_err(|error| format!("{text:?} is not a duration ({error}): write for example 10min or 2h"))?;
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
    /// Returns the number and the unit of the memory, one of `KMGT`.
    pub fn size(&self) -> Option<(&str, char)> {
        size(self.memory.as_deref()?)
    }
}

/// Returns the number and the unit of an amount of memory.
pub fn size(text: &str) -> Option<(&str, char)> {
    Some(match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, text.chars().last()?),
        None => (text, 'M'),
    })
}
