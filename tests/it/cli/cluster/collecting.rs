//! What the options of a second `submit` change, how a broken claim is shown, and which report is kept.

use std::fs;
use std::path::Path;

use super::{ACCEPTS, JOB, MANIFEST, age, forget, project, runner, submit};
use crate::programs::write_program;

const SCALE: &str = "experiments/scale.toml";
/// A claim that is broken: each block requests at least one sector.
const BROKEN: &str = "\n[[claim]]\nthat = 'counter(\"gld_requests\", \"plain\") <= 0'\n";

/// The lines that name a claim which does not hold.
fn broken(said: &str) -> Vec<String> {
    said.lines().filter(|line| line.starts_with("✗ claim broken: ")).map(str::to_owned).collect()
}

fn records(dir: &Path, folder: &str) -> Vec<u8> {
    fs::read(dir.join(folder).join("records.jsonl")).unwrap_or_default()
}

#[test]
fn a_broken_claim_is_told_as_a_run_tells_it() {
    let dir = project(SCALE);
    let dir = dir.path();
    fs::write(dir.join(SCALE), MANIFEST.to_owned() + BROKEN).unwrap();
    fs::write(dir.join("cluster.toml"), "notify = 'cat >told'").unwrap();
    let run = ["run", SCALE, "--backend", "sim", "--set", "n=256,512", "--out", "alone", "--gate"];
    let expected = broken(&runner(dir, &run, 5));
    assert_eq!(expected.len(), 1);
    let said = submit(dir, SCALE, &["--gate", "--wait", "--allow-host-code"], 5);
    assert_eq!(broken(&said), expected, "{said}");
    let told = fs::read_to_string(dir.join("told")).unwrap();
    assert_eq!(broken(&told), expected, "{told}");
    assert_eq!(broken(&runner(dir, &["collect", JOB], 5)), expected);
}

#[test]
fn options_of_collecting_take_effect_for_a_finished_job() {
    let dir = project(SCALE);
    let dir = dir.path();
    fs::write(dir.join(SCALE), MANIFEST.to_owned() + BROKEN).unwrap();
    submit(dir, SCALE, &["--wait"], 0);
    let said = submit(dir, SCALE, &["--gate", "--wait"], 5);
    assert!(said.contains("no shard is missing") && said.contains("collected with the new options"), "{said}");
    assert!(said.contains(": collects the results"), "{said}");
    let said = submit(dir, SCALE, &["--gate", "--wait"], 5);
    assert!(!said.contains("collected with the new options"), "nothing has changed: {said}");
    // Without --wait, the collecting job writes the other folder.
    submit(dir, SCALE, &["--out", "elsewhere"], 0);
    assert!(!records(dir, "elsewhere").is_empty());
    // The job no longer judges its claims.
    runner(dir, &["collect", JOB], 0);
    // The user collects the results of another scheduler's tasks.
    let words = ["submit", SCALE, "--backend", "sim", "--set", "n=256", "--scheduler", "pbs", "--name", "pbs"];
    runner(dir, &words, 0);
    let said = runner(dir, &[&words[..], &["--out", "third"]].concat(), 0);
    assert!(said.contains("runner collect target/jobs/pbs '--out=third'\n"), "{said}");
}

#[test]
fn options_of_collecting_wait_while_tasks_are_held_back() {
    let dir = project(SCALE);
    let dir = dir.path();
    write_program(&dir.join("slurm/sbatch"), ACCEPTS);
    submit(dir, SCALE, &["--queue", "3"], 0);
    fs::write(dir.join("slurm/squeue.says"), "1_[0-2]|PENDING||Priority\n2|PENDING||Dependency\n").unwrap();
    let said = submit(dir, SCALE, &["--queue", "3", "--gate"], 2);
    assert!(said.contains("--gate and --compare-with can change once its last 5 tasks are submitted"), "{said}");
}

