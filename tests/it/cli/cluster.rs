//! `runner submit`, `status` and `collect`, as a user types them. Shell scripts emulate Slurm: every task of a job
//! array runs before `sbatch` returns. `tests/slurm` uses a real Slurm.

mod collecting;
mod snapshots;
mod versions;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::programs::write_program;

const MANIFEST: &str = include_str!("../../slurm/project/experiments/scale.toml");
const KERNEL: &str = include_str!("../../slurm/project/kernels/scale.cu");
/// A path that a shell would split, and partly execute.
const HOSTILE: &str = "experiments/it's a \"$(touch x)`touch x`;touch x.toml";

/// Records its arguments, runs the script for every array index except the one in `broken`, and prints the job id.
const SBATCH: &str = r#"#!/bin/bash
here=$(dirname "$0")
printf '%s\0' "$@" >>"$here/sbatch.args"
id=$(($(cat "$here/id" 2>/dev/null || echo 0) + 1)) && echo "$id" >"$here/id"
elements=
while [[ "$1" = --* ]]; do
    case "$1" in
        --array=*) elements=${1#--array=} && elements=${elements%\%*} ;;
        --chdir=*) cd "${1#--chdir=}" ;;
    esac
    shift
done
if [ -n "$elements" ]; then
    for element in $(seq "${elements%-*}" "${elements#*-}"); do
        [ "$element" = "$(cat "$here/broken" 2>/dev/null)" ] ||
            SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=$element bash "$@" >>"$here/out" 2>&1
    done
else
    SLURM_JOB_ID=$id bash "$@" >>"$here/out" 2>&1
fi
echo "$id"
"#;
/// Accepts job arrays but never starts them.
const ACCEPTS: &str = r#"#!/bin/bash
id=$(($(cat "$0.id" 2>/dev/null || echo 0) + 1)) && echo "$id" | tee "$0.id"
"#;
const SCONTROL: &str = r#"#!/bin/bash
echo "$*" >>"$(dirname "$0")/scontrol.args"
[ "$1" != show ] || echo "MaxArraySize            = 3"
"#;
const SQUEUE: &str = r#"#!/bin/bash
here=$(dirname "$0")
[ ! -e "$here/squeue.fails" ] || { echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
cat "$here/squeue.says" 2>/dev/null || true
"#;
/// Makes the controller forget every task.
const SCANCEL: &str = r#"#!/bin/bash
echo "$*" >>"$(dirname "$0")/scancel.args"
rm "$(dirname "$0")/squeue.says"
"#;
/// Does not support `--array`, like `sacct` of Slurm 22.05.
const SACCT: &str = r#"#!/bin/bash
here=$(dirname "$0")
for word; do [ "$word" != --array ] || { echo "sacct: unrecognized option '--array'" >&2; exit 1; }; done
[ ! -e "$here/sacct.fails" ] || { echo "sacct: error: slurmdbd: Connection refused" >&2; exit 1; }
[ -e "$here/sacct.says" ] || { echo "Slurm accounting storage is disabled" >&2; exit 1; }
cat "$here/sacct.says"
"#;

fn project(manifest: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [(manifest, MANIFEST), ("kernels/scale.cu", KERNEL)] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let programs =
        [("sbatch", SBATCH), ("scontrol", SCONTROL), ("scancel", SCANCEL), ("squeue", SQUEUE), ("sacct", SACCT)];
    for (name, text) in programs {
        let path = dir.path().join("slurm").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_program(&path, text);
    }
    dir
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let path = format!("{}:{}", dir.join("slurm").display(), std::env::var("PATH").unwrap());
    command.current_dir(dir).env("PATH", path).env("XDG_CONFIG_HOME", dir.join("config"));
    command.env("XDG_STATE_HOME", dir.join("state"));
    command.args(["--color", "never"]).args(arguments);
    command
}

#[track_caller]
fn runner(dir: &Path, arguments: &[&str], code: i32) -> String {
    let output = command(dir, arguments).output().unwrap();
    let all = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{all}");
    all
}

/// Submits eight groups, one per task.
fn submit(dir: &Path, manifest: &str, more: &[&str], code: i32) -> String {
    let words =
        ["submit", manifest, "--backend", "sim", "--set", "n=256,512", "--min-task-time", "0s", "--name", "job"];
    runner(dir, &[&words[..], more].concat(), code)
}

const JOB: &str = "target/jobs/job";

/// Deletes the stored replies of the scheduler. They are reused for a minute, and the tests do not wait that long.
fn forget(dir: &Path) {
    let views = fs::read_dir(dir.join(JOB)).unwrap().map(|entry| entry.unwrap().path());
    let views = views.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("scheduler-"));
    views.for_each(|view| fs::remove_file(view).unwrap());
}

/// Backdates everything in a job's folder by a day.
fn age(dir: &Path) {
    let now = std::time::SystemTime::now();
    let yesterday = humantime::format_rfc3339_seconds(now - Duration::from_hours(24)).to_string();
    for entry in fs::read_dir(dir.join(JOB)).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("submission-") {
            let text = fs::read_to_string(&entry).unwrap();
            let mut submission: serde_json::Value = serde_json::from_str(&text).unwrap();
            submission["submitted"] = yesterday.clone().into();
            submission.as_object_mut().unwrap().remove("sum");
            fs::write(&entry, submission.to_string()).unwrap();
        } else if name.starts_with("scheduler-") {
            let text = fs::read_to_string(&entry).unwrap();
            let mut view: serde_json::Value = serde_json::from_str(&text).unwrap();
            let earlier = |at: &mut serde_json::Value| *at = (at.as_u64().unwrap().saturating_sub(24 * 3600)).into();
            for key in ["asked", "answered"] {
                earlier(&mut view[key]);
            }
            for task in view["tasks"].as_object_mut().unwrap().values_mut() {
                earlier(&mut task["at"]);
            }
            view.as_object_mut().unwrap().remove("sum");
            fs::write(&entry, view.to_string()).unwrap();
        }
    }
}

#[test]
fn the_shards_of_a_search_are_tasks_and_its_finalists_are_measured_after_them() {
    let dir = project(HOSTILE);
    // Eight configurations: four block sizes, two variants.
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.path().join(HOSTILE), searched).unwrap();
    let words = ["submit", HOSTILE, "--tune", "3", "--backend", "sim", "--set", "n=256", "--gpus", "1"];
    let options = ["--out", "out", "--", "--budget", "100%", "--finalists", "2"];
    let said = runner(dir.path(), &[&words[..], &options].concat(), 0);
    assert!(said.contains("array 1: 3 tasks\narray 2: 1 task\nrunner status target/jobs/tune-scale\n"), "{said}");
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    let arguments: Vec<&str> = arguments.split('\0').collect();
    for word in ["--array=0-2", "--array=0-0", "--dependency=afterany:1"] {
        assert!(arguments.contains(&word), "{word}: {arguments:?}");
    }
    // Each shard has evaluated its share, and no configuration was evaluated twice.
    let lines = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap().lines().skip(1).count();
    let shards = ["1-of-3", "2-of-3", "3-of-3"].map(|shard| lines(&format!("out/shards/{shard}/search.jsonl")));
    assert_eq!(shards.iter().sum::<usize>(), 8, "{shards:?}");
    assert_eq!(lines("out/search.jsonl"), 8);
    // The finalists and the baseline.
    let rows = fs::read_to_string(dir.path().join("out/results.csv")).unwrap().lines().skip(1).count();
    assert!((2..=3).contains(&rows), "{rows}");
    assert!(!dir.path().join("x").exists(), "a path was a command");
    for (options, expected) in [
        (&["--", "--bugdet", "3"][..], "error: unexpected argument '--bugdet' found"),
        (&["--", "--shard", "1/2"], "--shard and --simulate cannot be used with `submit --tune`"),
        (
            &["--filter", "variant=plain"],
            "tune-scale already contains a job with different options (there `--out=out --budget 100% --finalists 2`, here `--filter=variant=plain`)",
        ),
    ] {
        let said = runner(dir.path(), &[&words[..], options].concat(), 2);
        assert!(said.contains(expected) && !said.contains("error: error"), "{said}");
    }
}

#[test]
fn a_search_has_the_status_of_its_tasks_and_is_waited_for() {
    let dir = project("experiments/scale.toml");
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.path().join("experiments/scale.toml"), searched).unwrap();
    let words =
        ["submit", "experiments/scale.toml", "--tune", "2", "--backend", "sim", "--set", "n=256", "--out", "out"];
    let sent = |options: &[&str], code| {
        runner(dir.path(), &[&words[..], &["--name", "job"], options, &["--", "--budget", "100%"]].concat(), code)
    };
    // The second shard is queued. The emulated scheduler ignores dependencies, so the task after the shards runs
    // anyway.
    let slurm = |file: &str| dir.path().join("slurm").join(file);
    fs::write(slurm("broken"), "1").unwrap();
    fs::write(slurm("squeue.says"), "1_1|PENDING||Resources\n").unwrap();
    sent(&[], 0);
    let status = || runner(dir.path(), &["status", JOB], 0);
    assert!(status().contains("job job: 3 tasks: 2 done, 1 queued"), "{}", status());
    assert!(status().contains("queued         scale 2/2 (task 1_1): Resources"), "{}", status());
    // The shard is lost. Because something is missing, the exit code is 1.
    age(dir.path());
    fs::write(slurm("squeue.says"), "").unwrap();
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("lost           scale 2/2 (task 1_1)") && said.contains("submit again"), "{said}");
    let said = runner(dir.path(), &["collect", JOB], 1);
    assert!(said.contains("3 tasks: 2 done, 1 lost"), "{said}");
    // When submitted again, the lost shard continues, then the finalists are measured. `--wait` waits for the search.
    fs::remove_file(slurm("broken")).unwrap();
    let said = sent(&["--wait"], 0);
    assert!(said.contains("array 3: 1 task\narray 4: 1 task"), "{said}");
    assert!(said.contains("job job: 1 of 2 shards, and then the finalists"), "{said}");
    assert!(said.contains("job job: 3 tasks: 3 done"), "{said}");
    let lines = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap().lines().skip(1).count();
    assert_eq!(lines("out/search.jsonl"), 8);
}

