//! Scripts for schedulers besides Slurm. They are written, and the user submits them.

use std::path::Path;

use serde::Serialize;
use tera::{Context, Tera};

use super::script::{ScriptError, limit_seconds, quoted, quoted_path, slug_name};
use super::{Job, Scheduler};

/// A script, and the command that submits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The name of the script's file.
    pub file: String,
    /// The content of the script.
    pub text: String,
    /// The command that submits the script, for a shell.
    pub command: String,
}

/// The part of a submission that one script runs.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The number of the submission.
    pub number: u32,
    /// The number of the first task.
    pub first: usize,
    /// The number of tasks.
    pub count: usize,
    /// The estimated seconds of the longest task.
    pub seconds: f64,
}

#[derive(Serialize)]
struct View<'a> {
    name: String,
    range: String,
    throttle: Option<u32>,
    clock: String,
    minutes: u64,
    seconds: u64,
    partition: Option<&'a str>,
    account: Option<&'a str>,
    memory: Option<&'a str>,
    gpus: Option<&'a str>,
    cpus: Option<u32>,
    extra: &'a [String],
    modules: Vec<String>,
    setup: &'a [String],
    requeues: u32,
    directory: String,
    cache: String,
    program: String,
    folder: String,
    number: u32,
    first: usize,
    count: usize,
    json_name: String,
    json_image: String,
    json_claim: String,
    json_mount: String,
    json_directory: String,
    json_cache: String,
    json_script: String,
}

/// Returns the script for a part of a submission of the job in `folder`.
pub fn render(job: &Job, folder: &Path, part: Part) -> Result<Rendered, ScriptError> {
    let (extension, template) = match job.settings.scheduler {
        Scheduler::Slurm | Scheduler::Pbs => ("sh", include_str!("templates/pbs.sh.tera")),
        Scheduler::Lsf => ("sh", include_str!("templates/lsf.sh.tera")),
        Scheduler::Flux => ("sh", include_str!("templates/flux.sh.tera")),
        Scheduler::Kubernetes => ("yaml", include_str!("templates/kubernetes.yaml.tera")),
    };
    let view = view(job, folder, part)?;
    let mut tera = Tera::default();
    tera.add_raw_template("script", template)?;
    let text = tera.render("script", &Context::from_serialize(&view)?)?;
    let file = format!("task-{}-{}.{extension}", part.number, part.first);
    let path = quoted_path(&folder.join(&file))?;
    Ok(Rendered { command: command(job, &view, &path), file, text })
}

fn view<'a>(job: &'a Job, folder: &Path, part: Part) -> Result<View<'a>, ScriptError> {
    let settings = &job.settings;
    let modules = settings.modules.iter().map(|module| quoted(module)).collect::<Result<Vec<_>, _>>()?;
    let (program, shown_folder) = (quoted_path(&job.program)?, quoted_path(folder)?);
    let name = slug_name(job);
    let loads = modules.iter().map(|module| format!("module load {module}\n"));
    let setup = settings.setup.iter().map(|line| format!("{line}\n"));
    let Part { number, first, count, .. } = part;
    let task = format!("exec {program} task {shown_folder} {number} \"$(({first} + JOB_COMPLETION_INDEX))\"");
    let script: String = loads.chain(setup).chain([task]).collect();
    let seconds = limit_seconds(job, part.seconds);
    let minutes = seconds.div_ceil(60).max(1);
    let start = usize::from(settings.scheduler == Scheduler::Lsf);
    Ok(View {
        range: format!("{start}-{}", start + count - 1),
        throttle: settings.throttle,
        clock: format!("{:02}:{:02}:00", minutes / 60, minutes % 60),
        minutes,
        seconds,
        partition: settings.partition.as_deref(),
        account: settings.account.as_deref(),
        memory: settings.memory.as_deref(),
        gpus: settings.gpus.as_deref(),
        cpus: settings.cpus,
        extra: &settings.extra,
        modules,
        setup: &settings.setup,
        requeues: settings.requeues,
        directory: quoted_path(&job.directory)?,
        cache: quoted_path(&job.cache)?,
        program,
        folder: shown_folder,
        number,
        first,
        count,
        json_name: json(&label(&format!("{name}-{number}-{first}"))),
        json_image: json(settings.image.as_deref().unwrap_or_default()),
        json_claim: json(settings.claim.as_deref().unwrap_or_default()),
        json_mount: json(settings.mount.as_deref().unwrap_or("/")),
        json_directory: json(&job.directory.to_string_lossy()),
        json_cache: json(&job.cache.to_string_lossy()),
        json_script: json(&script),
        name,
    })
}

