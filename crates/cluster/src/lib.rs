//! Jobs on a cluster: the folder that describes a job, its batch scripts, and the state of its tasks.
//!
//! The scheduler distributes the work. A job's shards are packed into tasks; each task is one index of a job array and
//! runs `runner task`. Results are in the shards' journals, and each task has a log. The scheduler's answers only
//! explain why a shard has no result. Nothing in this crate runs a case.

mod groups;
mod job;
mod kept_programs;
mod layers;
mod log;
mod memory_kills;
mod pack;
pub mod preflight;
pub mod scheduler;
mod settings;
mod shards;
mod snapshot;
mod status;
mod submission;
mod view;

pub use groups::{are_groups_sound, read_groups, write_groups};
pub use job::{
    Experiment, Job, JobError, Work, collected, collecting_failure, logs_folder, mark_collected, shards_folder,
};
pub use kept_programs::{check_program, hash_of_program, keep_program, remove_unused_programs};
pub use layers::{SETTINGS_FILE, SettingsError, project_code, read_layer, resolve};
pub use log::{OUT_OF_MEMORY, TIME_WAS_NEAR, TaskEvent, TaskLog};
pub use memory_kills::MemoryKills;
pub use pack::pack;
pub use settings::{SchedulerKind, Seconds, Settings};
pub use shards::{
    Outdated, apply_to, finished_attempts, finished_journal, is_done, is_reported, mark_outdated, next_attempt,
    ran_cases,
};
pub use snapshot::{Snapshot, SnapshotError, plain_path};
pub use status::{ShardStatus, State, collecting, report_of_search, status, waiting_in_vain};
pub use submission::{Array, Retry, Submission};
pub use view::{Known, now, user};
