//! Submits tasks as job arrays, and the job that collects their results.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::atomic;
use crate::cluster::others::{self, Part, Rendered};
use crate::cluster::slurm::{self, SlurmError};
use crate::cluster::{Array, Job, JobError, Scheduler, Scripts, Submission, Work};
use crate::commands::{Console, Failure};
use crate::model::calendar_time;

/// Most elements of an array of a scheduler that is not asked for its limit.
const MAX_ARRAY: u32 = 1000;

/// Prints what [`send`] would do.
pub fn show(dir: &Path, job: &Job, tasks: &[Vec<Work>], console: &mut Console) -> Result<(), Failure> {
    if job.settings.scheduler != Scheduler::Slurm {
        for rendered in by_hand(dir, job, tasks, 1)? {
            console.print(&format!(
                "# {}\n{}\n{}\n",
                dir.join(&rendered.file).display(),
                rendered.text,
                rendered.command
            ))?;
        }
        return Ok(());
    }
    let scripts = render(dir, job, tasks)?;
    let limit = job.settings.max_array.unwrap_or_else(|| slurm::max_array().unwrap_or(u32::MAX));
    console.print(&format!("# {}\n{}\n", task_script(dir, 1).display(), scripts.task))?;
    console.print(&format!("# {}\n{}\n", collect_script(dir, 1).display(), scripts.collect))?;
    for (first, count) in chunks(tasks.len(), limit) {
        let words = array_words(dir, job, 1, (first, count), None);
        console.print(&format!("{}\n", command(&words)?))?;
    }
    console.print(&format!("{}\n", command(&collect_words(dir, job, 1, &["IDS".to_owned()]))?))
}

/// Submits every task and the collecting job.
pub fn send(dir: &Path, job: &Job, tasks: Vec<Vec<Work>>, number: u32, console: &mut Console) -> Result<(), Failure> {
    if job.settings.scheduler != Scheduler::Slurm {
        return write(dir, job, tasks, number, console);
    }
    let scripts = render(dir, job, &tasks)?;
    let limit = match job.settings.max_array {
        Some(limit) => limit,
        None => slurm::max_array().map_err(|e| refused(&e))?,
    };
    let failure = |error: JobError| Failure::environment(error.to_string());
    let written = |error: atomic::WriteError| Failure::environment(error.to_string());
    job.write(dir).map_err(failure)?;
    atomic::create_folder(&dir.join("logs")).map_err(written)?;
    atomic::write(&task_script(dir, number), scripts.task.as_bytes()).map_err(written)?;
    atomic::write(&collect_script(dir, number), scripts.collect.as_bytes()).map_err(written)?;
    let submitted = humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string();
    let count = tasks.len();
    let mut submission = Submission { number, submitted, tasks, arrays: Vec::new(), collect: None };
    // The tasks read it, and each id is kept as soon as there is one.
    submission.write(dir).map_err(failure)?;
    for (first, count) in chunks(count, limit) {
        let before = submission.arrays.last().filter(|_| job.settings.throttle.is_some()).map(|array| array.id.clone());
        let id = slurm::submit(&array_words(dir, job, number, (first, count), before.as_deref()))
            .map_err(|e| refused(&e))?;
        console.print(&format!("array {id}: {count} tasks\n"))?;
        submission.arrays.push(Array { id, first, count });
        submission.write(dir).map_err(failure)?;
    }
    let ids: Vec<String> = submission.arrays.iter().map(|array| array.id.clone()).collect();
    let id = slurm::submit(&collect_words(dir, job, number, &ids)).map_err(|e| refused(&e))?;
    console.print(&format!("job {id}: collects the results\n"))?;
    submission.collect = Some(id);
    submission.write(dir).map_err(failure)?;
    console.print(&format!("runner status {}\n", shown(dir, job)?))
}

/// Writes the scripts for a scheduler that is not asked, and prints the commands that submit them.
fn write(dir: &Path, job: &Job, tasks: Vec<Vec<Work>>, number: u32, console: &mut Console) -> Result<(), Failure> {
    let failure = |error: JobError| Failure::environment(error.to_string());
    let rendered = by_hand(dir, job, &tasks, number)?;
    job.write(dir).map_err(failure)?;
    for script in &rendered {
        atomic::write(&dir.join(&script.file), script.text.as_bytes())
            .map_err(|e| Failure::environment(e.to_string()))?;
    }
    let submitted = humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string();
    let submission = Submission { number, submitted, tasks, arrays: Vec::new(), collect: None };
    submission.write(dir).map_err(failure)?;
    let commands: Vec<&str> = rendered.iter().map(|script| script.command.as_str()).collect();
    let dir = shown(dir, job)?;
    let out = match &job.out {
        Some(out) => format!(" {}", word(&option("--out=", out))?),
        None => String::new(),
    };
    console.print(&format!("{}\nrunner status {dir}\nrunner collect {dir}{out}\n", commands.join("\n")))
}