#[test]
fn a_search_that_waits_or_has_ended_is_not_sent_twice() {
    let dir = project("experiments/scale.toml");
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.path().join("experiments/scale.toml"), searched).unwrap();
    let slurm = |file: &str| dir.path().join("slurm").join(file);
    let words =
        ["submit", "experiments/scale.toml", "--tune", "2", "--backend", "sim", "--set", "n=256", "--out", "out"];
    let sent = || runner(dir.path(), &[&words[..], &["--name", "job", "--", "--budget", "100%"]].concat(), 0);
    write_program(&slurm("sbatch"), ACCEPTS);
    assert!(sent().contains("array 1: 2 tasks\narray 2: 1 task"));
    fs::write(slurm("squeue.says"), "1_0|RUNNING|n1|\n1_1|PENDING||Priority\n2_0|PENDING||Dependency\n").unwrap();
    assert!(sent().contains("job job: no task is missing"));
    // Another process is using the folder and does the work: the node is not at fault, and the task is not requeued.
    fs::write(slurm("squeue.says"), "").unwrap();
    fs::create_dir_all(dir.path().join("out/shards/1-of-2")).unwrap();
    let lock = runner_results::journal::FolderLock::take(&dir.path().join("out/shards/1-of-2")).unwrap();
    let mut task = Command::new("bash");
    task.current_dir(dir.path()).args([&format!("{JOB}/task-1.sh"), "1", "0"]);
    task.env("SLURM_ARRAY_JOB_ID", "1").env("SLURM_ARRAY_TASK_ID", "0").env("XDG_STATE_HOME", dir.path().join("state"));
    let output = task.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let log = fs::read_to_string(dir.path().join(JOB).join("tasks/1-0.jsonl")).unwrap();
    assert!(log.contains("\"stopped\"") && log.contains("is in use by") && !log.contains("requeued"), "{log}");
    drop(lock);
}

/// Flips one bit in the middle of a line of a file.
fn flip(path: &Path, line: usize) {
    let mut bytes = fs::read(path).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').collect();
    let begin = if line == 0 { 0 } else { ends[line - 1] };
    bytes[usize::midpoint(begin, ends[line])] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_shard_is_named_sent_again_and_then_collected() {
    let dir = project("experiments/scale.toml");
    let alone = ["run", "experiments/scale.toml", "--backend", "sim", "--set", "n=256,512", "--out", "alone"];
    runner(dir.path(), &alone, 0);
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    let journal = |shard: u32| dir.path().join(format!("{JOB}/shards/scale/{shard}-of-8/attempt-0001/journal.jsonl"));
    let last = fs::read_to_string(journal(5)).unwrap().lines().count() - 1;
    // The start of the run, a result, and the end.
    for (shard, line) in [(2, 0), (3, last - 3), (5, last)] {
        flip(&journal(shard), line);
    }
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 5 done, 3 damaged"), "{said}");
    assert!(said.contains("damaged        scale 2/8") && said.contains("journal.jsonl:1: "), "{said}");
    let said = runner(dir.path(), &["collect", JOB, "--out", "part"], 1);
    assert!(said.contains("2-of-8/attempt-0001/journal.jsonl:1 is damaged") && said.contains("was skipped"), "{said}");
    let rows = |folder: &str| fs::read_to_string(dir.path().join(folder).join("results.csv")).unwrap().lines().count();
    // Each shard has one group of two cases; the first line is the header. The cases of shard 3 are listed as not run.
    assert_eq!((rows("alone"), rows("part")), (1 + 16, 1 + 14), "{said}");
    assert!(said.contains("scale: 12 of 16 planned cases passed; 2 not run"), "{said}");
    let said = submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(said.contains("3 shards of 8 in 3 tasks"), "{said}");
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 shards: 8 done"));
    runner(dir.path(), &["collect", JOB, "--out", "whole"], 0);
    let read = |folder: &str| fs::read(dir.path().join(folder).join("records.jsonl")).unwrap();
    assert!(read("alone") == read("whole"), "the records differ");
    // The same with a rerun that names the shard.
    flip(&journal(7), 0);
    let said = submit(dir.path(), "experiments/scale.toml", &["--rerun", "scale 7/8"], 0);
    assert!(said.contains("1 shard of 8 in 1 task"), "{said}");
    runner(dir.path(), &["collect", JOB, "--out", "again"], 0);
    assert!(read("alone") == read("again"), "the records differ");
}

#[test]
fn a_journal_or_a_submission_in_the_place_of_another_is_no_result_of_it() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    runner(dir.path(), &["collect", JOB, "--out", "expected"], 0);
    let journal = |shard: u32| dir.path().join(format!("{JOB}/shards/scale/{shard}-of-8/attempt-0001/journal.jsonl"));
    fs::copy(journal(1), journal(8)).unwrap();
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 7 done, 1 damaged"), "{said}");
    assert!(said.contains("8-of-8/attempt-0001/journal.jsonl: these are results of shard 1/8 of `scale`"), "{said}");
    let said = runner(dir.path(), &["collect", JOB, "--out", "part"], 1);
    assert!(said.contains("scale: 14 of 16 planned cases passed"), "{said}");
    // A link to the shard's own journal is not followed.
    fs::rename(journal(7), dir.path().join("kept")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("kept"), journal(7)).unwrap();
    assert!(runner(dir.path(), &["status", JOB], 1).contains("8 shards: 6 done, 2 damaged"));
    assert!(submit(dir.path(), "experiments/scale.toml", &[], 0).contains("2 shards of 8 in 2 tasks"));
    runner(dir.path(), &["collect", JOB, "--out", "whole"], 0);
    let read = |folder: &str| fs::read(dir.path().join(folder).join("records.jsonl")).unwrap();
    assert!(read("expected") == read("whole"), "the records differ");
    let submission = |number: u32| dir.path().join(format!("{JOB}/submission-{number}.json"));
    fs::copy(submission(1), submission(2)).unwrap();
    let said = runner(dir.path(), &["status", JOB], 3);
    assert!(said.contains("submission-2.json") && said.contains("the file holds submission 1"), "{said}");
}

#[test]
fn a_flipped_bit_in_any_file_of_a_job_is_noticed_or_changes_nothing() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    runner(dir.path(), &["collect", JOB, "--out", "expected"], 0);
    let read = |folder: &str| fs::read_to_string(dir.path().join(folder).join("records.jsonl")).unwrap_or_default();
    let mut left = vec![dir.path().join(JOB)];
    let mut files = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if fs::metadata(&path).unwrap().len() > 0 {
            files.push(path);
        }
    }
    assert!(files.len() > 30, "{files:?}");
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        let write = |bytes: &[u8]| {
            // The file may be a hard link; the other links must not change.
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        };
        write(&damaged);
        let output = command(dir.path(), &["collect", JOB, "--out", "out"]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let is_noticed = !output.status.success() || said.contains("warning: ");
        assert!(is_noticed || read("out") == read("expected"), "{}: {said}", path.display());
        write(&bytes);
    }
    // A task refuses a damaged file, and the next submission repairs it.
    let folder = dir.path().join(JOB);
    let file_in = |folder: &Path| {
        let mut path = folder.to_owned();
        while path.is_dir() {
            path = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
        }
        path
    };
    for part in ["groups", "contents", "snapshots"] {
        let path = file_in(&folder.join(part));
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        submit(dir.path(), "experiments/scale.toml", &["--rerun", "all"], 0);
        let said = runner(dir.path(), &["status", JOB], 0);
        assert!(said.contains("8 shards: 8 done"), "{part}: {said}");
    }
    runner(dir.path(), &["collect", JOB, "--out", "out"], 0);
    assert_eq!(read("out"), read("expected"));
}

/// Kills the workers of every task, as the system does when memory runs out, but not the task itself.
const SBATCH_WITHOUT_MEMORY: &str = r#"#!/bin/bash
here=$(dirname "$0")
id=$(($(cat "$here/id" 2>/dev/null || echo 0) + 1)) && echo "$id" >"$here/id"
while [[ "$1" = --* ]]; do shift; done
echo "$id"
[[ "$1" = *task-* ]] || exit 0
SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=0 bash "$@" >>"$here/out" 2>&1 &
task=$!
while kill -0 $task 2>/dev/null; do
    for parent in $task $(pgrep -P $task); do
        kill -9 $(pgrep -P $parent -f __worker) 2>/dev/null
    done
    sleep 0.01
done
"#;

#[test]
fn tasks_whose_workers_are_killed_are_sent_again_with_more_memory() {
    let dir = project("experiments/scale.toml");
    fs::write(dir.path().join("cluster.toml"), "memory = \"16M\"\nmemory_factor = 4.0\n").unwrap();
    write_program(&dir.path().join("slurm/sbatch"), SBATCH_WITHOUT_MEMORY);
    // No worker ends before it is killed.
    let slow = KERNEL.replace("output[i] = 2.0f * input[i]", "for (int k = 0; k < 100000000; ++k) output[i] += 1.0f");
    assert_ne!(slow, KERNEL);
    fs::write(dir.path().join("kernels/scale.cu"), slow).unwrap();
    let words = ["--out", "out"];
    submit(dir.path(), "experiments/scale.toml", &words, 0);
    fs::write(
        dir.path().join("slurm/squeue.says"),
        "1_[0-2]|COMPLETED|n1|None\n2_[0-2]|COMPLETED|n1|None\n3_[0-1]|COMPLETED|n1|None\n",
    )
    .unwrap();
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("its worker was killed, which the system does when memory runs out"), "{said}");
    assert!(!dir.path().join("out").exists(), "no report of crashed cases");
    write_program(&dir.path().join("slurm/sbatch"), SBATCH);
    fs::write(dir.path().join("kernels/scale.cu"), KERNEL).unwrap();
    let said = submit(dir.path(), "experiments/scale.toml", &words, 0);
    assert!(said.contains("8 shards in 8 tasks"), "{said}");
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    assert!(arguments.split('\0').any(|word| word == "--mem=64M"), "{arguments}");
    assert!(runner(dir.path(), &["collect", JOB, "--out", "out"], 0).contains("16 of 16 cases passed"));
}

