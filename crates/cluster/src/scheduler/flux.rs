use super::{Part, Scheduler, Script, ScriptError, Submitter, given};

#[derive(Debug)]
pub struct Flux;

impl Scheduler for Flux {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &["image", "claim", "mount", "qos", "gres", "memory", "throttle", "requeues", "warning"]
    }

    fn submitter(&self) -> Submitter {
        Submitter::User {
            // By default, `flux jobs` lists at most 1000 jobs.
            cancelling: |name| {
                format!("flux jobs --count=1000000 --no-header --format='{{id}}' --name={name} | xargs -r flux cancel")
            },
            waiting: Some(|names| {
                let each = |name: &String| {
                    format!(
                        "$(flux jobs --count=1000000 --no-header --format='--dependency=afterany:{{id}}' --name={name})"
                    )
                };
                names.iter().map(each).collect::<Vec<_>>().join(" ")
            }),
        }
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let mut words = vec!["flux".to_owned(), "submit".to_owned(), format!("--cc={}", part.range(0))];
        words.push(format!("--job-name={}", part.name()));
        words.push(format!("--time-limit={}m", part.minutes()));
        // Flux replaces `{cc}` by the array index. Without this option, the output stays in Flux's own store.
        words.push(format!("--output={}", part.log(&format!("task-{}-{}_{{cc}}.out", part.number, part.first))?));
        words.extend(given([
            ("--queue=", settings.partition.clone()),
            ("--bank=", settings.account.clone()),
            ("--requires=", settings.constraint.clone()),
            ("--gpus-per-task=", settings.gpus.clone()),
            ("--cores-per-task=", settings.cpus.map(|cpus| cpus.to_string())),
        ]));
        words.extend(settings.extra.iter().cloned());
        let path = part.file("sh")?;
        // The script is not executable, so bash runs it.
        words.extend(["bash".to_owned(), path.clone()]);
        Ok(Script { text: part.shell("", &part.task("FLUX_JOB_CC")?)?, words, path: path.into() })
    }
}