#[test]
fn a_job_with_other_options_is_refused_and_they_are_named() {
    let dir = project(SCALE);
    let dir = dir.path();
    submit(dir, SCALE, &[], 0);
    let sent = |more: &[&str]| {
        let words = ["submit", SCALE, "--backend", "sim", "--name", "job"];
        runner(dir, &[&words[..], more].concat(), 2)
    };
    let here = ["--set", "n=256,512", "--min-task-time", "0s"];
    for (options, expected) in [
        (
            &["--set", "n=256", "--min-task-time", "0s"][..],
            "different options (there `--set=n=256,512`, here `--set=n=256`)",
        ),
        (&here[..2], "a different --min-task-time (8 shards there, 1 here)"),
        (&[&here[..], &["--tune", "2"]].concat(), "a run instead of a search"),
    ] {
        let said = sent(options);
        let job = "target/jobs/job already contains a job with ";
        assert!(said.contains(&format!("{job}{expected}: choose another --name")), "{said}");
        assert!(said.contains("remove that job with `runner prune "), "{said}");
    }
    fs::write(dir.join(SCALE), MANIFEST.replace("Twice the input", "Another title")).unwrap();
    assert!(sent(&here).contains("another version of experiments/scale.toml"));
}

#[test]
fn a_search_with_other_arguments_is_refused_and_they_are_named() {
    let dir = project(SCALE);
    let dir = dir.path();
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.join(SCALE), searched).unwrap();
    let sent = |more: &[&str], code| {
        let words = ["submit", SCALE, "--tune", "2", "--backend", "sim", "--set", "n=256", "--name", "job"];
        runner(dir, &[&words[..], more].concat(), code)
    };
    let first = ["--out", "out", "--", "--budget", "100%"];
    sent(&first, 0);
    assert!(sent(&first, 0).contains("no task is missing"));
    let said = runner(dir, &["collect", JOB], 0);
    assert!(said.contains("3 tasks: 3 done") && said.contains("\nscale: ") && said.contains("cases"), "{said}");
    assert!(said.ends_with("/out/report.md\n"), "{said}");
    fs::metadata(said.lines().last().unwrap().strip_prefix("report: ").unwrap()).unwrap();
    for (options, expected) in [
        (&["--out", "out", "--", "--budget", "50%"][..], "there `100%`, here `50%`"),
        (&["--out", "out", "--", "--budget", "100%", "--seed", "9"], "there none, here `--seed 9`"),
        (&["--out", "other", "--", "--budget", "100%"], "there `--out=out`, here `--out=other`"),
    ] {
        let said = sent(options, 2);
        assert!(said.contains(&format!("a job with different options ({expected}): choose another --name")), "{said}");
    }
}

#[test]
fn an_older_job_does_not_replace_the_report_of_a_newer_one() {
    let dir = project(SCALE);
    let dir = dir.path();
    let named = |name: &str, more: &[&str]| {
        let text = MANIFEST.replace("n     = { pow2 = [8, 17, 1] }", "n     = [256]");
        fs::write(dir.join(SCALE), text).unwrap();
        let words = ["submit", SCALE, "--backend", "sim", "--min-task-time", "0s", "--name", name];
        runner(dir, &[&words[..], more].concat(), 0)
    };
    let journal = || fs::read_to_string(dir.join("reports/scale/simulated-h100/journal.jsonl")).unwrap_or_default();
    named("old", &["--wait"]);
    assert!(!journal().is_empty());
    named("new", &["--wait"]);
    let newer = journal();
    let said = runner(dir, &["collect", "target/jobs/old"], 0);
    assert!(said.contains("has results of a newer run, which was started at 20"), "{said}");
    assert!(said.contains("the older report goes to target/reports/scale/simulated-h100-old"), "{said}");
    assert!(journal() == newer, "the newer report was replaced");
    assert!(!records(dir, "target/reports/scale/simulated-h100-old").is_empty());
    runner(dir, &["collect", "target/jobs/new"], 0);
    // The journal is not committed: nothing is known of a report without it.
    fs::remove_file(dir.join("reports/scale/simulated-h100/journal.jsonl")).unwrap();
    assert!(!runner(dir, &["collect", "target/jobs/old"], 0).contains("newer run"));
}

#[test]
fn status_says_that_collecting_failed_and_why() {
    let dir = project(SCALE);
    let dir = dir.path();
    fs::write(dir.join("cluster.toml"), "max_array = 1").unwrap();
    fs::write(dir.join("slurm/broken"), "0").unwrap();
    fs::write(dir.join("slurm/squeue.says"), "1_0|FAILED|n1|None\n").unwrap();
    let words = ["submit", SCALE, "--backend", "sim", "--set", "n=256", "--name", "job"];
    runner(dir, &words, 0);
    let said = runner(dir, &["status", JOB], 1);
    assert!(said.contains("job 2 collects the results: failed: no shard has a result yet"), "{said}");
}