#[test]
fn it_is_said_that_it_is_not_known_whether_the_scheduler_has_a_task() {
    let dir = project("experiments/scale.toml");
    // Kills `runner` after it has recorded the submission and before the scheduler receives it.
    write_program(&dir.path().join("slurm/sbatch"), "#!/bin/sh\nkill -9 $PPID\n");
    let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--set", "n=256,512", "--name", "job"];
    assert_eq!(command(dir.path(), &words).output().unwrap().status.code(), None);
    write_program(&dir.path().join("slurm/sbatch"), SBATCH);
    let said = runner(dir.path(), &words, 1);
    assert!(said.contains("the scheduler has not confirmed the last tasks yet; run the command again after "));
    assert!(said.contains(" UTC"), "{said}");
    assert!(runner(dir.path(), &["status", JOB], 0).contains("it is unknown whether the scheduler has accepted it"));
    // Backdates the submission by a minute.
    let path = dir.path().join(JOB).join("submission-1.json");
    let mut submission: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let sent = submission["arrays"][0]["sent"].as_u64().unwrap();
    submission["arrays"][0]["sent"] = (sent - 61).into();
    submission.as_object_mut().unwrap().remove("sum");
    fs::write(&path, submission.to_string()).unwrap();
    let said = runner(dir.path(), &words, 0);
    assert!(said.contains("1 task") && !said.contains("not confirmed"), "{said}");
    // Of three arrays, the first is unconfirmed and the others are missing.
    write_program(&dir.path().join("slurm/sbatch"), "#!/bin/sh\nkill -9 $PPID\n");
    let words = [&words[..6], &["--min-task-time", "0s", "--name", "more"]].concat();
    assert_eq!(command(dir.path(), &words).output().unwrap().status.code(), None);
    write_program(&dir.path().join("slurm/sbatch"), SBATCH);
    let said = runner(dir.path(), &words, 1);
    assert!(said.contains("5 shards of 8 in 5 tasks"), "{said}");
    assert!(said.contains("the scheduler has not confirmed the last tasks yet; run the command again after "));
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_sent() {
    let dir = project("experiments/scale.toml");
    for (options, expected) in [
        (&["--name", ""][..], "--name `` cannot name the job's folder"),
        (&["--name", "."], "--name `.` cannot name the job's folder"),
        (&["--time", "1min"], "time is 60 s, but a task is ended 2 min before its limit (`warning`)"),
        (&["--time", "2min"], "time is 2 min, but a task is ended 2 min before its limit (`warning`)"),
        (&["--extra", "x"], "write one word that begins with a hyphen, as in -x or --name=value"),
        (&["--rerun", "all"], "has not been submitted yet: submit it without --rerun"),
        (&["--after", "none"], "none has no job.json"),
        (&["--tune", "2", "--after", "none"], "none has no job.json"),
        (&["--tune", "2", "--", "--shard", "1/2"], "--shard and --simulate cannot be used"),
    ] {
        let words = ["submit", "experiments/scale.toml", "--backend", "sim"];
        let said = runner(dir.path(), &[&words[..], options].concat(), 2);
        assert!(said.contains(expected), "{said}");
    }
    assert!(!dir.path().join("target").exists());
    // PBS sends no warning, so a short time limit is allowed.
    let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--scheduler", "pbs", "--time", "1min"];
    assert!(runner(dir.path(), &words, 0).contains("qsub "));
}

#[test]
fn a_refused_submission_leaves_other_jobs_and_what_was_in_its_folder() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &["--scheduler", "kubernetes", "--dry-run"], 2);
    submit(dir.path(), "experiments/scale.toml", &["--scheduler", "hyperqueue"], 0);
    fs::create_dir(dir.path().join("target/jobs/mine")).unwrap();
    fs::write(dir.path().join("target/jobs/mine/notes"), "x").unwrap();
    for name in ["mine", "next"] {
        let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--name", name, "--after", JOB];
        let said = runner(dir.path(), &[&words[..], &["--scheduler", "hyperqueue"]].concat(), 2);
        assert!(said.contains("--after: hyperqueue has no dependencies between jobs"), "{said}");
    }
    assert!(dir.path().join("target/jobs/mine/notes").exists() && !dir.path().join("target/jobs/next").exists());
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 queued"));
}

#[test]
fn the_commands_of_another_scheduler_wait_for_a_job_and_are_printed_again() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &["--scheduler", "pbs", "--max-array", "5"], 0);
    let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--scheduler", "pbs", "--name", "next"];
    let said = runner(dir.path(), &[&words[..], &["--after", JOB]].concat(), 0);
    let waiting = "qsub $({ qselect -u \"$USER\" -N runner-job; } | paste -sd: | sed 's/^./-W depend=afterany:&/') -o ";
    assert!(said.contains(waiting), "{said}");
    let again = || runner(dir.path(), &["submit", "--again", JOB], 0);
    let printed = |said: &str| said.lines().filter(|line| line.starts_with("qsub ")).count();
    assert_eq!(printed(&again()), 2);
    for element in 0..5 {
        let mut script = Command::new("bash");
        script.arg(dir.path().join(JOB).join("task-1-0.sh")).env("PBS_ARRAY_INDEX", element.to_string());
        assert!(script.output().unwrap().status.success());
    }
    let said = again();
    assert!(printed(&said) == 1 && said.contains("task-1-5.sh"), "{said}");
}

#[test]
fn only_what_the_scheduler_answers_makes_a_task_lost() {
    let dir = project("experiments/scale.toml");
    let slurm = |file: &str| dir.path().join("slurm").join(file);
    write_program(&slurm("sbatch"), ACCEPTS);
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    // Eight tasks in arrays 1 to 3. They are queued when first seen, and gone a day later.
    let waits = "1_0|PENDING||Priority\n1_1|PENDING||Priority\n1_2|PENDING||Priority\n";
    fs::write(slurm("squeue.says"), waits).unwrap();
    forget(dir.path());
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 shards: 8 queued"));
    age(dir.path());
    fs::write(slurm("squeue.says"), "").unwrap();
    fs::write(slurm("squeue.fails"), "").unwrap();
    let said = submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(said.contains("Unable to contact slurm controller") && said.contains("no shard is missing"), "{said}");
    fs::remove_file(slurm("squeue.fails")).unwrap();
    fs::write(slurm("sacct.fails"), "").unwrap();
    let said = submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(said.contains("slurmdbd: Connection refused") && said.contains("no shard is missing"), "{said}");
    fs::remove_file(slurm("sacct.fails")).unwrap();
    fs::write(slurm("sacct.says"), "1_[0-1%2]|CANCELLED by 0|None assigned|None|0:0\n1_2|FAILED|n1|None|0:125\n")
        .unwrap();
    age(dir.path());
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 3 failed, 5 lost"), "{said}");
    assert!(said.contains("(task 1_1): cancelled") && said.contains("(task 1_2): out of host memory on n1"), "{said}");
    assert!(submit(dir.path(), "experiments/scale.toml", &[], 0).contains("8 shards in 8 tasks"));
}

#[test]
fn a_submitted_job_ends_in_the_report_of_one_run_whatever_its_path_is_called() {
    let dir = project(HOSTILE);
    let alone = ["run", HOSTILE, "--backend", "sim", "--set", "n=256,512", "--out", "alone"];
    runner(dir.path(), &alone, 0);
    let said = submit(dir.path(), HOSTILE, &["--out", "reports/it's $(touch x)"], 0);
    // The site allows three tasks per array.
    assert!(said.contains("8 shards in 8 tasks") && said.matches("array ").count() == 3, "{said}");
    let out = fs::read_to_string(dir.path().join("slurm/out")).unwrap();
    assert!(out.contains("8 shards: 8 done"), "{out}");
    for file in ["report.md", "records.jsonl", "results.csv", "environment.json"] {
        let read = |folder: &str| fs::read(dir.path().join(folder).join(file)).unwrap();
        assert!(read("alone") == read("reports/it's $(touch x)"), "{file} differs");
    }
    assert!(!dir.path().join("x").exists(), "a part of the path was run");
}

