//! Submits tasks as job arrays, and the job that collects their results.

use std::fmt::Display;
use std::path::Path;
use std::time::SystemTime;

use crate::atomic;
use crate::cluster::scheduler::{Part, QueueError, Script, ScriptError};
use crate::cluster::{Array, Job, Submission, Work, user};
use crate::commands::{Console, Failure};
use crate::model::calendar_time;

/// Most elements of an array of a scheduler that is not asked for its limit.
const MAX_ARRAY: u32 = 1000;

/// Prints what [`send`] would do.
pub fn show(dir: &Path, job: &Job, tasks: &[Vec<Work>], console: &mut Console) -> Result<(), Failure> {
    let limit = limit(job).unwrap_or(u32::MAX);
    let Scripts { mut arrays, collecting } = render(&parts(dir, job, tasks, 1, limit)).map_err(unusable)?;
    if let Some((queue, mut script)) = job.settings.scheduler.queue().zip(collecting) {
        queue.start_after(&mut script, &["IDS".to_owned()]);
        arrays.push(script);
    }
    // Arrays may share a script.
    let mut last = None;
    for script in &arrays {
        if last.replace(&script.path) != Some(&script.path) {
            console.print(&format!("# {}\n{}\n", script.path.display(), script.text))?;
        }
    }
    arrays.iter().try_for_each(|script| console.print(&format!("{}\n", script.command().map_err(unusable)?)))
}

/// Submits every task and the collecting job, or writes their scripts and prints the commands for the user.
pub fn send(dir: &Path, job: &Job, tasks: Vec<Vec<Work>>, number: u32, console: &mut Console) -> Result<(), Failure> {
    let limit = limit(job).map_err(failed)?;
    let parts = parts(dir, job, &tasks, number, limit);
    let Scripts { mut arrays, collecting } = render(&parts).map_err(unusable)?;
    job.write(dir).map_err(failed)?;
    atomic::create_folder(&dir.join("logs")).map_err(failed)?;
    for script in arrays.iter().chain(&collecting) {
        atomic::write(&script.path, script.text.as_bytes()).map_err(failed)?;
    }
    let submitted = humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string();
    let mut submission =
        Submission { number, user: Some(user()), submitted, tasks, arrays: Vec::new(), collect: None, cancelled: None };
    // The tasks read it, and each id is kept as soon as there is one.
    submission.write(dir).map_err(failed)?;
    let shown = word(&dir.strip_prefix(&job.directory).unwrap_or(dir).to_string_lossy())?;
    let Some((queue, mut collecting)) = job.settings.scheduler.queue().zip(collecting) else {
        for script in &arrays {
            console.print(&format!("{}\n", script.command().map_err(unusable)?))?;
        }
        let out = job.out.as_ref().map(|out| word(&format!("--out={}", out.display()))).transpose()?;
        let out = out.map(|out| format!(" {out}")).unwrap_or_default();
        return console.print(&format!("runner status {shown}\nrunner collect {shown}{out}\n"));
    };
    let mut ids: Vec<String> = Vec::new();
    for (Part { first, count, .. }, script) in parts.iter().zip(&mut arrays) {
        // The throttle holds for all arrays together.
        if let Some(last) = ids.last().filter(|_| job.settings.throttle.is_some()) {
            queue.start_after(script, std::slice::from_ref(last));
        }
        let id = queue.submit(script).map_err(failed)?;
        console.print(&format!("array {id}: {count} tasks\n"))?;
        submission.arrays.push(Array { id: id.clone(), first: *first, count: *count });
        submission.write(dir).map_err(failed)?;
        ids.push(id);
    }
    queue.start_after(&mut collecting, &ids);
    let id = queue.submit(&collecting).map_err(failed)?;
    console.print(&format!("job {id}: collects the results\n"))?;
    submission.collect = Some(id);
    submission.write(dir).map_err(failed)?;
    console.print(&format!("runner status {shown}\n"))
}

/// The scripts of a submission.
struct Scripts {
    /// The script of each part of the tasks.
    arrays: Vec<Script>,
    /// The script that collects the results, if this program submits it.
    collecting: Option<Script>,
}

fn render(parts: &[Part<'_>]) -> Result<Scripts, ScriptError> {
    let Some(first) = parts.first() else { return Ok(Scripts { arrays: Vec::new(), collecting: None }) };
    let scheduler = first.job.settings.scheduler;
    let arrays = parts.iter().map(|part| scheduler.script(part)).collect::<Result<_, _>>()?;
    Ok(Scripts { arrays, collecting: scheduler.queue().map(|queue| queue.collecting(first)).transpose()? })
}

/// Returns the most elements that an array may have.
fn limit(job: &Job) -> Result<u32, QueueError> {
    match (job.settings.max_array, job.settings.scheduler.queue()) {
        (Some(limit), _) => Ok(limit.get()),
        (None, Some(queue)) => queue.max_array(),
        (None, None) => Ok(MAX_ARRAY),
    }
}

/// Divides the tasks into arrays of at most `limit` elements.
fn parts<'a>(folder: &'a Path, job: &'a Job, tasks: &[Vec<Work>], number: u32, limit: u32) -> Vec<Part<'a>> {
    let seconds = tasks.iter().map(|task| task.iter().map(|work| job.seconds(*work)).sum()).fold(0.0, f64::max);
    let part = |(first, count)| Part { job, folder, number, first, count, seconds };
    chunks(tasks.len(), limit).into_iter().map(part).collect()
}

fn failed(error: impl Display) -> Failure {
    Failure::environment(error.to_string())
}

fn unusable(error: impl Display) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the tasks of each array: its first and how many.
fn chunks(tasks: usize, limit: u32) -> Vec<(usize, usize)> {
    let limit = limit.max(1) as usize;
    (0..tasks).step_by(limit).map(|first| (first, limit.min(tasks - first))).collect()
}

fn word(text: &str) -> Result<String, Failure> {
    shlex::try_quote(text)
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
