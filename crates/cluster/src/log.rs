//! The log of a task: one line of JSON per event of its attempts. If the scheduler has no accounting, it is the only
//! explanation of a missing result.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Work;
use super::job::tasks_folder;
use runner_files::atomic;
use runner_files::regular;
use runner_files::sealed::{self, BadLine};
use runner_types::calendar_time;

/// Reason logged by a task that stopped because the scheduler warned of the time limit.
pub const TIME_WAS_NEAR: &str = "its time limit was near";

/// Reason logged by a task that stopped because something else killed its worker.
pub const OUT_OF_MEMORY: &str = "its worker was killed, which the system does when memory runs out";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TaskEvent {
    Started {
        /// The scheduler's name of the task.
        id: String,
        node: String,
        /// Number of earlier starts by the scheduler.
        restart: u32,
    },
    /// The node or the manifest is not as expected; no case ran.
    Refused { node: String, why: String },
    /// The task, or one of its shards, ended before it was done.
    Stopped { why: String },
    /// The task asked the scheduler to restart it.
    Requeued {
        /// Node to avoid at the next start.
        excluded: Option<String>,
    },
    /// The last task of a search has written its report.
    Reported { folder: PathBuf },
    /// All shards of the task have complete results.
    Finished,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// RFC 3339, UTC.
    pub at: String,
    /// The only shard that the event concerns; `None` for the whole task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    #[serde(flatten)]
    pub event: TaskEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLog {
    path: PathBuf,
}

impl TaskLog {
    pub fn new(dir: &Path, submission: u32, task: usize) -> Self {
        Self { path: tasks_folder(dir).join(format!("{submission}-{task}.jsonl")) }
    }

    /// Appends an event, of the whole task or of one shard.
    pub fn write(&self, work: Option<Work>, event: TaskEvent) -> io::Result<()> {
        let at = humantime::format_rfc3339_millis(calendar_time(SystemTime::now())).to_string();
        let line = sealed::line(serde_json::to_string(&Attempt { at, work, event })?) + "\n";
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = atomic::open_itself(&self.path, fs::OpenOptions::new().create(true).append(true))?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    }

    /// Reads the undamaged lines that concern a shard.
    pub fn of_shard(&self, work: Work) -> Vec<Attempt> {
        let mut lines = self.read();
        lines.retain(|line| line.work.is_none_or(|other| other == work));
        lines
    }

    /// Reads the undamaged lines of the log; empty if the task never started.
    pub fn read(&self) -> Vec<Attempt> {
        let text = regular::read_text(&self.path).unwrap_or_default();
        // Older versions wrote no checksums.
        let is_sound = |line: &&str| matches!(sealed::check_line(line.as_bytes()), Ok(()) | Err(BadLine::NoSum));
        text.lines().filter(is_sound).filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_without_one_that_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let log = TaskLog::new(dir.path(), 1, 7);
        assert_eq!(log.read(), []);
        let events = [
            TaskEvent::Started { id: "3_7".to_owned(), node: "n1".to_owned(), restart: 0 },
            TaskEvent::Stopped { why: "the time limit is near".to_owned() },
            TaskEvent::Finished,
        ];
        for event in &events {
            log.write(None, event.clone()).unwrap();
        }
        fs::OpenOptions::new().append(true).open(&log.path).unwrap().write_all(b"{\"at\":").unwrap();
        let read: Vec<TaskEvent> = log.read().into_iter().map(|attempt| attempt.event).collect();
        assert_eq!(read, events);
    }
}