#[test]
fn tasks_of_an_array_that_was_cancelled_while_it_waited_have_failed() {
    let dir = project(SCALE);
    let dir = dir.path();
    write_program(&dir.join("slurm/sbatch"), ACCEPTS);
    let says = |text: &str| {
        fs::write(dir.join("slurm/squeue.says"), text).unwrap();
        forget(dir);
    };
    fs::write(dir.join("cluster.toml"), "max_array = 9").unwrap();
    submit(dir, SCALE, &[], 0);
    says("1_[0-7]|PENDING||BeginTime\n2|PENDING||Dependency\n");
    assert!(runner(dir, &["status", JOB], 0).contains("8 shards: 8 queued"));
    says("1|CANCELLED||None\n2|CANCELLED||None\n");
    let said = runner(dir, &["status", JOB], 1);
    assert!(said.contains("8 shards: 8 failed") && said.contains("(task 1_3): cancelled"), "{said}");
    assert!(submit(dir, SCALE, &[], 0).contains("8 shards in 8 tasks"));
    // The same from accounting.
    age(dir);
    says("");
    fs::write(dir.join("slurm/sacct.says"), "3|CANCELLED by 0|None assigned|None|0:0\n").unwrap();
    assert!(runner(dir, &["status", JOB], 1).contains("8 shards: 8 failed"));
}

#[test]
fn cases_that_were_not_run_are_not_done_and_the_reason_is_named() {
    let dir = project(SCALE);
    let dir = dir.path();
    submit(dir, SCALE, &["--time", "1h", "--warning", "1min"], 0);
    let shard = dir.join(JOB).join("shards/scale/1-of-8/attempt-0001/journal.jsonl");
    // As a task leaves it that stops before its limit: the second case is not run, and the run is incomplete.
    let text = fs::read_to_string(&shard).unwrap();
    let sealed = |value: &serde_json::Value| runner_files::sealed::line(value.to_string()) + "\n";
    let mut ran = 0;
    let mut stopped = String::new();
    for line in text.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("sum");
        if value["event"] == "case_settled" {
            ran += 1;
            if ran == 2 {
                value["outcome"] = serde_json::json!({ "kind": "not_run", "why": "interrupted" });
            }
        } else if value["event"] == "run_finished" {
            value["complete"] = false.into();
        }
        stopped += &sealed(&value);
    }
    assert_eq!(ran, 2);
    fs::write(&shard, stopped).unwrap();
    let log = dir.join(JOB).join("tasks/1-0.jsonl");
    let lines: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    let stop = r#"{"at":"2026-01-01T00:00:00.000Z","event":"stopped","why":"its time limit was near"}"#;
    fs::write(&log, format!("{}\n{stop}\n", lines[0])).unwrap();
    fs::write(dir.join("slurm/squeue.says"), "1_0|PENDING||BeginTime\n").unwrap();
    forget(dir);
    let said = runner(dir, &["status", JOB], 0);
    assert!(said.contains("15 of 16 cases done"), "{said}");
    assert!(said.contains("(task 1_0): BeginTime; it is restarted: its time limit was near"), "{said}");
    fs::write(dir.join("slurm/squeue.says"), "1_0|FAILED|n1|None\n").unwrap();
    forget(dir);
    let said = runner(dir, &["status", JOB], 1);
    assert!(said.contains("exited with an error on n1: its time limit was near"), "{said}");
    assert!(said.contains("submit again with a longer --time or more --requeues, or set time_factor"), "{said}");
}

#[test]
fn the_finalists_of_another_scheduler_wait_for_the_shards() {
    let dir = project(SCALE);
    let searched = MANIFEST
        .replace("baseline = \"plain\"", "compare = [\"block\"]\nbaseline = { variant = \"plain\", block = 64 }");
    fs::write(dir.path().join(SCALE), searched).unwrap();
    for (scheduler, expected) in
        [("pbs", "-W depend=afterany:&"), ("lsf", "ended(&)"), ("flux", "--dependency=afterany:{id}")]
    {
        let words = ["submit", SCALE, "--tune", "2", "--backend", "sim", "--set", "n=256", "--scheduler", scheduler];
        let said = runner(dir.path(), &[&words[..], &["--name", scheduler]].concat(), 0);
        let commands: Vec<&str> = said.lines().filter(|line| line.contains("task-1-")).collect();
        assert_eq!(commands.len(), 2, "{said}");
        assert!(!commands[0].contains(expected) && commands[1].contains(expected), "{said}");
        assert!(commands[1].contains(&format!("runner-{scheduler}")), "{said}");
    }
}