/// Writes one script for each part of the tasks.
fn by_hand(dir: &Path, job: &Job, tasks: &[Vec<Work>], number: u32) -> Result<Vec<Rendered>, Failure> {
    let limit = job.settings.max_array.unwrap_or(MAX_ARRAY);
    let render = |(first, count)| {
        let seconds = longest(job, &tasks[first..first + count]);
        others::render(job, dir, Part { number, first, count, seconds })
    };
    let parts = chunks(tasks.len(), limit).into_iter().map(render);
    parts.collect::<Result<_, _>>().map_err(|error| Failure::usage(error.to_string()))
}

/// Returns how many seconds the longest task takes, as estimated.
fn longest(job: &Job, tasks: &[Vec<Work>]) -> f64 {
    tasks.iter().map(|task| task.iter().map(|work| job.seconds(*work)).sum()).fold(0.0, f64::max)
}

fn refused(error: &SlurmError) -> Failure {
    Failure::environment(error.to_string())
}

/// Returns the folder, relative to the working folder, as a word for a shell.
pub fn shown(dir: &Path, job: &Job) -> Result<String, Failure> {
    word(dir.strip_prefix(&job.directory).unwrap_or(dir).as_os_str())
}

fn render(dir: &Path, job: &Job, tasks: &[Vec<Work>]) -> Result<Scripts, Failure> {
    Scripts::render(job, dir, longest(job, tasks)).map_err(|error| Failure::usage(error.to_string()))
}

fn task_script(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("task-{number}.sh"))
}

fn collect_script(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("collect-{number}.sh"))
}

/// Returns the tasks of each array: its first and how many.
fn chunks(tasks: usize, limit: u32) -> Vec<(usize, usize)> {
    let limit = limit.max(1) as usize;
    (0..tasks).step_by(limit).map(|first| (first, limit.min(tasks - first))).collect()
}

/// Returns the words after `sbatch` for an array. With a throttle, one array starts after the `before` it, so that the
/// throttle holds for all of them.
fn array_words(
    dir: &Path,
    job: &Job,
    number: u32,
    (first, count): (usize, usize),
    before: Option<&str>,
) -> Vec<OsString> {
    let throttle = job.settings.throttle.map(|most| format!("%{most}")).unwrap_or_default();
    let mut words: Vec<OsString> = vec!["--parsable".into(), option("--chdir=", &job.directory)];
    words.push(option("--output=", &log(dir, "task-%A_%a.out")));
    words.push(format!("--array=0-{}{throttle}", count - 1).into());
    words.extend(before.map(|id| format!("--dependency=afterany:{id}").into()));
    words.extend([task_script(dir, number).into(), number.to_string().into(), first.to_string().into()]);
    words
}

fn collect_words(dir: &Path, job: &Job, number: u32, after: &[String]) -> Vec<OsString> {
    vec![
        "--parsable".into(),
        option("--chdir=", &job.directory),
        option("--output=", &log(dir, "collect-%A.out")),
        format!("--dependency=afterany:{}", after.join(":")).into(),
        collect_script(dir, number).into(),
    ]
}

fn option(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(value);
    word
}

/// Returns the pattern of a log's name. Slurm replaces a percent sign and what follows; two of them are one.
fn log(dir: &Path, pattern: &str) -> PathBuf {
    let folder = dir.join("logs").display().to_string().replace('%', "%%");
    Path::new(&folder).join(pattern)
}

/// Returns the command for a shell.
fn command(words: &[OsString]) -> Result<String, Failure> {
    let quoted = words.iter().map(|text| word(text)).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("sbatch {}", quoted.join(" ")))
}

fn word(text: &OsStr) -> Result<String, Failure> {
    let text = text.to_string_lossy();
    shlex::try_quote(&text)
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Failure::usage(format!("{text:?} cannot be an argument of a shell command")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_split_at_the_limit_of_the_site() {
        assert_eq!(chunks(2500, 1001), [(0, 1001), (1001, 1001), (2002, 498)]);
        assert_eq!(chunks(3, 1001), [(0, 3)]);
        assert_eq!(chunks(0, 1001), []);
    }
}
