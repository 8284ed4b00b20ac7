//! Slurm. This program calls its commands to submit, query, cancel and requeue. Arguments are passed unchanged, never
//! through a shell.

use std::collections::BTreeMap;
use std::env;

use super::command::{NO_ANSWER, run, run_as};
use super::{
    Answer, Cause, Outcome, Part, Placement, Queue, QueueError, Scheduler, Script, ScriptError, Seen, Sent, Submitter,
    given, lines, quoted, quoted_path,
};
use crate::Retry;

/// Slurm's default for `MaxArraySize`.
const DEFAULT_MAX_ARRAY: u32 = 1001;
/// Larger than any array that Slurm allows.
const LARGEST_ARRAY: u32 = 4_000_001;
/// Time limit of the collecting job in seconds, unless the settings or the partition set a lower one.
const COLLECTING: u64 = 3600;
/// Signal that Slurm's accounting shows for a task that ran out of memory.
const OUT_OF_MEMORY: &str = ":125";
/// SIGKILL: how Slurm without cgroups ends a task that exceeds its memory limit (`OverMemoryKill`). Other kills have
/// their own states.
const KILLED: &str = ":9";

#[derive(Debug)]
pub struct Slurm;

impl Scheduler for Slurm {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &["image", "claim", "mount"]
    }

    fn knows_models(&self) -> bool {
        true
    }

    fn submitter(&self) -> Submitter {
        Submitter::Program(&Self)
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let settings = &part.job.settings;
        let plain = Part { retry: Retry::default(), ..part.clone() };
        let mut options = options(plain.minutes());
        options.extend(given([
            ("--partition=", settings.partition.clone()),
            ("--account=", settings.account.clone()),
            ("--qos=", settings.qos.clone()),
        ]));
        options.push(format!("--signal=B:USR1@{}", settings.warning.0));
        options.extend(given([
            ("--gres=", settings.gres.clone()),
            ("--gpus=", settings.gpus.clone()),
            ("--constraint=", settings.constraint.clone()),
            ("--cpus-per-task=", settings.cpus.map(|cpus| cpus.to_string())),
            ("--mem=", plain.memory()),
        ]));
        options.extend(settings.extra.iter().cloned());
        // Slurm may send USR1 up to a minute early, before the program has installed its handler. Without the trap the
        // signal would kill this shell.
        let head = lines("#SBATCH ", options) + "trap '' USR1\n";
        // All arrays of a submission share the script, so the submission number and the first task are arguments.
        let text = part.shell(&head, &part.task_of("\"$1\"", "$2 + SLURM_ARRAY_TASK_ID")?)?;
        let mut script = sbatch(part, ("task", &part.tag()), text, "task-%A_%a.out")?;
        script.words.insert(2, format!("--array={}{}", part.range(0), part.throttle()));
        // Options on the command line override those in the script.
        let more_memory = part.memory().filter(|memory| Some(memory) != plain.memory().as_ref());
        let more_memory = more_memory.map(|memory| format!("--mem={memory}"));
        let more_time = (part.minutes() != plain.minutes()).then(|| format!("--time={}", part.minutes()));
        script.words.splice(3..3, more_memory.into_iter().chain(more_time));
        script.words.extend([part.number.to_string(), part.first.to_string()]);
        Ok(script)
    }
}

impl Queue for Slurm {
    fn max_array(&self) -> Result<u32, QueueError> {
        let said = run(&["scontrol", "show", "config"])?;
        let value = said.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize")?.split('=').nth(1));
        Ok(value.and_then(|value| value.trim().parse().ok()).unwrap_or(DEFAULT_MAX_ARRAY))
    }

    fn longest(&self, partition: Option<&str>) -> Result<Option<u64>, QueueError> {
        let said = run(&["sinfo", "--noheader", "--format=%R|%P|%l"])?;
        Ok(longest(&said, partition))
    }

