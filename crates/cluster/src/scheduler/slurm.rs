//! Slurm: this program runs its commands, which submit, ask and requeue.
//!
//! Arguments are passed as they are, never through a shell.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;

use super::{
    Answer, Outcome, Part, Placement, Queue, QueueError, Scheduler, Script, ScriptError, Seen, given, lines,
    quoted_path,
};

/// Slurm's default, where it does not say.
const DEFAULT_MAX_ARRAY: u32 = 1001;
/// More elements than Slurm lets an array have.
const LARGEST_ARRAY: u32 = 4_000_001;
/// The signal by which Slurm says that a task had not enough memory, as accounts write it.
const OUT_OF_MEMORY: &str = ":125";

#[derive(Debug)]
pub struct Slurm;

impl Scheduler for Slurm {
    fn lacks(&self) -> &'static [&'static str] {
        &["image", "claim", "mount"]
    }

    fn knows_models(&self) -> bool {
        true
    }

    fn cancelling(&self, name: &str) -> String {
        format!("scancel --me --name={name},{name}-collect")
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let mut options = options(part, &part.name(), part.minutes());
        options.push(format!("--signal=B:USR1@{}", settings.warning.0));
        options.extend(given([
            ("--gres=", settings.gres.clone()),
            ("--gpus=", settings.gpus.clone()),
            ("--constraint=", settings.constraint.clone()),
            ("--mem=", settings.memory.clone()),
            ("--cpus-per-task=", settings.cpus.map(|cpus| cpus.to_string())),
        ]));
        options.extend(settings.extra.iter().cloned());
        // Slurm may warn up to a minute early, so before the program handles the signal, which would end this shell.
        let head = lines("#SBATCH ", options) + "trap '' USR1\n";
        // All arrays of a submission share the script.
        let text = part.shell(&head, &part.task_command("\"$1\" \"$(($2 + SLURM_ARRAY_TASK_ID))\"")?)?;
        let mut script = sbatch(part, "task", text, "task-%A_%a.out")?;
        script.words.insert(2, format!("--array={}{}", part.range(0), part.throttle()));
        script.words.extend([part.number.to_string(), part.first.to_string()]);
        Ok(script)
    }

    fn queue(&self) -> Option<&'static dyn Queue> {
        Some(&Self)
    }
}

impl Queue for Slurm {
    fn max_array(&self) -> Result<u32, QueueError> {
        let said = run(&["scontrol", "show", "config"])?;
        let value = said.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize")?.split('=').nth(1));
        Ok(value.and_then(|value| value.trim().parse().ok()).unwrap_or(DEFAULT_MAX_ARRAY))
    }

    fn collecting(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let out = part.job.out.as_deref().map(quoted_path).transpose()?;
        let arguments = out.map(|out| format!("--out={out}")).unwrap_or_default();
        let head = lines("#SBATCH ", options(part, &format!("{}-collect", part.name()), 60));
        sbatch(part, "collect", part.shell(&head, &part.command("collect", &arguments)?)?, "collect-%A.out")
    }

    fn start_after(&self, script: &mut Script, jobs: &[String]) {
        script.words.insert(2, format!("--dependency=afterany:{}", jobs.join(":")));
    }

    fn submit(&self, script: &Script) -> Result<String, QueueError> {
        let words: Vec<&str> = script.words.iter().map(String::as_str).collect();
        let said = run(&words)?;
        // With several clusters, the cluster's name follows.
        Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
    }

    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError> {
        let jobs = jobs.iter().map(String::as_str);
        run(&["scancel", "--quiet"].into_iter().chain(jobs).collect::<Vec<_>>()).map(drop)
    }

    /// Jobs that ended some time ago are missing if Slurm keeps no accounts.
    fn ask(&self, jobs: &[String], users: &[u32]) -> Result<Answer, QueueError> {
        let users: Vec<String> = users.iter().map(u32::to_string).collect();
        let users = if users.is_empty() { "--me".to_owned() } else { format!("--user={}", users.join(",")) };
        let said = run(&["squeue", "--noheader", "--array", &users, "--states=all", "--format=%i|%T|%N|%r"])?;
        let mut tasks = rows(&said, jobs);
        let list = format!("--jobs={}", jobs.join(","));
        let format = "--format=JobID,State,NodeList,Reason,ExitCode";
        let gap = match run(&["sacct", "--allocations", "--noheader", "--parsable2", format, &list]) {
            Ok(said) => {
                self.add_ended(&mut tasks, rows(&said, jobs));
                None
            }
            Err(QueueError::Missing { .. }) => None,
            Err(QueueError::Failed { why, .. }) if why.contains("accounting storage is disabled") => None,
            Err(error) => Some(error),
        };
        Ok(Answer { tasks, gap })
    }

