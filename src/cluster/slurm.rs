//! Runs Slurm's commands, which submit, ask and requeue.
//!
//! Arguments are passed as they are, never through a shell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Slurm's default, where it does not say.
const DEFAULT_MAX_ARRAY: u32 = 1001;

/// Why Slurm did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlurmError {
    /// The command cannot be started.
    #[error("cannot run {program}: {why}; run this where Slurm's commands are, on a login node")]
    Missing {
        /// The command that was run.
        program: &'static str,
        /// The reason that the system gives.
        why: String,
    },
    /// The command failed.
    #[error("{program} failed: {why}")]
    Failed {
        /// The command that was run.
        program: &'static str,
        /// The last words of the command.
        why: String,
    },
}

/// A task as the scheduler knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The state in Slurm's words: `PENDING`, `RUNNING`, `COMPLETED`, `TIMEOUT`, …
    pub state: String,
    /// Why it waits or ended, if the scheduler says.
    pub reason: String,
    /// Where it runs or ran.
    pub nodes: String,
}

/// Returns the most elements that an array may have.
pub fn max_array() -> Result<u32, SlurmError> {
    let said = run("scontrol", &["show".into(), "config".into()])?;
    let value = said.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize")?.split('=').nth(1));
    Ok(value.and_then(|value| value.trim().parse().ok()).unwrap_or(DEFAULT_MAX_ARRAY))
}

/// Submits a script and returns the job's id.
pub fn submit(arguments: &[OsString]) -> Result<String, SlurmError> {
    let said = run("sbatch", arguments)?;
    // With several clusters, the cluster's name follows.
    Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
}

/// Returns what Slurm knows of the tasks of these jobs, by their names. Jobs that ended some time ago are missing if it
/// keeps no accounts.
pub fn ask(jobs: &[String]) -> Result<BTreeMap<String, Seen>, SlurmError> {
    let arguments = ["--noheader", "--array", "--me", "--states=all", "--format=%i|%T|%N|%r"];
    let said = run("squeue", &arguments.map(OsString::from))?;
    let mut known = rows(&said, jobs);
    let accounts = ["--allocations", "--noheader", "--parsable2", "--array", "--format=JobID,State,NodeList,Reason"];
    let mut accounts: Vec<OsString> = accounts.map(OsString::from).to_vec();
    accounts.push(format!("--jobs={}", jobs.join(",")).into());
    // Fails where Slurm keeps no accounts.
    if let Ok(said) = run("sacct", &accounts) {
        for (id, seen) in rows(&said, jobs) {
            known.entry(id).or_insert(seen);
        }
    }
    Ok(known)
}

/// Starts the task again that this process belongs to, not on the excluded node. Slurm then ends this process.
pub fn requeue(id: &str, excluded: Option<&str>) -> Result<(), SlurmError> {
    let Some(node) = excluded else { return enduring(&["requeue".to_owned(), id.to_owned()]).map(drop) };
    // The nodes of a running job cannot change, so the job is held until they are set.
    enduring(&["requeuehold".to_owned(), id.to_owned()])?;
    let update = ["update".to_owned(), format!("JobId={id}"), format!("ExcNodeList={node}")];
    let updated = enduring(&update);
    enduring(&["release".to_owned(), id.to_owned()])?;
    updated.map(drop)
}

/// Runs scontrol so that it outlives the signal with which Slurm ends the job that it belongs to.
fn enduring(arguments: &[String]) -> Result<String, SlurmError> {
    let shell = ["-c", "trap '' TERM; exec scontrol \"$@\"", "scontrol"].map(OsString::from);
    let words: Vec<OsString> = shell.into_iter().chain(arguments.iter().map(OsString::from)).collect();
    run_named("scontrol", Path::new("/bin/sh"), &words)
}

fn run(program: &'static str, arguments: &[OsString]) -> Result<String, SlurmError> {
    run_named(program, Path::new(program), arguments)
}

fn run_named(program: &'static str, file: &Path, arguments: &[OsString]) -> Result<String, SlurmError> {
    let _span = tracing::info_span!("ask the scheduler", program, ?arguments).entered();
    let output = Command::new(file).args(arguments).env("PATH", crate::programs::search_path()).output();
    let output = output.map_err(|error| SlurmError::Missing { program, why: error.to_string() })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.trim().lines().last().map_or_else(|| output.status.to_string(), str::to_owned);
    Err(SlurmError::Failed { program, why })
}

/// Returns the rows of the given jobs, each of which is `ID|STATE|NODES|REASON`.
fn rows(text: &str, jobs: &[String]) -> BTreeMap<String, Seen> {
    let is_ours = |id: &str| jobs.iter().any(|job| id.split('_').next() == Some(job));
    let row = |line: &str| {
        let mut fields = line.splitn(4, '|').map(str::trim);
        let (id, state, nodes) = (fields.next()?, fields.next()?, fields.next()?);
        let known = |text: &str| if matches!(text, "None" | "None assigned") { String::new() } else { text.to_owned() };
        let reason = known(fields.next().unwrap_or_default());
        // `CANCELLED by 1000` in accounts.
        let state = state.split(' ').next().unwrap_or_default().to_owned();
        is_ours(id).then(|| (id.to_owned(), Seen { state, reason, nodes: known(nodes) }))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_squeue_and_sacct_are_read() {
        let text = "7_0|RUNNING|n1|None\n7_1|PENDING||ReqNodeNotAvail, UnavailableNodes:n2\n71_0|RUNNING|n2|None\n\
                    7_2|CANCELLED by 0|n1|None\n8|PENDING|None assigned|Dependency\n";
        let known = rows(text, &["7".to_owned(), "8".to_owned()]);
        let states: Vec<(&str, &str, &str, &str)> = known
            .iter()
            .map(|(id, seen)| (id.as_str(), seen.state.as_str(), seen.nodes.as_str(), seen.reason.as_str()))
            .collect();
        let expected = [
            ("7_0", "RUNNING", "n1", ""),
            ("7_1", "PENDING", "", "ReqNodeNotAvail, UnavailableNodes:n2"),
            ("7_2", "CANCELLED", "n1", ""),
            ("8", "PENDING", "", "Dependency"),
        ];
        assert_eq!(states, expected);
    }
}
