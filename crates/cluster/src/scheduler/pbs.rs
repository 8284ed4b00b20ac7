//! PBS Pro and `OpenPBS`.

use super::{Part, Scheduler, Script, ScriptError, Submitter, given, lines};

#[derive(Debug)]
pub struct Pbs;

impl Scheduler for Pbs {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &["image", "claim", "mount", "qos", "gres", "constraint", "requeues", "warning"]
    }

    fn submitter(&self) -> Submitter {
        Submitter::User {
            cancelling: |name| format!("qselect -u \"$USER\" -N {name} | xargs -r qdel"),
            waiting: Some(|names| {
                let each = names.iter().map(|name| format!("qselect -u \"$USER\" -N {name};")).collect::<Vec<_>>();
                let each = each.join(" ");
                // Without jobs to wait for, the option is omitted.
                format!("$({{ {each} }} | paste -sd: | sed 's/^./-W depend=afterany:&/')")
            }),
        }
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let minutes = part.minutes();
        let chunk = given([
            (":ncpus=", settings.cpus.map(|cpus| cpus.to_string())),
            (":ngpus=", settings.gpus.clone()),
            (":mem=", settings.size().map(|(number, unit)| format!("{number}{}b", unit.to_ascii_lowercase()))),
        ]);
        let mut options = vec![format!("-N {}", part.name())];
        // PBS rejects an array of size one.
        options.extend((part.count > 1).then(|| format!("-J {}{}", part.range(0), part.throttle())));
        options.push(format!("-l walltime={:02}:{:02}:00", minutes / 60, minutes % 60));
        options.push(format!("-l select=1{}", chunk.collect::<String>()));
        options.extend(["-r y".to_owned(), "-j oe".to_owned()]);
        options.extend(given([("-q ", settings.partition.clone()), ("-A ", settings.account.clone())]));
        options.extend(settings.extra.iter().cloned());
        let path = part.file("sh")?;
        Ok(Script {
            text: part.shell(&lines("#PBS ", options), &part.task("${PBS_ARRAY_INDEX:-0}")?)?,
            // PBS names each log in this folder after its task.
            words: vec!["qsub".to_owned(), "-o".to_owned(), part.log("")?, path.clone()],
            path: path.into(),
        })
    }
}