#[test]
fn the_log_names_the_commands_of_the_scheduler() {
    let dir = project("experiments/scale.toml");
    let log = submit(dir.path(), "experiments/scale.toml", &["-v"], 0);
    for expected in [r#"begin ask the scheduler program="scontrol" arguments=["show", "config"]"#, "program=\"sbatch\""]
    {
        assert!(log.contains(expected), "{expected}\n{log}");
    }
    let ended = |line: &&str| line.contains(" end ask the scheduler program=\"sbatch\" ") && line.contains(" after ");
    assert!(log.lines().any(|line| ended(&line)), "{log}");
}

#[test]
fn submitting_again_sends_only_what_is_missing() {
    let dir = project("experiments/scale.toml");
    fs::write(dir.path().join("slurm/broken"), "1").unwrap();
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    let out = fs::read_to_string(dir.path().join("slurm/out")).unwrap();
    assert!(out.contains("warning: scale: no journal of 3 shards"), "{out}");
    fs::write(
        dir.path().join("slurm/squeue.says"),
        "1_1|NODE_FAIL|n7|None\n2_1|TIMEOUT|n1|TimeLimit\n3_1|PENDING||Priority\n",
    )
    .unwrap();
    forget(dir.path());
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 5 done, 1 queued, 2 failed"), "{said}");
    assert!(said.contains("its node failed on n7") && said.contains("reached its time limit on n1"), "{said}");
    assert!(said.contains("(task 3_1): Priority"), "{said}");

    fs::remove_file(dir.path().join("slurm/broken")).unwrap();
    let said = submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(said.contains("2 shards of 8 in 2 tasks"), "what is queued is not sent again: {said}");
    let said = runner(dir.path(), &["status", JOB], 0);
    assert!(said.contains("8 shards: 7 done, 1 queued"), "{said}");
    assert!(submit(dir.path(), "experiments/scale.toml", &[], 0).contains("no shard is missing"));
    let refused = submit(dir.path(), "experiments/scale.toml", &["--energy"], 2);
    assert!(
        refused.contains(
            "already contains a job with different options (there none, here `--energy`): choose another --name"
        ),
        "{refused}"
    );
    // Both names map to the same folder.
    let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--set", "n=256,512", "--min-task-time", "0s"];
    let named = |name: &str, code| runner(dir.path(), &[&words[..], &["--name", name]].concat(), code);
    let refused = named("job!", 2);
    assert!(
        refused.contains("already contains a job with a different name (`job`): choose another --name"),
        "{refused}"
    );
    // The folder's name preserves case.
    assert!(named("Wall A", 0).contains("runner status target/jobs/Wall-A\n"));
}

#[test]
fn two_parts_of_an_experiment_have_a_report_each_also_if_they_are_collected_at_the_same_time() {
    let dir = project("experiments/scale.toml");
    for (name, sizes) in [("low", "n=256"), ("high", "n=512")] {
        let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--set", sizes, "--name", name];
        runner(dir.path(), &words, 0);
    }
    let report = |name: &str| dir.path().join(format!("target/reports/scale/simulated-h100-{name}"));
    for (name, size) in [("low", "256"), ("high", "512")] {
        let rows = fs::read_to_string(report(name).join("results.csv")).unwrap();
        let sizes: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').nth(5)).collect();
        assert!(sizes.len() == 8 && sizes.iter().all(|n| *n == size), "{rows}");
    }
    // Another process writes to the folder, and ends soon after.
    let lock = runner_results::journal::FolderLock::take(&report("low")).unwrap();
    let collecting = command(dir.path(), &["collect", "target/jobs/low"]).stdout(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    drop(lock);
    assert_eq!(collecting.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_user_who_may_not_write_to_a_job_looks_at_it_and_collects() {
    let dir = project("experiments/scale.toml");
    write_program(&dir.path().join("slurm/squeue"), &SQUEUE.replace("here=", "echo >>\"$0.calls\"\nhere="));
    fs::write(dir.path().join("slurm/broken"), "1").unwrap();
    submit(dir.path(), "experiments/scale.toml", &["--out", "reports/scale"], 0);
    fs::write(dir.path().join("slurm/squeue.says"), "1_1|RUNNING|n1|None\n2_1|FAILED|n1|None\n").unwrap();
    // Folders stand in for files that this user cannot write: a test that runs as root could write to such files.
    forget(dir.path());
    let folder = dir.path().join(JOB);
    let view = format!("scheduler-{}.json", rustix::process::getuid().as_raw());
    fs::remove_file(folder.join("collected")).unwrap();
    for file in [view.as_str(), "collected"] {
        fs::create_dir(folder.join(file)).unwrap();
        fs::write(folder.join(file).join("x"), "").unwrap();
    }
    let said = runner(dir.path(), &["collect", JOB, "--out", "mine"], 1);
    assert!(said.contains("warning: could not mark the job as collected"), "{said}");
    assert!(said.contains("5 done") && dir.path().join("mine/report.md").exists(), "{said}");
    let calls = || fs::read_to_string(dir.path().join("slurm/squeue.calls")).unwrap().lines().count();
    let before = calls();
    let mut watch = command(dir.path(), &["status", JOB, "--watch"]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Two queries for the status, of which only the first asks the scheduler.
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.filter(|line| line.starts_with("job job: 8 shards")).take(2).count(), 2);
    kill_process(Pid::from_child(&watch), Signal::KILL).unwrap();
    let warned = String::from_utf8(watch.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!((calls() - before, warned.matches("could not save").count()), (1, 1), "{warned}");
}

#[test]
fn a_shard_whose_code_has_changed_is_sent_again() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(submit(dir.path(), "experiments/scale.toml", &[], 0).contains("no shard is missing"));
    let edited = "edited since it was submitted: kernels/scale.cu; ";
    assert!(!runner(dir.path(), &["status", JOB], 0).contains("edited"));
    let kernel = dir.path().join("kernels/scale.cu");
    fs::write(&kernel, KERNEL.replace("2.0f * input[i]", "input[i] * 2.0f")).unwrap();
    let said = runner(dir.path(), &["status", JOB], 0);
    assert!(said.contains("8 shards: 8 done") && said.contains(edited), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(runner(dir.path(), &["status", JOB, "--json"], 0).lines().next().unwrap()).unwrap();
    assert_eq!(json["edited"], serde_json::json!(["kernels/scale.cu"]));
    let said = submit(dir.path(), "experiments/scale.toml", &["--dry-run"], 0);
    assert!(said.contains("8 shards in 8 tasks") && said.contains("#SBATCH"), "{said}");
    assert_eq!(
        fs::read_dir(dir.path().join(JOB))
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("submission-") })
            .count(),
        1
    );
    let said = submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(said.contains("8 shards in 8 tasks"), "{said}");
    assert!(!runner(dir.path(), &["status", JOB], 0).contains("edited"));
    runner(
        dir.path(),
        &["run", "experiments/scale.toml", "--backend", "sim", "--set", "n=256,512", "--out", "alone"],
        0,
    );
    let report = "target/reports/scale/simulated-h100";
    runner(dir.path(), &["merge", &format!("{JOB}/shards"), "--out", report], 0);
    let read = |folder: &str| fs::read(dir.path().join(folder).join("records.jsonl")).unwrap();
    assert!(read("alone") == read(report), "an outdated result is in the report");
}

#[test]
fn tasks_run_what_was_submitted_and_never_beside_a_later_version() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    runner(dir.path(), &["run", manifest, "--backend", "sim", "--set", "n=256,512", "--out", "alone"], 0);
    fs::write(dir.path().join("slurm/sbatch"), ACCEPTS).unwrap();
    submit(dir.path(), manifest, &[], 0);
    fs::write(dir.path().join("kernels/scale.cu"), KERNEL.replace("2.0f", "3.0f")).unwrap();
    for options in [&[][..], &["--dry-run"]] {
        let refused = submit(dir.path(), manifest, options, 2);
        assert!(refused.contains("have changed since 8 shards still queued or running were submitted"), "{refused}");
    }
    let task = |number: &str, code: i32| runner(dir.path(), &["task", JOB, "1", number], code);
    for number in 0..8 {
        task(&number.to_string(), 0);
    }
    let report = "target/reports/scale/simulated-h100";
    runner(dir.path(), &["merge", &format!("{JOB}/shards"), "--out", report], 0);
    let read = |folder: &str| fs::read(dir.path().join(folder).join("records.jsonl")).unwrap();
    assert!(read("alone") == read(report), "a task ran the edited source");
    // Now the copy in the job's folder is changed too.
    fs::remove_dir_all(dir.path().join(JOB).join("shards")).unwrap();
    let submission = fs::read_to_string(dir.path().join(JOB).join("submission-1.json")).unwrap();
    let submission: serde_json::Value = serde_json::from_str(&submission).unwrap();
    let copy = dir.path().join(JOB).join("snapshots").join(&submission["snapshot"].as_str().unwrap()[..16]);
    let here = dir.path().canonicalize().unwrap();
    let copy = copy.join("files").join(here.strip_prefix("/").unwrap()).join("kernels/scale.cu");
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, KERNEL.replace("2.0f", "3.0f")).unwrap();
    assert!(task("0", 2).contains("scale.cu has changed since it was submitted"));
}

#[test]
fn status_is_legible_at_ten_tasks_and_at_a_thousand() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    fs::write(dir.path().join("slurm/sbatch"), ACCEPTS).unwrap();
    fs::write(dir.path().join("cluster.toml"), "max_array = 2000").unwrap();
    let sizes: Vec<String> = (256..506).map(|n| n.to_string()).collect();
    let set = format!("n={}", sizes.join(","));
    let words = ["submit", manifest, "--backend", "sim", "--set", &set, "--min-task-time", "0s", "--name", "job"];
    runner(dir.path(), &words, 0);
    let slurm = |file: &str| dir.path().join("slurm").join(file);
    let mut rows: Vec<String> = (0..30).map(|task| format!("1_{task}|FAILED|n1|None\n")).collect();
    rows.extend((30..40).map(|task| format!("1_{task}|RUNNING|n{}|None\n", task % 2)));
    rows.push("1_[40-998]|PENDING||Priority\n1_999|PENDING||JobHeldUser\n2|PENDING||Dependency\n".to_owned());
    fs::write(slurm("squeue.says"), rows.concat()).unwrap();
    fs::create_dir_all(dir.path().join(JOB).join("logs")).unwrap();
    fs::write(dir.path().join(JOB).join("logs/task-1_0.out"), "one\nCUDA error: \u{1b}[31mbad\n\n").unwrap();
    forget(dir.path());
    let said = runner(dir.path(), &["status", JOB], 1);
    for line in [
        "job job: 1000 shards: 10 running, 960 queued, 30 failed",
        "  0 of 2000 cases done; tasks: 10 running, 960 queued, 30 failed; ",
        "  job 2 collects the results: queued: Dependency",
        "  failed         scale 0001/1000 (task 1_0): exited with an error on n1",
        "                 target/jobs/job/logs/task-1_0.out: CUDA error: [31mbad",
        "  failed         and 10 more: exited with an error on n1",
        "(task 1_40), scale 0042/1000 (task 1_41), scale 0043/1000 (task 1_42) and 956 more: Priority",
        "  queued         scale 1000/1000 (task 1_999): JobHeldUser",
        " and 2 more: on n0",
    ] {
        let line = line.replace("0001/", "1/").replace("0042/", "42/").replace("0043/", "43/");
        assert!(said.contains(&line), "{line}\n{said}");
    }
    assert!(said.lines().count() < 40, "{said}");
    let json: serde_json::Value =
        serde_json::from_str(runner(dir.path(), &["status", JOB, "--json"], 1).lines().next().unwrap()).unwrap();
    assert_eq!(json["tasks"], serde_json::json!({ "failed": 30, "queued": 960, "running": 10 }));
    assert_eq!(json["waiting"], serde_json::json!({ "JobHeldUser": 1, "Priority": 959 }));
    assert_eq!(json["cases"], serde_json::json!({ "planned": 2000, "done": 0 }));
    assert_eq!(json["missing"][0]["last_line"], "CUDA error: [31mbad");
    assert_eq!(json["collecting"]["state"], "queued");
}