fn command(job: &Job, view: &View<'_>, path: &str) -> String {
    match job.settings.scheduler {
        Scheduler::Slurm | Scheduler::Pbs => format!("qsub {path}"),
        Scheduler::Lsf => format!("bsub < {path}"),
        Scheduler::Kubernetes => format!("kubectl apply -f {path}"),
        Scheduler::Flux => {
            let mut words = vec![format!("flux submit --cc={} --time-limit={}m", view.range, view.minutes)];
            words.extend(view.partition.map(|queue| format!("--queue={queue}")));
            words.extend(view.account.map(|bank| format!("--bank={bank}")));
            words.extend(view.gpus.map(|gpus| format!("--gpus-per-task={gpus}")));
            words.extend(view.cpus.map(|cpus| format!("--cores-per-task={cpus}")));
            words.extend(view.extra.iter().cloned());
            // Flux runs a command, and the script is not executable.
            words.push(format!("bash {path}"));
            words.join(" ")
        }
    }
}

/// Returns a JSON string, which is a string in YAML, too.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a name as Kubernetes wants it: at most 63 lower-case letters, digits and dashes.
fn label(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(plain).collect();
    // The end is what tells parts apart.
    let start = text.len().saturating_sub(63);
    text[start..].trim_matches('-').to_owned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cluster::Settings;

    fn rendered(scheduler: Scheduler) -> Rendered {
        let settings = Settings {
            scheduler,
            partition: Some("gpu".to_owned()),
            gpus: Some("1".to_owned()),
            image: Some("runner:1".to_owned()),
            claim: Some("shared".to_owned()),
            setup: vec!["echo \"here\"".to_owned()],
            time: Some(5400),
            requeues: 2,
            ..Settings::default()
        };
        let job = Job {
            name: "Reduce_1".to_owned(),
            program: PathBuf::from("/opt/it's/runner"),
            directory: PathBuf::from("/data/$(touch x)"),
            cache: PathBuf::from("/cache"),
            settings,
            ..Job::default()
        };
        let part = Part { number: 2, first: 100, count: 3, seconds: 10.0 };
        render(&job, Path::new("/data/job"), part).unwrap()
    }

    #[test]
    fn every_scheduler_gets_the_task_of_its_element() {
        let pbs = rendered(Scheduler::Pbs).text;
        assert!(pbs.contains("#PBS -J 0-2\n#PBS -l walltime=01:30:00\n") && pbs.contains(":ngpus=1\n"), "{pbs}");
        assert!(pbs.ends_with("\"/opt/it's/runner\" task /data/job 2 \"$((100 + ${PBS_ARRAY_INDEX:-0}))\"\n"), "{pbs}");
        let lsf = rendered(Scheduler::Lsf).text;
        assert!(lsf.contains("[1-3]\"\n#BSUB -W 90\n") && lsf.contains("$((100 + LSB_JOBINDEX - 1))"), "{lsf}");
        let flux = rendered(Scheduler::Flux);
        let expected =
            "flux submit --cc=0-2 --time-limit=90m --queue=gpu --gpus-per-task=1 bash /data/job/task-2-100.sh";
        assert_eq!(flux.command, expected);
        assert!(flux.text.contains("cd '/data/$(touch x)' || exit 3\n"), "{}", flux.text);
    }

    #[test]
    fn a_job_of_kubernetes_holds_every_path_as_a_string() {
        let Rendered { text, command, .. } = rendered(Scheduler::Kubernetes);
        assert_eq!(command, "kubectl apply -f /data/job/task-2-100.yaml");
        for line in [
            "  name: \"runner-reduce-1-2-100\"",
            "  completions: 3",
            "  backoffLimitPerIndex: 2",
            "          workingDir: \"/data/$(touch x)\"",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
        assert!(text.contains(r#""echo \"here\"\nexec \"/opt/it's/runner\" task"#), "{text}");
    }
}
