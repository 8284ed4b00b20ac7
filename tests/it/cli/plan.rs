//! `runner plan`: its output without a device. The expected output is in `plan/*.txt` and `plan/*.jsonl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::snapshot;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/plan")
}

/// Runs the command as on a machine without a GPU.
fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder())
        .args(["--color", "never", "plan"])
        .args(arguments)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap()
}

#[track_caller]
fn answers(arguments: &[&str], golden: &str) {
    let output = plan(arguments);
    let (said, complaint) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""), "{arguments:?}");
    snapshot::assert_is(&said, &folder().join(golden));
}

#[track_caller]
fn refuses(arguments: &[&str], words: &[&str]) {
    let output = plan(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(said.contains(word), "`{word}` is not in:\n{said}");
    }
}

#[test]
fn without_a_device_it_says_what_depends_on_one() {
    answers(&["experiments/ladder.toml", "--backend", "cuda"], "ladder.txt");
}

#[test]
fn with_a_device_description_limits_and_memory_are_judged() {
    answers(&["experiments/ladder.toml", "--device-profile", "device.json"], "ladder_on_device.txt");
    answers(&["experiments/shapes.toml", "--device-profile", "device.json"], "shapes_on_device.txt");
}

#[test]
fn the_simulator_has_its_own_axes_and_a_device_that_is_always_known() {
    answers(&["experiments/ladder.toml", "--backend", "sim"], "ladder_on_sim.txt");
    // Without a GPU, `auto` plans what `run` would run.
    answers(&["experiments/ladder.toml"], "ladder_on_sim.txt");
    let output = |arguments: &[&str]| String::from_utf8(plan(arguments).stdout).unwrap();
    let named = output(&["experiments/ladder.toml", "--sim-device", "a100"]);
    assert!(named.lines().last().unwrap().contains("A100"), "{named}");
}

#[test]
fn json_has_a_line_for_the_plan_and_one_for_every_case() {
    let narrowing = ["--filter", "n == 1024 && block == 256", "--set", "type=i32"];
    let arguments = [&["experiments/ladder.toml", "--backend", "cuda", "--json"], narrowing.as_slice()].concat();
    answers(&arguments, "narrowed.jsonl");
    let output = plan(&["experiments/ladder.toml", "--backend", "cuda", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // 6 sizes × 2 blocks × 2 types, plus the included point, for 6 variants.
    assert_eq!((lines[0]["cases"].as_u64(), lines.len()), (Some(25 * 6), 1 + 25 * 6));
}

#[test]
fn mistakes_end_it_with_the_code_of_usage() {
    refuses(&["experiments/nowhere.toml"], &["nowhere.toml"]);
    refuses(
        &["experiments/ladder.toml", "--filter", "blok == 256"],
        &["there is no axis `blok`", "did you mean `block`?"],
    );
    refuses(
        &["experiments/ladder.toml", "--set", "n=none"],
        &["--set n=none", "`none` is a name, but the axis has values of type integer"],
    );
    refuses(&["experiments/ladder.toml", "--variant", "naiv"], &["did you mean `naive`?"]);
    refuses(
        &["experiments/ladder.toml", "--device-profile", "plan.rs"],
        &["--device-profile plan.rs: No such file", "`runner devices --json`"],
    );
    refuses(
        &["experiments/ladder.toml", "--device-profile", "experiments/shapes.toml"],
        &["shapes.toml: not JSON: expected"],
    );
}

#[test]
fn every_shipped_experiment_plans_with_and_without_a_device() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let paths: Vec<PathBuf> = std::fs::read_dir(shipped).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
        let path = path.to_str().unwrap();
        for more in [&["--backend", "cuda"] as &[&str], &["--device-profile", "device.json"], &["--backend", "sim"]] {
            let output = plan(&[&[path], more].concat());
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("to run"), "{path} {more:?}: {said}");
            assert!(!said.contains("unresolved"), "{path} {more:?}: {said}");
        }
    }
}