#[test]
fn an_array_that_was_refused_is_sent_by_the_next_submit_and_a_job_collects_the_others() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let sbatch = dir.path().join("slurm/sbatch");
    // The second array exceeds a limit of the site.
    let refuses = ACCEPTS.replace("#!/bin/bash", "#!/bin/bash\necho \"$*\" >>\"$0.args\"")
        + "[ \"$id\" != 2 ] || { echo 'sbatch: error: Job violates accounting/QOS policy' >&2; exit 1; }\n";
    fs::write(&sbatch, refuses.replace("| tee \"$0.id\"", ">\"$0.id\"") + "echo \"$id\"\n").unwrap();
    let said = submit(dir.path(), manifest, &[], 3);
    assert!(said.contains("array 1: 3 tasks") && said.contains("job 3: collects the results"), "{said}");
    assert!(said.contains("accounting/QOS policy; 5 tasks not submitted: run the same command again"), "{said}");
    fs::write(dir.path().join("slurm/squeue.says"), "1_[0-2]|PENDING||Priority\n3|PENDING||Dependency\n").unwrap();
    forget(dir.path());
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 3 queued, 5 not submitted") && said.contains("QOS policy"), "{said}");
    let said = submit(dir.path(), manifest, &[], 0);
    assert!(said.contains("5 shards of 8 in 5 tasks") && said.contains("array 4: 3 tasks"), "{said}");
    // The new collecting job waits for all arrays and replaces the previous one.
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    assert!(arguments.lines().last().unwrap().contains("--dependency=afterany:1:4:5 "), "{arguments}");
    assert_eq!(fs::read_to_string(dir.path().join("slurm/scancel.args")).unwrap(), "--quiet 3\n");
}

#[test]
fn shards_that_ran_out_of_memory_get_more_of_it_each_time() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let records = ACCEPTS.replace("#!/bin/bash", "#!/bin/bash\necho \"$*\" >>\"$0.args\"");
    fs::write(dir.path().join("slurm/sbatch"), records).unwrap();
    fs::write(dir.path().join("cluster.toml"), "max_array = 9\nmemory = '3G'\nmemory_factor = 2.0").unwrap();
    let says = |rows: &str| fs::write(dir.path().join("slurm/squeue.says"), rows).unwrap();
    let arguments = || fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    submit(dir.path(), manifest, &[], 0);
    says("1_0|OUT_OF_MEMORY|n1|None\n1_1|FAILED|n1|None\n1_[2-7]|PENDING||Priority\n2|PENDING||Dependency\n");
    forget(dir.path());
    let status = runner(dir.path(), &["status", JOB], 1);
    assert!(status.contains("scale 1/8 (task 1_0): out of host memory on n1"), "{status}");
    let said = submit(dir.path(), manifest, &[], 0);
    assert!(said.contains("2 shards of 8 in 2 tasks") && said.contains("array 3: 1 task\narray 4: 1 task"), "{said}");
    says("1_[2-7]|PENDING||Priority\n3_0|OUT_OF_MEMORY|n1|None\n4_0|RUNNING|n1|None\n5|PENDING||Dependency\n");
    forget(dir.path());
    submit(dir.path(), manifest, &[], 0);
    let memory = arguments();
    let memory: Vec<Option<&str>> = memory
        .lines()
        .filter(|line| line.contains("--array="))
        .map(|line| line.split(' ').find_map(|word| word.strip_prefix("--mem=")))
        .collect();
    // The first array gets the memory that its script states, and so does the shard that failed for another reason.
    assert_eq!(memory, [None, Some("6G"), None, Some("12G")]);
}

#[test]
fn a_dry_run_prints_the_scripts_and_writes_nothing() {
    let dir = project("experiments/scale.toml");
    fs::write(dir.path().join("cluster.toml"), "partition = 'gpu'\nmodules = ['cuda/13']\nsetup = ['umask 077']")
        .unwrap();
    fs::create_dir_all(dir.path().join("config/runner")).unwrap();
    fs::write(dir.path().join("config/runner/cluster.toml"), "partition = 'mine'\naccount = 'project7'").unwrap();
    let said = submit(dir.path(), "experiments/scale.toml", &["--dry-run", "--qos", "high", "--throttle", "2"], 0);
    for line in [
        "#SBATCH --partition=gpu",
        "#SBATCH --account=project7",
        "#SBATCH --qos=high",
        "module load cuda/13",
        "umask 077",
    ] {
        assert!(said.lines().any(|l| l == line), "{line}: {said}");
    }
    let place = |line: &str| said.lines().position(|l| l == line);
    assert!(place("trap '' USR1") < place("module load cuda/13") && place("trap '' USR1").is_some(), "{said}");
    assert!(said.contains("'--array=0-2%2'") && said.contains("--dependency=afterany:"), "{said}");
    assert!(!dir.path().join("target").exists());

    let refused = submit(dir.path(), "experiments/scale.toml", &["--partition", "gpu\n#SBATCH --wrap=x"], 2);
    assert!(refused.contains("partition: \"gpu\\n#SBATCH --wrap=x\" has characters"), "{refused}");
    let unknown = runner(dir.path(), &["submit", "experiments/scale.toml", "--backend", "cuda"], 2);
    assert!(unknown.contains("--device-profile FILE"), "{unknown}");
}

#[test]
fn the_shell_of_a_projects_settings_needs_consent_until_it_changes() {
    let dir = project("experiments/scale.toml");
    let settings = |line: &str| fs::write(dir.path().join("cluster.toml"), format!("setup = ['{line}']")).unwrap();
    let options = ["--scheduler", "pbs"];
    settings("umask 077");
    let said = submit(dir.path(), "experiments/scale.toml", &options, 2);
    assert!(said.contains("cluster.toml runs host code") && said.contains("--allow-host-code"), "{said}");
    assert!(!dir.path().join("target").exists());
    submit(dir.path(), "experiments/scale.toml", &[&options[..], &["--allow-host-code"]].concat(), 0);
    submit(dir.path(), "experiments/scale.toml", &options, 0);
    settings("touch x");
    submit(dir.path(), "experiments/scale.toml", &options, 2);
}

#[test]
fn a_warned_task_stops_after_its_launch_and_asks_to_be_started_again() {
    let dir = project("experiments/scale.toml");
    // A run of about a minute, in hundreds of groups, so that the signal comes before it ends.
    let slow = KERNEL.replace("output[i] = 2.0f * input[i]", "for (int k = 0; k < 300000; ++k) output[i] += 1.0f");
    fs::write(dir.path().join("kernels/scale.cu"), slow).unwrap();
    write_program(&dir.path().join("slurm/sbatch"), "#!/bin/sh\necho 9\n");
    let sizes: Vec<String> = (256..656).map(|n| n.to_string()).collect();
    let sizes = format!("n={}", sizes.join(","));
    let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--set", &sizes, "--name", "job"];
    runner(dir.path(), &words, 0);
    let mut task = command(dir.path(), &["task", JOB, "1", "0"]);
    task.env("SLURM_ARRAY_JOB_ID", "9").env("SLURM_ARRAY_TASK_ID", "0").env("SLURMD_NODENAME", "n1");
    let mut child = task.stderr(Stdio::piped()).spawn().unwrap();
    let journal = dir.path().join(JOB).join("shards/scale/1-of-1/attempt-0001/journal.jsonl");
    let until = Instant::now() + Duration::from_mins(10);
    while !fs::read_to_string(&journal).is_ok_and(|text| text.contains("group_finished")) {
        assert!(Instant::now() < until, "no group ended");
        sleep(Duration::from_millis(50));
    }
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = fs::read_to_string(dir.path().join("slurm/scontrol.args")).unwrap();
    assert_eq!(said.lines().last(), Some("requeue 9_0"));
    let log = fs::read_to_string(dir.path().join(JOB).join("tasks/1-0.jsonl")).unwrap();
    assert!(log.contains("its time limit was near") && log.contains("\"event\":\"requeued\""), "{log}");
    let journal = fs::read_to_string(journal).unwrap();
    assert!(journal.lines().last().unwrap().contains("\"complete\":false"), "the journal has its end");
    // Only the cases that ran are counted.
    let said = runner(dir.path(), &["status", JOB], 0);
    let is_run = |line: &&str| line.contains("\"event\":\"case_settled\"") && !line.contains("\"not_run\"");
    let settled = journal.lines().filter(is_run).count();
    assert!(
        (1..3200).contains(&settled) && said.contains(&format!("  {settled} of 3200 cases done; ")),
        "{settled}: {said}"
    );
}

#[test]
fn scripts_for_another_scheduler_are_written_and_their_tasks_make_the_report() {
    let dir = project("experiments/scale.toml");
    let said = submit(dir.path(), "experiments/scale.toml", &["--scheduler", "pbs", "--max-array", "5"], 0);
    assert_eq!(said.matches("qsub ").count(), 2, "{said}");
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 queued"));
    for (file, elements) in [("task-1-0.sh", 5), ("task-1-5.sh", 3)] {
        for element in 0..elements {
            let mut script = Command::new("bash");
            script.arg(dir.path().join(JOB).join(file)).env("PBS_ARRAY_INDEX", element.to_string());
            assert!(script.output().unwrap().status.success());
        }
    }
    let said = runner(dir.path(), &["collect", JOB], 0);
    assert!(said.contains("8 shards: 8 done") && said.contains("16 of 16 cases passed"), "{said}");
}

