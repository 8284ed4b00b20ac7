//! `runner run --devices`, on simulators.

use std::fs;
use std::path::Path;

use super::shards::{DEVICE, project, runner};

const FILES: [&str; 4] = ["report.md", "records.jsonl", "results.csv", "environment.json"];

/// Adds a second manifest, whose groups all take longer than those of `scale`.
fn with_larger(dir: &Path) {
    let scale = fs::read_to_string(dir.join("experiments/scale.toml")).unwrap();
    let larger = scale.replace("\"scale\"\ntitle", "\"larger\"\ntitle").replace("[8, 14, 2]", "[16, 18, 2]");
    fs::write(dir.join("experiments/larger.toml"), larger).unwrap();
}

const MANIFESTS: [&str; 4] = ["run", "experiments/scale.toml", "experiments/larger.toml", "--backend=sim"];

fn same_reports(dir: &Path) {
    for experiment in ["scale", "larger"] {
        for file in FILES {
            let alone = fs::read(dir.join("alone").join(experiment).join(file)).unwrap();
            let shared = fs::read(dir.join("reports").join(experiment).join(DEVICE).join(file)).unwrap();
            assert!(alone == shared, "{experiment}: {file} differs");
        }
    }
}

/// `n` and `block` of each group in a journal, in the order in which the groups started.
fn begun(dir: &Path, experiment: &str, gpu: &str) -> Vec<[u64; 2]> {
    let path = dir.join("target/devices").join(experiment).join(gpu).join("journal.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    let events = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let started = events.filter(|event| event["event"] == "group_started");
    started.map(|event| [0, 1].map(|axis| event["key"][axis][1].as_u64().unwrap())).collect()
}

#[test]
fn two_simulators_share_the_groups_of_all_manifests_and_make_the_reports_of_one() {
    let dir = project();
    with_larger(dir.path());
    runner(dir.path(), &[&MANIFESTS[..], &["--out", "alone"]].concat(), 0);
    let said = runner(dir.path(), &[&MANIFESTS[..], &["--devices", "0,1"]].concat(), 0);
    assert!(said.contains("on 2 GPUs; 0 GPUs lost"), "{said}");
    same_reports(dir.path());

    // Longest first: the groups of `larger`, then by size.
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("GPU ")).collect();
    let first_of_scale = lines.iter().position(|line| line.contains(": scale ")).unwrap();
    assert!(lines[first_of_scale + 1..].iter().filter(|line| line.contains(": larger ")).count() <= 1, "{lines:#?}");
    for experiment in ["scale", "larger"] {
        let of_each = ["0", "1"].map(|gpu| begun(dir.path(), experiment, gpu));
        for begun in &of_each {
            assert!(begun.is_sorted_by(|[a, _], [b, _]| a >= b), "{experiment}: {of_each:?}");
        }
        let all = of_each.concat().len();
        assert_eq!(lines.iter().filter(|line| line.contains(&format!(": {experiment} "))).count(), all);
    }
}

#[test]
fn an_interrupted_run_is_continued_on_other_devices() {
    let dir = project();
    with_larger(dir.path());
    runner(dir.path(), &[&MANIFESTS[..], &["--out", "alone"]].concat(), 0);
    runner(dir.path(), &[&MANIFESTS[..], &["--devices", "1,2"]].concat(), 0);
    // One device's results are lost, as when the disk of a node fails.
    fs::remove_file(dir.path().join("target/devices/scale/2/journal.jsonl")).unwrap();
    let mut kept = begun(dir.path(), "scale", "1");
    let said = runner(dir.path(), &[&MANIFESTS[..], &["--devices", "0", "--resume"]].concat(), 0);
    same_reports(dir.path());
    assert!(!said.contains(": larger "), "{said}");
    let mut again = begun(dir.path(), "scale", "0");
    kept.sort_unstable();
    assert_eq!(again[..kept.len()], kept, "the journal is continued, in the plan's order");
    again.sort_unstable();
    again.dedup();
    assert_eq!((again.len(), begun(dir.path(), "scale", "0").len()), (7, 7), "each group ran once");
    assert!(!dir.path().join("target/devices/scale/1/journal.jsonl").exists());
}

/// The journals of all GPUs must state the same command for recreating the report, because journals of different
/// commands are not merged.
#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn two_gpus_share_the_groups_of_a_manifest_and_make_one_report() {
    let listed = std::process::Command::new("nvidia-smi").arg("-L").output();
    let listed = listed.map_or(0, |output| String::from_utf8_lossy(&output.stdout).lines().count());
    // `nvidia-smi` lists GPUs that this variable hides from CUDA programs.
    let visible =
        std::env::var("CUDA_VISIBLE_DEVICES").map(|names| names.split(',').filter(|name| !name.is_empty()).count());
    let gpus = visible.map_or(listed, |visible| visible.min(listed));
    if gpus < 2 {
        eprintln!("skipped: {gpus} GPUs, and the test needs two");
        return;
    }
    let dir = project();
    let said = runner(dir.path(), &["run", "experiments/scale.toml", "--backend=cuda", "--devices", "0,1"], 0);
    assert!(said.contains("on 2 GPUs; 0 GPUs lost"), "{said}");
}
