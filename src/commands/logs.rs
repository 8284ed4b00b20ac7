//! `runner logs`: shows what the tasks of a job have printed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::LogsArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cluster::{Job, logs_folder};
use runner_files::regular;

pub fn run(args: &LogsArgs, console: &mut Console) -> Result<Exit, Failure> {
    Job::read(&args.job).map_err(Failure::usage)?;
    let folder = logs_folder(&args.job);
    let files = files(&folder);
    let Some(task) = &args.task else {
        for file in &files {
            let text = read(file)?;
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            console.print(&format!("{}: {last}\n", file.display()))?;
        }
        if files.is_empty() {
            console.say(&format!("{} has no logs: no task has begun, or the scheduler keeps them", folder.display()));
        }
        return Ok(Exit::Success);
    };
    let found: Vec<&PathBuf> = files.iter().filter(|file| is_of(file, task)).collect();
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no log of task `{task}`; omit the task to list all logs",
            folder.display()
        )));
    }
    found.into_iter().try_for_each(|file| console.print(&read(file)?))?;
    Ok(Exit::Success)
}

/// Whether a log's name contains a task's, as in `task-1234_7.out` or, with PBS, `1234[7].server.OU`.
fn is_of(file: &Path, task: &str) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix("task-").or_else(|| name.strip_prefix("collect-")).unwrap_or(&name);
    rest.strip_prefix(task).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Reads a log, which may contain arbitrary program output.
fn read(file: &Path) -> Result<String, Failure> {
    let bytes = regular::read_data(file, regular::LONGEST_DATA);
    let bytes = bytes.map_err(|error| Failure::environment(format!("cannot read {}: {error}", file.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