#[test]
fn what_the_job_of_others_names_stays_below_the_working_directory_and_is_no_option() {
    let dir = project("experiments/scale.toml");
    let outside = tempfile::tempdir().unwrap();
    submit(dir.path(), "experiments/scale.toml", &["--out", "reports/scale"], 0);
    std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
    let file = dir.path().join(JOB).join("job.json");
    let job = without_sum(&fs::read_to_string(&file).unwrap());
    let collected = |from: &str, to: &str, options: &[&str], code: i32| {
        assert!(job.contains(from), "{from}: {job}");
        fs::write(&file, job.replace(from, to)).unwrap();
        runner(dir.path(), &[&["collect", JOB][..], options].concat(), code)
    };
    let (inside, absolute) = (dir.path().join("new"), outside.path().join("reports"));
    for out in [absolute.to_str().unwrap(), "../reports", "new/../../reports", "link/reports"] {
        let said = collected("\"reports/scale\"", &format!("{out:?}"), &[], 2);
        assert!(said.contains(&format!("`{out}`, outside the working directory")), "{said}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    collected("\"reports/scale\"", &format!("{:?}", inside.to_str().unwrap()), &[], 0);
    collected("\"reports/scale\"", "\"../reports\"", &["--out", absolute.to_str().unwrap()], 0);
    assert!(inside.join("report.md").is_file() && absolute.join("report.md").is_file());
    let said = collected("\"name\": \"scale\"", "\"name\": \"../scale\"", &[], 2);
    assert!(said.contains("`../scale` is not a valid experiment name"), "{said}");
    let said = collected("\"compare_with\": null", "\"compare_with\": \"--output=x\"", &[], 2);
    assert!(said.contains("`--output=x` is not a valid revision"), "{said}");
}

/// Text of a job's file without its checksum, as another owner of the folder might write it. The checksum detects
/// damage, not forgery.
fn without_sum(text: &str) -> String {
    let (object, sum) = text.rsplit_once(",\"sum\":").unwrap();
    assert_eq!(sum.trim_end().len(), "\"01234567\"}".len());
    format!("{object}}}\n")
}

/// Changes a JSON file of the job.
fn edit(dir: &Path, file: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join(JOB).join(file);
    let mut value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut value);
    value.as_object_mut().unwrap().remove("sum");
    fs::write(path, value.to_string()).unwrap();
}

#[test]
fn the_files_of_a_job_give_a_task_no_option_no_path_and_no_panic() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    let job = fs::read_to_string(dir.path().join(JOB).join("job.json")).unwrap();
    for option in ["--allow-outside", "--allow-host-code", "--out=/tmp/x", "--", "--keep-outputs=/tmp/x", "-q", "x"] {
        edit(dir.path(), "job.json", |job| job["options"] = serde_json::json!(["--backend=sim", option]));
        for words in [&["task", JOB, "1", "0"][..], &["status", JOB], &["collect", JOB]] {
            let output = command(dir.path(), words).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{words:?}");
            assert!(said.contains(&format!("`{option}` is not allowed as an option of a job")), "{words:?}: {said}");
        }
    }
    fs::write(dir.path().join(JOB).join("job.json"), &job).unwrap();
    edit(dir.path(), "job.json", |job| {
        let twice = job["experiments"][0].clone();
        job["experiments"].as_array_mut().unwrap().push(twice);
    });
    assert!(runner(dir.path(), &["status", JOB], 2).contains("two experiments are named `scale`"));
    fs::write(dir.path().join(JOB).join("job.json"), job).unwrap();
    for (experiment, shard) in
        [(7, serde_json::json!({ "index": 1, "of": 8 })), (0, serde_json::json!({ "index": 1, "of": 9 }))]
    {
        edit(dir.path(), "submission-1.json", |submission| {
            submission["tasks"][0][0] = serde_json::json!({ "experiment": experiment, "shard": shard });
        });
        assert!(runner(dir.path(), &["task", JOB, "1", "0"], 3).contains("the job has no shard 1/"));
    }
    edit(dir.path(), "submission-1.json", |submission| {
        submission["tasks"][0][0] = serde_json::json!({ "experiment": 0, "shard": { "index": 1, "of": 8 } });
        submission["arrays"][0]["id"] = "--version".into();
    });
    assert!(runner(dir.path(), &["status", JOB], 3).contains("`--version` is not a valid array id"));
}

#[test]
fn links_in_the_folder_of_a_job_lead_nothing_outside() {
    for link in ["tasks", "shards", "shards/scale", "shards/scale/1-of-8"] {
        let dir = project("experiments/scale.toml");
        let outside = tempfile::tempdir().unwrap();
        submit(dir.path(), "experiments/scale.toml", &[], 0);
        let link = dir.path().join(JOB).join(link);
        fs::remove_dir_all(&link).unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let said = runner(dir.path(), &["task", JOB, "1", "0"], 2);
        assert!(said.contains("is a symbolic link, but a job needs a folder there"), "{said}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{said}");
    }
}

#[test]
fn only_the_script_of_a_task_allows_host_code() {
    if runner_process::programs::cxx().is_none() {
        println!("skipped: there is no C++ compiler");
        return;
    }
    let dir = project("experiments/scale.toml");
    let any_kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/any_kernel");
    for file in
        ["experiments/cpp_reference.toml", "experiments/golden.cpp", "experiments/golden.hpp", "kernels/softmax.cu"]
    {
        fs::copy(any_kernel.join(file), dir.path().join(file)).unwrap();
    }
    let words = ["submit", "experiments/cpp_reference.toml", "--backend", "sim", "--name", "job", "--allow-host-code"];
    let said = runner(dir.path(), &words, 0);
    let out = fs::read_to_string(dir.path().join("slurm/out")).unwrap();
    assert!(out.contains("1 of 1 case passed"), "{said}{out}");
    // Another user, who has given no consent, runs the same task.
    fs::remove_dir_all(dir.path().join(JOB).join("shards")).unwrap();
    edit(dir.path(), "job.json", |job| job["allows_host_code"] = true.into());
    let task = |more: &[&str]| {
        let mut command = command(dir.path(), &[&["task", JOB, "1", "0"][..], more].concat());
        let output = command.env("XDG_STATE_HOME", dir.path().join("other")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = task(&[]);
    assert!(code != Some(0) && said.contains("runs host code"), "{said}");
    let (code, said) = task(&["--allow-host-code"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_collecting_job_compares_with_a_revision() {
    let dir = project("experiments/scale.toml");
    fs::write(dir.path().join(".gitignore"), "target\nslurm\n*.lock\njournal.jsonl\n").unwrap();
    submit(dir.path(), "experiments/scale.toml", &["--out", "reports/scale"], 0);
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "reports"]] {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        assert!(Command::new("git").current_dir(dir.path()).args(identity).args(words).status().unwrap().success());
    }
    // One more addition per thread in one variant.
    let slower = KERNEL.replace("input[i] + input[i]", "input[i] + input[i] + (i > 99999999 ? input[i - 1] : 0.0f)");
    fs::write(dir.path().join("kernels/scale.cu"), slower).unwrap();
    let again = ["--out", "reports/scale", "--compare-with", "HEAD", "--gate"];
    submit(dir.path(), "experiments/scale.toml", &again, 0);
    forget(dir.path());
    // Decided by the simulator's counters.
    let said = runner(dir.path(), &["collect", JOB], 4);
    assert!(said.contains("16 cases: 8 do more work, 8 same."), "{said}");
}

#[test]
fn named_shards_run_again_and_until_then_their_results_stay() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    runner(dir.path(), &["run", manifest, "--backend", "sim", "--set", "n=256,512", "--out", "alone"], 0);
    let refused = submit(dir.path(), manifest, &["--rerun", "all"], 2);
    assert!(refused.contains("has not been submitted yet"), "{refused}");
    submit(dir.path(), manifest, &["--out", "reports/scale"], 0);
    let (records, attempts) = (
        |folder: &str| fs::read_to_string(dir.path().join(folder).join("records.jsonl")).unwrap(),
        |shard: &str| fs::read_dir(dir.path().join(JOB).join("shards/scale").join(shard)).unwrap().count(),
    );
    let said = submit(dir.path(), manifest, &["--out", "reports/scale", "--rerun", "3/8", "--rerun", "scale 5/8"], 0);
    assert!(said.contains("2 shards of 8 in 2 tasks"), "{said}");
    assert_eq!([attempts("3-of-8"), attempts("4-of-8"), attempts("5-of-8")], [2, 1, 2]);
    let journal = dir.path().join(JOB).join("shards/scale/3-of-8/attempt-0002/journal.jsonl");
    assert_eq!(
        fs::read_to_string(journal).unwrap().matches("\"run_started\"").count(),
        1,
        "it continued the first run"
    );
    assert!(records("alone") == records("reports/scale"), "a shard was counted twice");
    assert!(submit(dir.path(), manifest, &["--rerun", "failed"], 0).contains("no shard is of that state"));
    let refused = submit(dir.path(), manifest, &["--rerun", "9/8"], 2);
    assert!(refused.contains("the job has no shard `9/8`"), "{refused}");

    // The tasks of the next submissions never start.
    write_program(&dir.path().join("slurm/sbatch"), &ACCEPTS.replace("echo 0", "echo 90"));
    submit(dir.path(), manifest, &["--rerun", "all"], 0);
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 shards: 8 queued"));
    runner(dir.path(), &["merge", &format!("{JOB}/shards"), "--out", "kept"], 0);
    assert!(records("alone") == records("kept"), "a result was lost");
    let refused = submit(dir.path(), manifest, &["--rerun", "1/8"], 2);
    assert!(refused.contains("scale 1/8 is queued and would run twice"), "{refused}");
}

/// A controller was killed and forgot that a task had started. It tries to start the task again, fails, and holds it.
#[test]
fn a_collecting_job_that_waits_for_tasks_whose_shards_are_done_is_not_waited_for() {
    let dir = project("experiments/scale.toml");
    submit(dir.path(), "experiments/scale.toml", &[], 0);
    assert!(runner(dir.path(), &["status", JOB], 0).contains("collects the results: done"));
    fs::remove_file(dir.path().join(JOB).join("collected")).unwrap();
    let held =
        "1_0|PENDING||launch failed requeued held\n2_1|PENDING||launch failed requeued held\n4|PENDING||Dependency\n";
    fs::write(dir.path().join("slurm/squeue.says"), held).unwrap();
    forget(dir.path());
    let said = runner(dir.path(), &["status", JOB], 0);
    let line = "job 4 collects the results: queued: Dependency; it waits for task 1_0 and 1 more, whose shards are done \
                (launch failed requeued held): `runner collect target/jobs/job` does not";
    assert!(said.contains("8 shards: 8 done") && said.contains(line), "{said}");
    runner(dir.path(), &["collect", JOB], 0);
    assert!(runner(dir.path(), &["status", JOB], 0).contains("collects the results: done"));
}

#[test]
fn a_cancelled_job_is_sent_again_by_the_same_command() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let slurm = |file: &str| dir.path().join("slurm").join(file);
    write_program(&slurm("sbatch"), ACCEPTS);
    submit(dir.path(), manifest, &[], 0);
    // Arrays 1 to 3, of which array 2 has ended, and the collecting job 4.
    let tasks =
        "1_0|RUNNING|n1|None\n1_1|PENDING||Priority\n2_0|FAILED|n1|None\n3_0|PENDING||Priority\n4|PENDING||None\n";
    fs::write(slurm("squeue.says"), tasks).unwrap();
    runner(dir.path(), &["status", JOB], 1);
    fs::write(slurm("squeue.fails"), "").unwrap();
    assert!(runner(dir.path(), &["cancel", JOB], 3).contains("nothing was cancelled: squeue failed"));
    fs::remove_file(slurm("squeue.fails")).unwrap();
    let said = runner(dir.path(), &["cancel", JOB], 0);
    assert!(said.contains("cancelled 3 jobs in the scheduler: 1, 3, 4"), "{said}");
    assert_eq!(fs::read_to_string(slurm("scancel.args")).unwrap(), "--quiet 1 3 4\n");
    // The scheduler was asked less than a minute ago and has no accounting.
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("8 shards: 8 failed") && said.contains("(task 1_0): cancelled"), "{said}");
    assert!(runner(dir.path(), &["cancel", JOB], 0).contains("no task is queued or running"));
    assert!(submit(dir.path(), manifest, &[], 0).contains("8 shards in 8 tasks"));
    assert!(runner(dir.path(), &["status", JOB], 0).contains("8 shards: 8 queued"));
}