    fn collecting(&self, part: &Part<'_>, rest: Option<&str>) -> Result<Script, ScriptError> {
        let (settings, own) = (&part.job.settings, &part.job.settings.collect);
        let out = part.job.out.as_deref().map(|out| Ok(format!("--out={}", quoted_path(out)?))).transpose()?;
        // Slurm runs its own copy of the script, which others cannot change.
        let rest = rest.map(|hash| format!("--send-rest={hash} --own-script=\"$0\""));
        // Only the script has the command: others may be able to write to the job's folder.
        let notify = settings.notify.as_deref().map(|line| Ok(format!("--notify={}", quoted(line)?))).transpose()?;
        let arguments: Vec<String> = out.into_iter().chain(rest).chain(notify).collect();
        let seconds = own.time.map_or(COLLECTING.min(part.longest.unwrap_or(COLLECTING)), |time| time.0);
        let mut options = options(seconds.div_ceil(60).max(1));
        let given_or = |own: &Option<String>, of_tasks: &Option<String>| own.clone().or_else(|| of_tasks.clone());
        options.extend(given([
            ("--partition=", given_or(&own.partition, &settings.partition)),
            ("--account=", given_or(&own.account, &settings.account)),
            ("--qos=", given_or(&own.qos, &settings.qos)),
            ("--mem=", own.memory.clone()),
        ]));
        options.extend(own.extra.iter().cloned());
        let text = part.shell(&lines("#SBATCH ", options), &part.command("collect", &arguments.join(" "))?)?;
        sbatch(part, ("collect", &part.collecting_tag()), text, "collect-%A.out")
    }

    fn start_after(&self, script: &mut Script, jobs: &[String]) {
        script.words.insert(2, format!("--dependency=afterany:{}", jobs.join(":")));
    }

    fn submit(&self, script: &Script) -> Sent {
        let words: Vec<&str> = script.words.iter().map(String::as_str).collect();
        match run(&words) {
            // In a multi-cluster setup, `;CLUSTER` follows the id.
            Ok(said) => Sent::Accepted(said.trim().split(';').next().unwrap_or_default().to_owned()),
            Err(error @ QueueError::Failed { .. }) if is_silence(&error.to_string()) => {
                Sent::Unknown(error.to_string())
            }
            Err(error) => Sent::Refused(error.to_string()),
        }
    }