    fn outcome(&self, state: &str) -> Outcome {
        let ended = |word: &str| Outcome::Ended(word.to_owned());
        match state {
            "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Outcome::Waits,
            "RUNNING" | "COMPLETING" | "SIGNALING" | "STAGE_OUT" | "RESIZING" | "STOPPED" | "SUSPENDED" => {
                Outcome::Runs
            }
            "COMPLETED" => ended("ended before all cases were run"),
            "FAILED" => ended("exited with an error"),
            "TIMEOUT" => ended("reached its time limit"),
            "PREEMPTED" => ended("preempted"),
            "NODE_FAIL" => ended("its node failed"),
            "BOOT_FAIL" => ended("its node did not boot"),
            "CANCELLED" => ended("cancelled"),
            "OUT_OF_MEMORY" => ended("out of host memory"),
            "DEADLINE" => ended("reached its deadline"),
            other => Outcome::Ended(other.to_lowercase().replace('_', " ")),
        }
    }

    fn place(&self) -> Placement {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let element = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
        let element = element.map(|(job, task)| format!("{job}_{task}"));
        let host = Placement::of_host();
        Placement {
            id: element.or_else(|| variable("SLURM_JOB_ID")).unwrap_or(host.id),
            node: variable("SLURMD_NODENAME").unwrap_or(host.node),
            restart: variable("SLURM_RESTART_COUNT").and_then(|count| count.parse().ok()).unwrap_or(host.restart),
        }
    }

    fn requeue(&self, id: &str, excluded: Option<&str>) -> Result<(), QueueError> {
        let Some(node) = excluded else { return enduring(&["requeue", id]) };
        // The nodes of a running job cannot change, so the job is held until they are set.
        enduring(&["requeuehold", id])?;
        let updated = enduring(&["update", &format!("JobId={id}"), &format!("ExcNodeList={node}")]);
        enduring(&["release", id])?;
        updated
    }
}

/// Returns the options of every job.
fn options(part: &Part<'_>, name: &str, minutes: u64) -> Vec<String> {
    let settings = &part.job.settings;
    let mut options = vec![format!("--job-name={name}"), format!("--time={minutes}")];
    options.extend(["--requeue", "--open-mode=append"].map(str::to_owned));
    options.extend(given([
        ("--partition=", settings.partition.clone()),
        ("--account=", settings.account.clone()),
        ("--qos=", settings.qos.clone()),
    ]));
    options
}

/// Returns a script of a submission with the command that submits it.
fn sbatch(part: &Part<'_>, name: &str, text: String, log: &str) -> Result<Script, ScriptError> {
    let path = part.path(&format!("{name}-{}.sh", part.number))?;
    // Slurm replaces a percent sign and what follows; two of them are one.
    let log = format!("--output={}/{log}", part.path("logs")?.replace('%', "%%"));
    Ok(Script { words: vec!["sbatch".to_owned(), "--parsable".to_owned(), log, path.clone()], text, path: path.into() })
}

/// Runs scontrol so that it outlives the signal with which Slurm ends the job that it belongs to.
fn enduring(arguments: &[&str]) -> Result<(), QueueError> {
    let shell = ["/bin/sh", "-c", "trap '' TERM; exec scontrol \"$@\"", "scontrol"];
    run_as("scontrol", &[&shell, arguments].concat()).map(drop)
}

fn run(words: &[&str]) -> Result<String, QueueError> {
    run_as(words.first().copied().unwrap_or_default(), words)
}

