//! `HyperQueue`, which runs tasks on nodes that it holds. It works on top of Slurm or PBS, or alone.

use super::{Part, Scheduler, Script, ScriptError, Submitter, given};

#[derive(Debug)]
pub struct HyperQueue;

impl Scheduler for HyperQueue {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &[
            "image",
            "claim",
            "mount",
            "partition",
            "account",
            "qos",
            "gres",
            "constraint",
            "memory",
            "throttle",
            "warning",
        ]
    }

    fn submitter(&self) -> Submitter {
        Submitter::User {
            cancelling: |name| {
                let of_name = format!("jq -r '.[] | select(.name == \"{name}\") | .id'");
                format!("hq job list --all --output-mode=json | {of_name} | xargs -r -n 1 hq job cancel")
            },
            waiting: None,
        }
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let log = part.log("task-%{JOB_ID}_%{TASK_ID}.out")?;
        let mut words = vec!["hq".to_owned(), "submit".to_owned(), format!("--array={}", part.range(0))];
        words.push(format!("--name={}", part.name()));
        words.push(format!("--time-limit={}s", part.limit()));
        // Number of lost workers after which a task fails.
        words.push(format!("--crash-limit={}", settings.requeues.saturating_add(1)));
        words.extend([format!("--stdout={log}"), format!("--stderr={log}")]);
        words.extend(given([
            ("--cpus=", settings.cpus.map(|cpus| cpus.to_string())),
            ("--resource=gpus/nvidia=", settings.gpus.clone()),
        ]));
        words.extend(settings.extra.iter().cloned());
        let path = part.file("sh")?;
        words.extend(["--".to_owned(), "bash".to_owned(), path.clone()]);
        Ok(Script { text: part.shell("", &part.task("HQ_TASK_ID")?)?, words, path: path.into() })
    }
}