    fn find(&self, tag: &str) -> Result<Option<String>, QueueError> {
        let said = run(&["squeue", "--noheader", "--me", "--states=all", "--format=%F|%j"])?;
        if let Some(id) = id_of(&said, tag) {
            return Ok(Some(id));
        }
        // The controller may already have forgotten a job that ended.
        let name = format!("--name={tag}");
        let words = ["sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-2days", &name];
        match run(&[&words[..], &["--format=JobID,JobName"]].concat()) {
            Ok(said) => Ok(id_of(&said, tag)),
            Err(error) if has_no_accounts(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn cancel(&self, jobs: &[String]) -> Result<(), QueueError> {
        let jobs = jobs.iter().map(String::as_str);
        run(&["scancel", "--quiet"].into_iter().chain(jobs).collect::<Vec<_>>()).map(drop)
    }

    /// If Slurm has no accounting, jobs that ended a while ago are missing.
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
            Err(error) if has_no_accounts(&error) => None,
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

    fn cause(&self, state: &str) -> Option<Cause> {
        match state {
            "OUT_OF_MEMORY" => Some(Cause::Memory),
            "TIMEOUT" => Some(Cause::Time),
            _ => None,
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
        let job = run(&["scontrol", "show", "job", id])?;
        // Keep excluding the nodes that the user or earlier attempts excluded.
        let nodes = excluded_with(&job, node);
        if let Some(partition) = value_of(&job, "Partition") {
            let all = run(&["sinfo", "--noheader", "--Node", "--format=%N", &format!("--partition={partition}")])?;
            let excluded = run(&["scontrol", "show", "hostnames", &nodes])?;
            if !all.lines().any(|node| !excluded.lines().any(|other| other.trim() == node.trim())) {
                // With no other node left, the task would wait forever.
                let why = format!("no other node is left in partition {partition}");
                return Err(QueueError::Failed { program: "scontrol requeue".to_owned(), why });
            }
        }
        // Slurm refuses to change the nodes of a running job, so the job is held until they are set.
        let shell = ["/bin/sh", "-c", ELSEWHERE, "scontrol", id, &nodes];
        run_as("scontrol", &shell).map(drop)
    }
}

/// Restarts a job on other nodes. As soon as the job is held, Slurm ends all its processes, including this one. So one
/// shell that ignores SIGTERM does all the steps.
const ELSEWHERE: &str = r#"
trap '' TERM
scontrol requeuehold "$1" || exit
scontrol update "JobId=$1" "ExcNodeList=$2"
updated=$?
scontrol release "$1" && exit $updated
"#;

/// Options common to all jobs.
fn options(minutes: u64) -> Vec<String> {
    vec!["--requeue".to_owned(), "--open-mode=append".to_owned(), format!("--time={minutes}")]
}

/// Script of a submission. Its tag identifies the job even if Slurm's answer is lost.
fn sbatch(part: &Part<'_>, (name, tag): (&str, &str), text: String, log: &str) -> Result<Script, ScriptError> {
    let path = part.path(&format!("{name}-{}.sh", part.number))?;
    // Slurm expands `%` in log paths; `%%` stands for a literal `%`.
    let log = format!("--output={}/{log}", part.path("logs")?.replace('%', "%%"));
    let mut words = vec!["sbatch".to_owned(), "--parsable".to_owned()];
    words.extend([format!("--job-name={tag}"), format!("--comment={tag}"), log, path.clone()]);
    Ok(Script { words, text, path: path.into() })
}

/// Whether Slurm may have carried out the request despite the error.
fn is_silence(error: &str) -> bool {
    let error = error.to_lowercase();
    ["timed out", "unable to contact", "communication", "connection", "zero bytes", "socket", NO_ANSWER]
        .iter()
        .any(|words| error.contains(words))
}

fn has_no_accounts(error: &QueueError) -> bool {
    match error {
        QueueError::Missing { .. } => true,
        QueueError::Failed { why, .. } => why.contains("accounting storage is disabled"),
    }
}

/// Id in the row `ID|NAME` with this name.
fn id_of(text: &str, name: &str) -> Option<String> {
    let rows = text.lines().filter_map(|line| line.trim().split_once('|'));
    let id = rows.filter(|(_, known)| *known == name).map(|(id, _)| id).next()?;
    // Accounting lists the tasks of an array as `ID_INDEX`.
    id.split('_').next().map(str::to_owned)
}

/// Longest time limit of a partition in seconds, from rows `NAME|NAME or NAME*|LIMIT`. An asterisk marks the default
/// partition.
fn longest(text: &str, partition: Option<&str>) -> Option<u64> {
    let rows = text.lines().filter_map(|line| {
        let mut fields = line.trim().split('|');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let is_meant = |name: &str, marked: &str| match partition {
        // `--partition` may list several names.
        Some(partition) => partition.split(',').any(|part| part == name),
        None => marked.ends_with('*'),
    };
    let limits: Vec<Option<u64>> =
        rows.filter(|(name, marked, _)| is_meant(name, marked)).map(|(.., limit)| duration(limit)).collect();
    limits.iter().all(Option::is_some).then(|| limits.into_iter().flatten().max()).flatten()
}

/// Parses a duration in Slurm's format `[DAYS-]HOURS:MINUTES:SECONDS`, whose parts are optional, to seconds. `None` for
/// anything else.
fn duration(text: &str) -> Option<u64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts = rest.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    let seconds = parts.iter().fold(0, |sum, part| sum * 60 + part);
    // After `DAYS-`, the first number is hours, even if no minutes or seconds follow.
    let unit = if rest.len() < text.len() { [3600, 60, 1].get(parts.len() - 1).copied().unwrap_or(1) } else { 1 };
    Some(days.parse::<u64>().ok()? * 86_400 + seconds * unit)
}

/// The excluded nodes in the output of `scontrol show job`, plus `node`.
fn excluded_with(job: &str, node: &str) -> String {
    match value_of(job, "ExcNodeList") {
        Some(nodes) => format!("{nodes},{node}"),
        None => node.to_owned(),
    }
}

/// Value of a key in the output of `scontrol show job`.
fn value_of<'a>(job: &'a str, key: &str) -> Option<&'a str> {
    let value = job.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.filter(|value| !value.is_empty() && *value != "(null)")
}

/// Runs `scontrol` in a shell that ignores SIGTERM, with which Slurm ends the calling job.
fn enduring(arguments: &[&str]) -> Result<(), QueueError> {
    let shell = ["/bin/sh", "-c", "trap '' TERM; exec scontrol \"$@\"", "scontrol"];
    run_as("scontrol", &[&shell, arguments].concat()).map(drop)
}

impl Slurm {
    /// Adds tasks that have ended, from Slurm's accounting. Rows of active tasks are skipped: accounting may keep one
    /// after the controller has forgotten the task. The last row of a restarted task may describe its previous run, so
    /// an active state from the controller takes precedence.
    fn add_ended(&self, tasks: &mut BTreeMap<String, Seen>, accounts: BTreeMap<String, Seen>) {
        let has_ended = |seen: &Seen| matches!(self.outcome(&seen.state), Outcome::Ended(_));
        for (id, seen) in accounts.into_iter().filter(|(_, seen)| has_ended(seen)) {
            if tasks.get(&id).is_none_or(has_ended) {
                tasks.insert(id, seen);
            }
        }
    }
}

/// Rows `ID|STATE|NODES|REASON` of the given jobs. Accounting appends `|EXIT:SIGNAL`.
fn rows(text: &str, jobs: &[String]) -> BTreeMap<String, Seen> {
    let is_ours = |id: &str| jobs.iter().any(|job| id.split('_').next() == Some(job));
    let row = |line: &str| {
        let mut fields = line.split('|').map(str::trim);
        let (id, state, nodes) = (fields.next()?, fields.next()?, fields.next()?);
        let known = |text: &str| if matches!(text, "None" | "None assigned") { String::new() } else { text.to_owned() };
        let reason = known(fields.next().unwrap_or_default());
        // Accounting writes `CANCELLED by 1000`.
        let state = match (state.split(' ').next().unwrap_or_default(), fields.next()) {
            ("FAILED", Some(code)) if code.ends_with(OUT_OF_MEMORY) || code.ends_with(KILLED) => "OUT_OF_MEMORY",
            (state, _) => state,
        };
        let seen = Seen { state: state.to_owned(), reason, nodes: known(nodes) };
        is_ours(id).then(|| elements(id).into_iter().map(move |id| (id, seen.clone())))
    };
    text.lines().filter_map(row).flatten().collect()
}

/// Tasks of a row: `7_[0-2,8%4]` is `7_0`, `7_1`, `7_2` and `7_8`.
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
    fn the_longest_time_of_a_partition_is_read() {
        let said = "batch|batch*|10:00\ngpu|gpu|1-02:00:00\nlong|long|infinite\nshort|short|2:30:00\n";
        assert_eq!(longest(said, None), Some(600));
        assert_eq!(longest(said, Some("gpu")), Some(26 * 3600));
        assert_eq!(longest(said, Some("long")), None);
        assert_eq!(longest(said, Some("batch,short")), Some(9000));
        assert_eq!(longest(said, Some("batch,long")), None);
        assert_eq!(duration("1-2"), Some(26 * 3600));
    }

    #[test]
    fn a_job_is_found_by_its_tag_and_its_excluded_nodes_are_kept() {
        assert_eq!(id_of("70|runner-a.1.1.0\n71|runner-a.1.1.1000\n", "runner-a.1.1.1000").as_deref(), Some("71"));
        assert_eq!(id_of("72_5|runner-a.1.1.0\n", "runner-a.1.1.0").as_deref(), Some("72"));
        assert_eq!(id_of("70|runner-a.1.1.0\n", "runner-a.1.1.1"), None);
        assert_eq!(excluded_with("   ReqNodeList=(null) ExcNodeList=n1,n[3-4]\n", "n9"), "n1,n[3-4],n9");
        assert_eq!(excluded_with("   ReqNodeList=(null) ExcNodeList=(null)\n", "n9"), "n9");
        assert_eq!(value_of("   Partition=gpu AllocNode:Sid=x:1\n", "Partition"), Some("gpu"));
    }

    #[test]
    fn only_a_missing_answer_leaves_open_what_was_done() {
        assert!(is_silence("sbatch failed: Batch job submission failed: Socket timed out on send/recv operation"));
        assert!(is_silence("sbatch failed: Unable to contact slurm controller (connect failure)"));
        assert!(!is_silence("sbatch failed: Batch job submission failed: Invalid account or account/partition"));
        assert!(!is_silence("sbatch failed: Job violates accounting/QOS policy (job submit limit, user's size)"));
    }

    #[test]
    fn accounts_give_ranges_of_elements_and_tell_how_tasks_ended() {
        let jobs = ["7".to_owned()];
        let mut known = rows("7_0|RUNNING|n1|None\n7_9|FAILED|n1|None\n", &jobs);
        let accounts = "7_13|FAILED|n1|None|0:9\n7_[2-4,6-9:2%3]|CANCELLED by 0|None assigned|None|0:0\n7_0|FAILED|n2|None|1:0\n\
                        7_9|FAILED|n1|None|0:125\n7_10|RUNNING|n1|None|0:0\n7_11|FAILED|n1|None|1:0\n";
        Slurm.add_ended(&mut known, rows(accounts, &jobs));
        let states: Vec<(&str, &str)> = known.iter().map(|(id, seen)| (id.as_str(), seen.state.as_str())).collect();
        let expected = [
            ("7_0", "RUNNING"),
            ("7_11", "FAILED"),
            ("7_13", "OUT_OF_MEMORY"),
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