#[test]
fn tasks_of_a_scheduler_that_is_not_asked_are_cancelled_by_a_command() {
    let manifest = "experiments/scale.toml";
    let commands = [
        ("pbs", "qselect -u \"$USER\" -N runner-job | xargs -r qdel"),
        ("lsf", "bkill -J runner-job 0"),
        ("flux", "flux jobs --count=1000000 --no-header --format='{id}' --name=runner-job | xargs -r flux cancel"),
    ];
    for (scheduler, command) in commands {
        let dir = project(manifest);
        submit(dir.path(), manifest, &["--scheduler", scheduler], 0);
        let said = runner(dir.path(), &["cancel", JOB], 0);
        assert!(said.lines().any(|line| line == command), "{said}");
        assert!(runner(dir.path(), &["status", JOB], 1).contains("8 failed"));
        assert!(submit(dir.path(), manifest, &["--scheduler", scheduler], 0).contains("8 shards in 8 tasks"));
    }
}

#[test]
fn the_logs_of_a_job_are_listed_and_that_of_a_task_is_shown() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    submit(dir.path(), manifest, &[], 0);
    assert!(runner(dir.path(), &["logs", JOB], 0).contains("logs has no logs"));
    for (name, text) in [("task-1_1.out", "a\nkilled\n\n"), ("task-1_10.out", "b\n"), ("collect-4.out", "c\n")] {
        fs::write(dir.path().join(JOB).join("logs").join(name), text).unwrap();
    }
    let said = runner(dir.path(), &["logs", JOB], 0);
    let logs = format!("{JOB}/logs");
    assert_eq!(said, format!("{logs}/collect-4.out: c\n{logs}/task-1_1.out: killed\n{logs}/task-1_10.out: b\n"));
    assert_eq!(runner(dir.path(), &["logs", JOB, "1_1"], 0), "a\nkilled\n\n");
    assert_eq!(runner(dir.path(), &["logs", JOB, "4"], 0), "c\n");
    assert!(runner(dir.path(), &["logs", JOB, "7"], 2).contains("has no log of task `7`"));
}

#[test]
fn all_jobs_are_listed_and_those_that_have_ended_are_removed() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let named = |name: &str, code| {
        let words = ["submit", manifest, "--backend", "sim", "--set", "n=256,512", "--min-task-time", "0s"];
        runner(dir.path(), &[&words[..], &["--name", name]].concat(), code)
    };
    assert!(runner(dir.path(), &["status"], 2).contains("there is no job in target/jobs"));
    named("one", 0);
    fs::write(dir.path().join("slurm/broken"), "1").unwrap();
    named("two", 0);
    fs::write(dir.path().join("slurm/squeue.says"), "5_1|FAILED|n1|None\n6_1|FAILED|n1|None\n7_1|FAILED|n1|None\n")
        .unwrap();
    write_program(&dir.path().join("slurm/sbatch"), &ACCEPTS.replace("echo 0", "echo 20"));
    named("three", 0);
    let waits = fs::read_to_string(dir.path().join("slurm/squeue.says")).unwrap() + "21_[0-2]|PENDING||Priority\n";
    fs::write(dir.path().join("slurm/squeue.says"), waits).unwrap();
    for entry in fs::read_dir(dir.path().join("target/jobs/two")).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_name().unwrap().to_string_lossy().starts_with("scheduler-") {
            fs::remove_file(entry).unwrap();
        }
    }
    let said = runner(dir.path(), &["status"], 1);
    let today = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()[..10].to_owned();
    let line =
        |name: &str, state: &str| format!("target/jobs/{name}: job {name}: 8 shards: {state}; submitted on {today}\n");
    assert!(said.contains(&line("one", "8 done")) && said.contains(&line("two", "5 done, 3 failed")), "{said}");
    assert!(said.contains(&line("three", "8 queued")), "{said}");
    assert_eq!(runner(dir.path(), &["status", "--json"], 1).lines().count(), 3);
    assert!(runner(dir.path(), &["status", "--watch"], 2).contains("<JOB>"));
    // No job is a month old.
    assert!(runner(dir.path(), &["prune"], 0).contains("3 jobs younger than --older-than: kept"));
    let exists = || ["one", "two", "three"].map(|name| dir.path().join("target/jobs").join(name).exists());
    let said = runner(dir.path(), &["prune", "--older-than", "0s", "--dry-run"], 0);
    assert!(said.contains("target/jobs/one: would be removed") && exists() == [true; 3], "{said}");
    // What a killed `prune` left is no job, and goes with the next one.
    let left = dir.path().join("target/jobs/.removing-1-four");
    assert!(
        Command::new("cp").arg("-r").args([&dir.path().join("target/jobs/two"), &left]).status().unwrap().success()
    );
    assert_eq!(runner(dir.path(), &["status", "--json"], 1).lines().count(), 3);
    let said = runner(dir.path(), &["prune", "--older-than", "0s"], 0);
    assert!(said.contains("target/jobs/one: removed") && !left.exists(), "{said}");
    assert!(said.contains("target/jobs/two: kept, without results of 3 shards; --incomplete removes it"), "{said}");
    assert!(said.contains("target/jobs/three: kept, 8 shards still queued or running"), "{said}");
    assert_eq!(exists(), [false, true, true]);
    let said = runner(dir.path(), &["prune", "--incomplete", "target/jobs/two", "target/jobs/three"], 0);
    assert!(said.contains("target/jobs/three: kept, 8 shards still queued or running"), "{said}");
    assert_eq!(exists(), [false, false, true]);
    // Results that are only in the folder of their job are kept.
    write_program(&dir.path().join("slurm/sbatch"), SBATCH);
    fs::remove_file(dir.path().join("slurm/broken")).unwrap();
    submit(dir.path(), manifest, &[], 0);
    fs::remove_file(dir.path().join(JOB).join("collected")).unwrap();
    let said = runner(dir.path(), &["prune", JOB], 0);
    assert!(said.contains(&format!("{JOB}: kept, its results are")), "{said}");
    // A folder behind a link is not a job of this checkout.
    let other = tempfile::tempdir().unwrap();
    fs::rename(dir.path().join(JOB), other.path().join("job")).unwrap();
    std::os::unix::fs::symlink(other.path().join("job"), dir.path().join(JOB)).unwrap();
    assert!(!runner(dir.path(), &["status"], 0).contains(JOB));
}

#[test]
fn the_command_of_a_job_is_printed_and_given_again() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    fs::write(dir.path().join("slurm/broken"), "1").unwrap();
    fs::write(dir.path().join("slurm/squeue.says"), "1_1|FAILED|n1|None\n2_1|FAILED|n1|None\n").unwrap();
    submit(dir.path(), manifest, &["--partition", "gpu", "--filter", "block != 192", "--wait"], 1);
    fs::remove_file(dir.path().join("slurm/broken")).unwrap();
    forget(dir.path());
    let command = "submitted by: runner --color never submit experiments/scale.toml --backend sim --set 'n=256,512' \
                   --min-task-time 0s --name job --partition gpu --filter 'block != 192'\n";
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(
        said.contains(command) && said.contains("submit again with `runner submit --again target/jobs/job`"),
        "{said}"
    );
    let again = ["submit", "--again", JOB];
    let said = runner(dir.path(), &[&again[..], &["--dry-run"]].concat(), 0);
    assert!(said.contains("2 shards of 6 in 2 tasks") && said.contains("#SBATCH --partition=gpu"), "{said}");
    let said = runner(dir.path(), &again, 0);
    assert!(said.contains("2 shards of 6 in 2 tasks"), "{said}");
    let said = runner(dir.path(), &[&again[..], &["--rerun", "all"]].concat(), 0);
    assert!(said.contains("6 shards in 6 tasks"), "{said}");
    assert!(runner(dir.path(), &["status", JOB], 0).contains(command), "it is still the first command");
    for other in [&["--set", "n=1024"][..], &["experiments/scale.toml"], &["--partition", "cpu"]] {
        let refused = runner(dir.path(), &[&again[..], other].concat(), 2);
        assert!(refused.contains("--again repeats the job's command unchanged"), "{refused}");
    }
    // What others may have written is shown but not run.
    let file = dir.path().join(JOB).join("job.json");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o664)).unwrap();
    let said = runner(dir.path(), &again, 2);
    let why = "someone else may have written this job; read its command, then run it yourself: runner ";
    assert!(said.contains(why), "{said}");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let below = dir.path().join("experiments");
    let said = runner(&below, &["submit", "--again", "../target/jobs/job"], 2);
    assert!(said.contains("was submitted from") && said.contains(": run this command there"), "{said}");
}

