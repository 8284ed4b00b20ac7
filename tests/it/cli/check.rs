//! `runner check`: what it prints about every kind of fault.
//!
//! `check/experiments/NAME.toml` has the faults, `NAME.stderr` beside it the expected output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::snapshot;

/// The folder that the manifests of these tests are named from.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/check")
}

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder())
        .args(["--color", "never", "check"])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn manifests() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join("experiments")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    paths
}

#[test]
fn every_fault_is_reported_with_its_line_and_a_hint() {
    let manifests = manifests();
    assert!(manifests.len() >= 30, "{} manifests", manifests.len());
    for path in manifests {
        let name = format!("experiments/{}", path.file_name().unwrap().to_str().unwrap());
        let output = check(&[&name]);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{name}");
        snapshot::assert_is(&text(&output.stderr), &path.with_extension("stderr"));
    }
}

#[test]
fn a_sound_manifest_is_summed_up_and_a_faulty_one_beside_it_decides_the_exit_code() {
    let output = check(&["experiments/no_variant.toml", "sound/sound.toml"]);
    assert_eq!(text(&output.stdout), "sound/sound.toml: ok: 3 variants, 2 axes\n");
    assert!(text(&output.stderr).ends_with("experiments/no_variant.toml: 1 fault\n"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let output = check(&["sound/sound.toml", "sound/names.toml"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn colour_is_used_where_it_is_asked_for() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let arguments = ["--color", "always", "check", "experiments/no_variant.toml"];
    let output = command.current_dir(folder()).args(arguments).output().unwrap();
    assert!(text(&output.stderr).contains("\u{1b}["));
}

#[test]
fn every_shipped_experiment_is_sound_and_names_its_schema() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let entries = std::fs::read_dir(experiments).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(paths.len() >= 3, "{paths:?}");
    for path in paths {
        let output = check(&[path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let manifest = std::fs::read_to_string(&path).unwrap();
        assert_eq!(manifest.lines().next(), Some("#:schema ../schema/experiment.schema.json"), "{}", path.display());
    }
}
