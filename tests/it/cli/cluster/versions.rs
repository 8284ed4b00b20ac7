//! Jobs whose sources are edited between two submissions: results count only for the version that they come from.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ACCEPTS, JOB, KERNEL, MANIFEST, age, project, runner, submit};

use crate::programs::write_program;

const SCALE: &str = "experiments/scale.toml";

/// Writes the kernel so that it computes the same from another source.
fn edit_kernel(dir: &Path) {
    fs::write(dir.join("kernels/scale.cu"), KERNEL.replace("2.0f * input[i]", "input[i] * 2.0f")).unwrap();
}

fn records(dir: &Path, folder: &str) -> Vec<u8> {
    fs::read(dir.join(folder).join("records.jsonl")).unwrap()
}

/// Runs the whole experiment in one process.
fn run_alone(dir: &Path, out: &str) -> Vec<u8> {
    runner(dir, &["run", SCALE, "--backend", "sim", "--set", "n=256,512", "--out", out], 0);
    records(dir, out)
}

/// Runs the scripts of a submission by hand; returns their output. Each task must exit with `code`.
fn run_scripts(dir: &Path, submission: u32, code: i32) -> String {
    let mut said = String::new();
    for element in 0..8 {
        let mut script = Command::new("bash");
        script.arg(dir.join(JOB).join(format!("task-{submission}-0.sh"))).env("PBS_ARRAY_INDEX", element.to_string());
        let output = script.env("XDG_STATE_HOME", dir.join("state")).output().unwrap();
        said += &String::from_utf8_lossy(&[output.stdout, output.stderr].concat());
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
    said
}

#[test]
fn what_a_task_of_an_older_version_leaves_is_no_result_of_the_newer_one() {
    let dir = project(SCALE);
    let dir = dir.path();
    let submitted = |code| submit(dir, SCALE, &["--scheduler", "pbs"], code);
    submitted(0);
    run_scripts(dir, 1, 0);
    // The tasks end after the next submission, so their results appear only then.
    fs::rename(dir.join(JOB).join("shards"), dir.join("late")).unwrap();
    fs::remove_dir_all(dir.join(JOB).join("tasks")).unwrap();
    runner(dir, &["cancel", JOB], 0);
    edit_kernel(dir);
    assert!(submitted(0).contains("8 shards in 8 tasks"));
    fs::rename(dir.join("late"), dir.join(JOB).join("shards")).unwrap();
    let said = runner(dir, &["collect", JOB, "--out", "old"], 3);
    assert!(said.contains("8 shards: 8 queued") && said.contains("no shard has a result yet"), "{said}");
    assert!(!dir.join("old").exists());
    // A script of the older submission is refused before it runs anything.
    let said = run_scripts(dir, 1, 2);
    assert!(said.contains("was submitted again after an edit: run the scripts of submission 2"), "{said}");
    assert!(runner(dir, &["status", JOB], 0).contains("8 queued"));
    run_scripts(dir, 2, 0);
    runner(dir, &["collect", JOB, "--out", "new"], 0);
    assert!(records(dir, "new") == run_alone(dir, "alone"), "an older result is in the report");
}

#[test]
fn a_task_that_continues_an_older_attempt_and_is_killed_before_its_plan_is_no_result() {
    let dir = project(SCALE);
    let dir = dir.path();
    submit(dir, SCALE, &["--scheduler", "pbs"], 0);
    run_scripts(dir, 1, 0);
    edit_kernel(dir);
    submit(dir, SCALE, &["--scheduler", "pbs"], 0);
    // The attempt begins with a copy of the journal before it.
    let shard = dir.join(JOB).join("shards/scale/3-of-8");
    fs::create_dir(shard.join("attempt-0002")).unwrap();
    fs::copy(shard.join("attempt-0001/journal.jsonl"), shard.join("attempt-0002/journal.jsonl")).unwrap();
    let said = runner(dir, &["status", JOB], 0);
    assert!(said.contains("8 shards: 8 queued") && said.contains("0 of 16 cases done"), "{said}");
    run_scripts(dir, 2, 0);
    runner(dir, &["collect", JOB, "--out", "new"], 0);
    assert!(records(dir, "new") == run_alone(dir, "alone"), "an older result is in the report");
}

#[test]
fn a_shard_without_results_of_the_newer_version_is_missing_and_the_others_are_reported() {
    let dir = project(SCALE);
    let dir = dir.path();
    submit(dir, SCALE, &[], 0);
    edit_kernel(dir);
    // The last task of two arrays does not run.
    fs::write(dir.join("slurm/broken"), "2").unwrap();
    submit(dir, SCALE, &[], 0);
    let said = runner(dir, &["collect", JOB, "--out", "part"], 1);
    assert!(said.contains("8 shards: 6 done, 2 queued"), "{said}");
    assert!(said.contains("scale: 12 of 16 planned cases passed"), "{said}");
    assert!(said.contains("no journal of 2 shards: 3/8, 6/8"), "{said}");
    // Only some shards of a newer version run; the others are outdated.
    fs::remove_file(dir.join("slurm/broken")).unwrap();
    age(dir);
    submit(dir, SCALE, &[], 0);
    runner(dir, &["collect", JOB, "--out", "whole"], 0);
    assert!(records(dir, "whole") == run_alone(dir, "alone"), "an older result is in the report");
    let third = KERNEL.replace("2.0f * input[i]", "1.0f * input[i] + input[i]");
    fs::write(dir.join("kernels/scale.cu"), third).unwrap();
    submit(dir, SCALE, &["--rerun", "scale 1/8"], 0);
    let said = runner(dir, &["collect", JOB, "--out", "one"], 1);
    assert!(said.contains("8 shards: 1 done, 7 outdated"), "{said}");
    assert!(said.contains("scale: 2 of 16 planned cases passed"), "{said}");
}

#[test]
fn results_that_an_edit_does_not_affect_stay() {
    let dir = project(SCALE);
    let dir = dir.path();
    let other = MANIFEST.replace("\"scale\"\n", "\"other\"\n").replace("kernel = \"other\"", "kernel = \"scale\"");
    fs::write(dir.join("experiments/other.toml"), other.replace("scale.cu", "other.cu")).unwrap();
    fs::write(dir.join("kernels/other.cu"), KERNEL).unwrap();
    let submitted = || submit(dir, SCALE, &["experiments/other.toml"], 0);
    submitted();
    let before = run_alone(dir, "alone");
    fs::write(dir.join("kernels/other.cu"), KERNEL.replace("2.0f * input[i]", "input[i] * 2.0f")).unwrap();
    assert!(submitted().contains("8 shards of 16"));
    assert!(submitted().contains("no shard is missing"));
    assert!(runner(dir, &["status", JOB], 0).contains("16 shards: 16 done"));
    runner(dir, &["collect", JOB, "--out", "both"], 0);
    assert!(records(dir, "both/scale/simulated-h100") == before);
}

#[test]
fn a_search_starts_again_after_an_edit_of_its_sources_or_manifest() {
    let dir = project(SCALE);
    let dir = dir.path();
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.join(SCALE), &searched).unwrap();
    let words = ["submit", SCALE, "--tune", "2", "--backend", "sim", "--set", "n=256", "--out", "out"];
    let sent = |code| runner(dir, &[&words[..], &["--name", "job", "--", "--budget", "100%"]].concat(), code);
    let lines = |path: &str| fs::read_to_string(dir.join("out").join(path)).unwrap().lines().count() - 1;
    let whole = || {
        assert!(runner(dir, &["status", JOB], 0).contains("3 tasks: 3 done"));
        let shards = ["1-of-2", "2-of-2"].map(|shard| lines(&format!("shards/{shard}/search.jsonl")));
        (shards.iter().sum::<usize>(), lines("search.jsonl"))
    };
    sent(0);
    assert_eq!(whole(), (8, 8));
    assert!(sent(0).contains("no task is missing"));
    edit_kernel(dir);
    let said = sent(0);
    assert!(said.contains("job job: 2 shards, and then the finalists"), "{said}");
    assert_eq!(whole(), (8, 8));
    assert_eq!(lines("search.previous.jsonl"), 8);
    // The finalists come from the edited source, too.
    runner(dir, &["tune", SCALE, "--backend", "sim", "--set", "n=256", "--budget", "100%", "--out", "alone"], 0);
    let source = |folder: &str| {
        let journal = fs::read_to_string(dir.join(folder).join("journal.jsonl")).unwrap();
        journal.rsplit("\"source\":\"").next().unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!(source("out"), source("alone"));
    // Ten configurations now.
    fs::write(dir.join(SCALE), searched.replace("192, 256]", "192, 256, 320]")).unwrap();
    assert!(sent(0).contains("job job: 2 shards, and then the finalists"));
    assert_eq!(whole(), (10, 10));
    assert!(sent(0).contains("no task is missing"));
    // A shard whose log has lost its first line starts again.
    let log = dir.join("out/shards/1-of-2/search.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.split_once('\n').unwrap().1).unwrap();
    fs::remove_file(dir.join(JOB).join("tasks/3-0.jsonl")).unwrap();
    age(dir);
    assert!(sent(0).contains("job job: 1 of 2 shards, and then the finalists"));
    assert_eq!(whole().1, 10);
}

#[test]
fn a_search_is_not_sent_again_after_an_edit_while_its_tasks_are_open() {
    let dir = project(SCALE);
    let dir = dir.path();
    let words = ["submit", SCALE, "--tune", "2", "--backend", "sim", "--set", "n=256", "--name", "job"];
    write_program(&dir.join("slurm/sbatch"), ACCEPTS);
    runner(dir, &words, 0);
    edit_kernel(dir);
    let said = runner(dir, &words, 2);
    assert!(said.contains("have changed since 3 shards still queued or running were submitted"), "{said}");
}

#[test]
fn every_command_that_status_names_after_an_edit_works() {
    let dir = project(SCALE);
    let dir = dir.path();
    fs::create_dir(dir.join("a folder")).unwrap();
    // The command in the line about an edit.
    let named = |said: &str| {
        let line = said.lines().find(|line| line.contains("edited since it was submitted")).unwrap();
        shlex::split(line.split('`').nth(1).unwrap()).unwrap()
    };
    let works = |words: &[String]| {
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        runner(dir, &words, 0)
    };
    let slurm = |file: &str, text: &str| write_program(&dir.join("slurm").join(file), text);
    let sbatch = fs::read_to_string(dir.join("slurm/sbatch")).unwrap();
    slurm("sbatch", ACCEPTS);
    submit(dir, SCALE, &[], 0);
    fs::write(dir.join("slurm/squeue.says"), "1_[0-2]|PENDING||x\n2_[0-2]|PENDING||x\n3_[0-1]|PENDING||x\n").unwrap();
    edit_kernel(dir);
    let words = named(&runner(dir, &["status", JOB], 0));
    assert_eq!(words, ["runner", "cancel", JOB]);
    works(&words);
    slurm("sbatch", &sbatch);
    submit(dir, SCALE, &[], 0);
    fs::write(dir.join("kernels/scale.cu"), KERNEL).unwrap();
    let words = named(&runner(dir, &["status", JOB], 0));
    assert_eq!(words, ["runner", "submit", "--dry-run", "--again", JOB]);
    assert!(works(&words).contains("8 shards in 8 tasks"));
    // Elsewhere, that command is refused, so it is not named.
    let said = runner(&dir.join("a folder"), &["status", &format!("../{JOB}")], 0);
    assert!(!said.contains("--again") && said.contains("the command that submitted it and --dry-run, in "), "{said}");
    // An edited manifest makes a different job.
    fs::write(dir.join(SCALE), MANIFEST.replace("192, 256", "192")).unwrap();
    let said = runner(dir, &["status", JOB], 0);
    assert!(said.contains("a changed manifest is a new job: submit it with another --name"), "{said}");
}

#[test]
fn results_of_an_earlier_version_that_fit_again_are_used_again() {
    let dir = project(SCALE);
    let dir = dir.path();
    let submitted = |more: &[&str]| submit(dir, SCALE, &[&["--scheduler", "pbs"], more].concat(), 0);
    submitted(&[]);
    run_scripts(dir, 1, 0);
    let expected = run_alone(dir, "alone");
    edit_kernel(dir);
    assert!(submitted(&[]).contains("8 shards in 8 tasks"));
    runner(dir, &["cancel", JOB], 0);
    runner(dir, &["status", JOB], 1);
    fs::write(dir.join("kernels/scale.cu"), KERNEL).unwrap();
    assert!(submitted(&["--dry-run"]).contains("no shard is missing"));
    // A dry run changes nothing.
    runner(dir, &["status", JOB], 1);
    assert!(submitted(&[]).contains("no shard is missing"));
    let said = runner(dir, &["status", JOB], 0);
    assert!(said.contains("8 shards: 8 done") && said.contains("16 of 16 cases done"), "{said}");
    runner(dir, &["collect", JOB, "--out", "again"], 0);
    assert!(records(dir, "again") == expected, "the report is not of the earlier version");
    // The edited version again, of which all shards run: the two never mix.
    edit_kernel(dir);
    assert!(submitted(&[]).contains("8 shards in 8 tasks"));
    run_scripts(dir, 4, 0);
    runner(dir, &["collect", JOB, "--out", "edited"], 0);
    assert!(records(dir, "edited") == run_alone(dir, "alone-edited"), "the report is not of the edited version");
    // Back and forth, without a task.
    fs::write(dir.join("kernels/scale.cu"), KERNEL).unwrap();
    assert!(submitted(&[]).contains("no shard is missing"));
    runner(dir, &["collect", JOB, "--out", "third"], 0);
    assert!(records(dir, "third") == expected, "the report is not of the earlier version");
}