/// Runs a command that messages call `program`.
fn run_as(program: &str, words: &[&str]) -> Result<String, QueueError> {
    let [file, arguments @ ..] = words else { return Ok(String::new()) };
    let _span = tracing::info_span!("ask the scheduler", program, ?arguments).entered();
    let output = Command::new(file).args(arguments).env("PATH", crate::programs::search_path()).output();
    let program = program.to_owned();
    let output = match output {
        Ok(output) => output,
        Err(error) => return Err(QueueError::Missing { program, why: error.to_string() }),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.trim().lines().last().map_or_else(|| output.status.to_string(), str::to_owned);
    Err(QueueError::Failed { program, why })
}

impl Slurm {
    /// Adds the ends of tasks that accounts have. Accounts may have a task that runs or waits although the controller
    /// has forgotten it, and the last row of a task that is started again may be its former end.
    fn add_ended(&self, tasks: &mut BTreeMap<String, Seen>, accounts: BTreeMap<String, Seen>) {
        let has_ended = |seen: &Seen| matches!(self.outcome(&seen.state), Outcome::Ended(_));
        for (id, seen) in accounts.into_iter().filter(|(_, seen)| has_ended(seen)) {
            if tasks.get(&id).is_none_or(has_ended) {
                tasks.insert(id, seen);
            }
        }
    }
}

/// Returns the rows of the given jobs, each of which is `ID|STATE|NODES|REASON` and in accounts also `|EXIT:SIGNAL`.
fn rows(text: &str, jobs: &[String]) -> BTreeMap<String, Seen> {
    let is_ours = |id: &str| jobs.iter().any(|job| id.split('_').next() == Some(job));
    let row = |line: &str| {
        let mut fields = line.split('|').map(str::trim);
        let (id, state, nodes) = (fields.next()?, fields.next()?, fields.next()?);
        let known = |text: &str| if matches!(text, "None" | "None assigned") { String::new() } else { text.to_owned() };
        let reason = known(fields.next().unwrap_or_default());
        // `CANCELLED by 1000` in accounts.
        let state = match (state.split(' ').next().unwrap_or_default(), fields.next()) {
            ("FAILED", Some(code)) if code.ends_with(OUT_OF_MEMORY) => "OUT_OF_MEMORY",
            (state, _) => state,
        };
        let seen = Seen { state: state.to_owned(), reason, nodes: known(nodes) };
        is_ours(id).then(|| elements(id).into_iter().map(move |id| (id, seen.clone())))
    };
    text.lines().filter_map(row).flatten().collect()
}

/// Returns the names of the elements that a row is about: `7_[0-2,8%4]` are `7_0`, `7_1`, `7_2` and `7_8`.
fn elements(id: &str) -> Vec<String> {
    let Some((job, list)) = id.split_once("_[") else { return vec![id.to_owned()] };
    let list = list.trim_end_matches(']').split('%').next().unwrap_or_default();
    let range = |part: &str| {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(
            (first..=last.min(first.saturating_add(LARGEST_ARRAY)))
                .step_by(step.parse().ok().filter(|step| *step > 0)?),
        )
    };
    list.split(',').filter_map(range).flatten().map(|element| format!("{job}_{element}")).collect()
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

    #[test]
    fn accounts_give_ranges_of_elements_and_tell_how_tasks_ended() {
        let jobs = ["7".to_owned()];
        let mut known = rows("7_0|RUNNING|n1|None\n7_9|FAILED|n1|None\n", &jobs);
        let accounts = "7_[2-4,6-9:2%3]|CANCELLED by 0|None assigned|None|0:0\n7_0|FAILED|n2|None|1:0\n\
                        7_9|FAILED|n1|None|0:125\n7_10|RUNNING|n1|None|0:0\n7_11|FAILED|n1|None|1:0\n";
        Slurm.add_ended(&mut known, rows(accounts, &jobs));
        let states: Vec<(&str, &str)> = known.iter().map(|(id, seen)| (id.as_str(), seen.state.as_str())).collect();
        let expected = [
            ("7_0", "RUNNING"),
            ("7_11", "FAILED"),
            ("7_2", "CANCELLED"),
            ("7_3", "CANCELLED"),
            ("7_4", "CANCELLED"),
            ("7_6", "CANCELLED"),
            ("7_8", "CANCELLED"),
            ("7_9", "OUT_OF_MEMORY"),
        ];
        assert_eq!(states, expected);
    }
}
