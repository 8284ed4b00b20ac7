//! How often the system has killed processes of this task for lack of memory, as counted by the task's control group.
//! The killed process can be any: a worker, a compiler or a reference.

use std::fs;
use std::path::{Path, PathBuf};

/// Key of the counter, in both versions of control groups.
const COUNTER: &str = "oom_kill";

/// The counter of this process's control group. Without a control group, nothing is counted.
#[derive(Debug, Clone)]
pub struct MemoryKills {
    file: Option<PathBuf>,
    before: u64,
}

impl MemoryKills {
    /// Starts counting.
    pub fn since_now() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&groups, Path::new("/sys/fs/cgroup"))
    }

    fn of(groups: &str, root: &Path) -> Self {
        let file = file(groups, root);
        let before = file.as_deref().map_or(0, count);
        Self { file, before }
    }

    pub fn count(&self) -> u64 {
        self.file.as_deref().map_or(0, count).saturating_sub(self.before)
    }
}

/// File with the counter, found through the lines of `/proc/self/cgroup`: `0::/a/b` in version 2, `9:memory:/a/b` in
/// version 1.
fn file(groups: &str, root: &Path) -> Option<PathBuf> {
    let of = |controllers: &str| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (own, path) = rest.split_once(':')?;
            let path = path.trim_start_matches('/');
            // The root group also counts processes outside the task.
            (own.split(',').any(|own| own == controllers) && !path.is_empty()).then_some(path)
        })
    };
    let first = of("memory").map(|path| root.join("memory").join(path).join("memory.oom_control"));
    let second = of("").map(|path| root.join(path).join("memory.events"));
    first.into_iter().chain(second).find(|file| file.is_file())
}

fn count(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(COUNTER)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn kills_since_the_beginning_are_counted_in_both_versions_of_control_groups() {
        let dir = tempfile::tempdir().unwrap();
        for (groups, file) in [
            ("0::/slurm/job_7/step_batch\n", "slurm/job_7/step_batch/memory.events"),
            (
                "12:cpu,cpuacct:/x\n9:memory:/slurm/uid_1/job_7\n1:name=systemd:/\n0::/unified\n",
                "memory/slurm/uid_1/job_7/memory.oom_control",
            ),
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let write = |kills: u32| {
                fs::write(&path, format!("low 0\nhigh 9\nmax 3\noom 5\noom_kill {kills}\noom_group_kill 8\n")).unwrap();
            };
            write(2);
            let kills = MemoryKills::of(groups, dir.path());
            assert_eq!(kills.count(), 0, "{file}");
            write(4);
            assert_eq!(kills.count(), 2, "{file}");
        }
        assert!(file("0::/elsewhere\n", dir.path()).is_none());
        fs::write(dir.path().join("memory.events"), "oom_kill 1\n").unwrap();
        assert!(file("0::/\n", dir.path()).is_none());
    }
}
