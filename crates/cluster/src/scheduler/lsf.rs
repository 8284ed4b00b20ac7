//! IBM Spectrum LSF.

use super::{Part, Scheduler, Script, ScriptError, Submitter, given, lines};

#[derive(Debug)]
pub struct Lsf;

impl Scheduler for Lsf {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &["image", "claim", "mount", "qos", "gres", "requeues", "warning"]
    }

    fn knows_models(&self) -> bool {
        true
    }

    fn submitter(&self) -> Submitter {
        Submitter::User {
            cancelling: |name| format!("bkill -J {name} 0"),
            waiting: Some(|names| {
                let each = names.iter().map(|name| format!("bjobs -J {name} -noheader -o jobid;")).collect::<Vec<_>>();
                let each = each.join(" ");
                // The id of an array stands for all its elements. Without jobs to wait for, the option is omitted.
                let joined = r"sort -u | sed 's/.*/ended(&)/' | paste -sd, | sed 's/,/\&\&/g; s/^./-w &/'";
                format!("$({{ {each} }} 2>/dev/null | {joined})")
            }),
        }
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let gpus = settings.gpus.as_deref().map(|gpus| match gpus.rsplit_once(':') {
            Some((model, number)) => format!("\"num={number}:gmodel={model}\""),
            None => format!("\"num={gpus}\""),
        });
        let memory = settings.size().map(|(number, unit)| format!("{number}{unit}B"));
        let mut options = vec![
            format!("-J \"{}[{}]{}\"", part.name(), part.range(1), part.throttle()),
            format!("-W {}", part.minutes()),
            "-r".to_owned(),
            "-R \"span[hosts=1]\"".to_owned(),
        ];
        options.extend(given([
            ("-n ", settings.cpus.map(|cpus| cpus.to_string())),
            ("-gpu ", gpus),
            ("-M ", memory.clone()),
            ("-R ", memory.map(|memory| format!("\"rusage[mem={memory}]\""))),
            ("-R ", settings.constraint.as_ref().map(|features| format!("\"select[{features}]\""))),
            ("-q ", settings.partition.clone()),
            ("-P ", settings.account.clone()),
        ]));
        options.extend(settings.extra.iter().cloned());
        let path = part.file("sh")?;
        let log = part.log("task-%J_%I.out")?;
        Ok(Script {
            // LSF array indices are 1-based.
            text: part.shell(&lines("#BSUB ", options), &part.task("LSB_JOBINDEX - 1")?)?,
            words: ["bsub", "-o", &log, "<", &path].map(str::to_owned).to_vec(),
            path: path.into(),
        })
    }
}
