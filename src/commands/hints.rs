//! Commands that messages name. Each works as it is printed, in the folder where the message appears.

use std::path::Path;

use runner_cluster::{Experiment, Job, ShardStatus, State};

/// A subcommand with the folder of a job, quoted for a shell.
pub fn of_job(words: &str, dir: &Path) -> String {
    let text = dir.to_string_lossy();
    format!("`runner {words} {}`", shlex::try_quote(&text).unwrap_or(text.as_ref().into()))
}

/// The command that resubmits a job.
pub fn again(dir: &Path, job: &Job) -> String {
    again_with(None, dir, job)
}

fn again_with(option: Option<&str>, dir: &Path, job: &Job) -> String {
    // A job's command can be repeated only by the user who submitted it, and only in the same folder.
    let is_here = std::env::current_dir().is_ok_and(|here| here == job.directory);
    match job.command_line() {
        Some(_) if is_here && Job::is_own(dir) => {
            let option = option.map(|option| format!(" {option}")).unwrap_or_default();
            of_job(&format!("submit{option} --again"), dir)
        }
        _ => {
            let option = option.map(|option| format!(" and {option}")).unwrap_or_default();
            format!("the command that submitted it{option}, in {},", job.directory.display())
        }
    }
}

/// How to run a job's edited files.
pub fn after_edit(dir: &Path, job: &Job, shards: &[ShardStatus], edited: &[impl AsRef<Path>]) -> String {
    let is_manifest = |Experiment { manifest, .. }: &Experiment| edited.iter().any(|path| path.as_ref() == manifest);
    let is_named = job.command.iter().any(|word| word == "--name" || word.starts_with("--name="));
    if shards.iter().any(|shard| matches!(shard.state, State::Queued | State::Running)) {
        return format!("to run the edited files, end its tasks with {}, then submit it again", of_job("cancel", dir));
    }
    if is_named && !job.searches && job.experiments.iter().any(is_manifest) {
        return "a changed manifest is a new job: submit it with another --name".to_owned();
    }
    format!("{} shows what would run again", again_with(Some("--dry-run"), dir, job))
}