#[test]
fn a_job_begins_after_another() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let records = ACCEPTS.replace("#!/bin/bash", "#!/bin/bash\necho \"$*\" >>\"$0.args\"");
    write_program(&dir.path().join("slurm/sbatch"), &records);
    submit(dir.path(), manifest, &[], 0);
    // Arrays 1 to 3, of which the second has ended, and the collecting job 4.
    let says = "1_[0-2]|PENDING||Priority\n2_[0-2]|FAILED|n1|None\n3_0|RUNNING|n1|None\n3_1|PENDING||x\n4|PENDING||Dependency\n";
    fs::write(dir.path().join("slurm/squeue.says"), says).unwrap();
    let words = ["submit", manifest, "--backend", "sim", "--set", "n=256", "--name", "next", "--after", JOB];
    let said = runner(dir.path(), &[&words[..], &["--dry-run"]].concat(), 0);
    assert!(said.contains("--dependency=afterany:1:3:4"), "{said}");
    runner(dir.path(), &words, 0);
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    let dependencies: Vec<&str> = arguments.lines().skip(4).map(|line| line.split(' ').nth(1).unwrap()).collect();
    // The array, and the job that collects its results.
    assert_eq!(dependencies, ["--dependency=afterany:1:3:4", "--dependency=afterany:5:1:3:4"]);
    let said = runner(dir.path(), &[&words[..7], &["other", "--after", JOB, "--scheduler", "pbs"]].concat(), 2);
    assert!(said.contains("--after target/jobs/job: that job is for slurm, this one for pbs"), "{said}");
    // A job that has ended is not waited for.
    fs::write(dir.path().join("slurm/squeue.says"), says.replace("PENDING", "FAILED").replace("RUNNING", "FAILED"))
        .unwrap();
    let words =
        ["submit", manifest, "--backend", "sim", "--set", "n=512", "--name", "last", "--after", JOB, "--dry-run"];
    assert!(!runner(dir.path(), &words, 0).contains("afterany:1"));
}

#[test]
fn the_collecting_job_notifies_with_the_outcome() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let line = "notify = 'cat >told; echo \"$RUNNER_JOB $RUNNER_EXIT\" >>told'";
    fs::write(dir.path().join("cluster.toml"), line).unwrap();
    let refused = submit(dir.path(), manifest, &[], 2);
    assert!(refused.contains("cluster.toml runs host code"), "{refused}");
    submit(dir.path(), manifest, &["--allow-host-code"], 0);
    let told = || fs::read_to_string(dir.path().join("told")).unwrap_or_default();
    let report = "report: target/reports/scale/simulated-h100-job/report.md\n";
    assert!(told().starts_with("job job: 8 shards: 8 done\nscale: 16 of 16 cases passed"), "{}", told());
    assert!(told().contains("`twice` ") && told().ends_with(&format!("{report}job 0\n")), "{}", told());
    // A user who looks at the results is not notified.
    fs::remove_file(dir.path().join("told")).unwrap();
    runner(dir.path(), &["collect", JOB], 0);
    assert_eq!(told(), "");
    // Nothing can be collected.
    fs::write(dir.path().join("slurm/broken"), "0").unwrap();
    fs::write(dir.path().join("cluster.toml"), format!("max_array = 1\n{line}")).unwrap();
    let words = ["submit", manifest, "--backend", "sim", "--set", "n=256", "--name", "none", "--allow-host-code"];
    runner(dir.path(), &words, 0);
    assert!(told().contains("no shard has a result yet\nnone 3\n"), "{}", told());
    // A command that fails changes nothing else.
    fs::remove_file(dir.path().join("slurm/broken")).unwrap();
    fs::write(dir.path().join("cluster.toml"), "notify = 'exit 7'").unwrap();
    let words =
        ["submit", manifest, "--backend", "sim", "--set", "n=256", "--name", "fails", "--allow-host-code", "--wait"];
    runner(dir.path(), &words, 0);
    let out = fs::read_to_string(dir.path().join("slurm/out")).unwrap();
    assert!(out.contains("warning: `notify` ended with exit status: 7: exit 7"), "{out}");
    let refused = runner(dir.path(), &[&words[..8], &["--name", "pbs", "--scheduler", "pbs"]].concat(), 2);
    assert!(refused.contains("--name") || refused.contains("notify: pbs does not support this setting"), "{refused}");
}

#[test]
fn the_collecting_job_is_sent_again_by_the_script_that_runs() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let records = ACCEPTS.replace("#!/bin/bash", "#!/bin/bash\necho \"$*\" >>\"$0.args\"");
    write_program(&dir.path().join("slurm/sbatch"), &records);
    fs::write(dir.path().join("cluster.toml"), "queue = 3").unwrap();
    submit(dir.path(), manifest, &[], 0);
    // Slurm runs a copy of its own. Meanwhile, another user of the job's folder replaces the script there.
    let (own, shared) = (dir.path().join("slurm_script"), dir.path().join(JOB).join("collect-1.sh"));
    fs::copy(&shared, &own).unwrap();
    fs::write(&shared, "touch forged\n").unwrap();
    let mut collecting = Command::new("bash");
    let path = format!("{}:{}", dir.path().join("slurm").display(), std::env::var("PATH").unwrap());
    collecting.arg(&own).current_dir(dir.path()).env("PATH", path).env("XDG_STATE_HOME", dir.path().join("state"));
    let output = collecting.output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(said.contains("array 3: 3 tasks\njob 4: collects the results\n"), "{said}");
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    assert!(arguments.lines().last().unwrap().ends_with(&format!(" {}", own.display())), "{arguments}");
}

/// A control group with this much memory; `None` where this user or the kernel allows none.
struct MemoryGroup(std::path::PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("runner-test-{}", std::process::id());
        for (folder, limit) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
            let group = Self(Path::new(folder).join(&name));
            if fs::create_dir(&group.0).is_ok() && fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cases_whose_reference_the_system_ends_for_its_memory_are_sent_again_with_more() {
    let Some(group) = MemoryGroup::new(400 << 20).filter(|_| runner_process::programs::cxx().is_some()) else {
        println!("skipped: no control group can be made, or there is no C++ compiler");
        return;
    };
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    let greedy = "#include <vector>\nstd::vector<double> twice(const std::vector<float> &input) {\n    std::vector<char> \
                  much(1 << 30, 1);\n    std::vector<double> result;\n    for (float x : input) result.push_back(2.0 * x * \
                  much[input.size()]);\n    return result;\n}\n";
    // A different text than in the last test run, whose results are in the cache.
    let greedy = format!("// {:?}\n{greedy}", std::time::SystemTime::now());
    fs::write(dir.path().join("experiments/twice.cpp"), greedy).unwrap();
    let text = MANIFEST.replace("expect = \"add(input, input)\"", "expect = { cpp = \"twice.cpp:twice\" }");
    assert_ne!(text, MANIFEST);
    fs::write(dir.path().join(manifest), text).unwrap();
    let enter = format!("setup = ['[ \"$1\" != 1 ] || echo $$ >{}/cgroup.procs']", group.0.display());
    fs::write(dir.path().join("cluster.toml"), format!("memory = \"400M\"\nmemory_factor = 4.0\n{enter}\n")).unwrap();
    let words = ["submit", manifest, "--backend", "sim", "--set", "n=256", "--set", "block=64", "--name", "job"];
    let words = [&words[..], &["--allow-host-code", "--out", "out"]].concat();
    runner(dir.path(), &words, 0);
    fs::write(dir.path().join("slurm/squeue.says"), "1_0|FAILED|n1|None\n").unwrap();
    forget(dir.path());
    let said = runner(dir.path(), &["status", JOB], 1);
    assert!(said.contains("which the system does when memory runs out"), "{said}");
    let said = runner(dir.path(), &words, 0);
    assert!(said.contains("1 shard in 1 task"), "{said}");
    let arguments = fs::read_to_string(dir.path().join("slurm/sbatch.args")).unwrap();
    assert!(arguments.split('\0').any(|word| word == "--mem=1600M"), "{arguments}");
    assert!(runner(dir.path(), &["collect", JOB, "--out", "out"], 0).contains("2 of 2 cases passed"));
}

#[test]
fn a_task_that_is_cancelled_while_its_worker_fails_to_start_does_not_come_back() {
    let (dir, manifest) = (project("experiments/scale.toml"), "experiments/scale.toml");
    write_program(&dir.path().join("slurm/sbatch"), ACCEPTS);
    submit(dir.path(), manifest, &[], 0);
    let log = |task: u32| {
        let path = dir.path().join(JOB).join(format!("tasks/1-{task}.jsonl"));
        fs::read_to_string(path).unwrap_or_default()
    };
    // The worker needs more address space than this limit; the task does not.
    let started = |task: u32| {
        let line = format!("ulimit -v 8000000; exec \"$0\" task {JOB} 1 {task}");
        let path = format!("{}:{}", dir.path().join("slurm").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_runner")]).current_dir(dir.path()).env("PATH", path);
        command.env("SLURM_ARRAY_JOB_ID", "1").env("SLURM_ARRAY_TASK_ID", task.to_string());
        command.env("SLURMD_NODENAME", "n1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // Without a signal, the node is at fault.
    assert_eq!(started(0).wait().unwrap().code(), Some(3));
    assert!(log(0).contains("\"requeued\",\"excluded\":\"n1\""), "{}", log(0));
    let mut cancelled = started(1);
    let until = Instant::now() + Duration::from_mins(2);
    while !log(1).contains("started") {
        assert!(Instant::now() < until, "the task does not begin");
        sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&cancelled), Signal::TERM).unwrap();
    assert_eq!(cancelled.wait().unwrap().code(), Some(130));
    assert!(log(1).contains("ended by the scheduler (SIGTERM)") && !log(1).contains("requeued"), "{}", log(1));
}
