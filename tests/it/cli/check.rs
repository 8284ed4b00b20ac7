//! `runner check`: its output for every kind of fault.
//!
//! `check/experiments/NAME.toml` contains the faults, `NAME.stderr` next to it the expected output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::snapshot;

/// Folder that these tests run in; manifests are named relative to it.
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
fn json_has_a_line_per_manifest_with_every_fault_and_its_place() {
    let output = check(&["--json", "experiments/no_variant.toml", "sound/sound.toml"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), ""));
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [faulty, sound] = &lines[..] else { panic!("{lines:?}") };
    let expected = serde_json::json!({
        "version": 1, "manifest": "sound/sound.toml", "ok": true, "experiment": "sound", "variants": 3, "axes": 2,
    });
    assert_eq!(sound, &expected);
    let said = std::fs::read_to_string(folder().join("experiments/no_variant.stderr")).unwrap();
    let fault = &faulty["faults"][0];
    assert_eq!((&faulty["version"], &faulty["ok"], &faulty["omitted"]), (&1.into(), &false.into(), &0.into()));
    assert!(said.starts_with(&format!("error: {}\n", fault["message"].as_str().unwrap())), "{fault}");
    // The text output names the same places for the other faults.
    for path in manifests() {
        let name = format!("experiments/{}", path.file_name().unwrap().to_str().unwrap());
        let said = std::fs::read_to_string(path.with_extension("stderr")).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&check(&["--json", &name]).stdout).unwrap();
        for fault in line["faults"].as_array().unwrap().iter().take(10) {
            let Some((line, column)) = fault["line"].as_u64().zip(fault["column"].as_u64()) else { continue };
            assert!(said.contains(&format!("--> {name}:{line}:{column}\n")), "{fault}: {said}");
        }
    }
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

/// A manifest of one kernel in `k.cu`, which copies a buffer filled by `fill`.
fn filled(element: &str, fill: &str) -> String {
    format!(
        "[experiment]\nname = \"x\"\n[buffers.x]\ntype = \"{element}\"\nlen = 1\nfill = [{fill}]\n[[variant]]\nname = \"v\"\n\
         source = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\nargs = [\"x\"]\n"
    )
}

#[test]
fn what_is_in_place_of_a_source_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("k.cu");
    std::fs::write(dir.path().join("m.toml"), filled("f32", "1")).unwrap();
    let refused = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(dir.path()).args(["--color", "never", "check", "m.toml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr).lines().next().unwrap().to_owned()
    };
    assert_eq!(refused(), "error: there is no source `k.cu`");
    std::fs::create_dir(&source).unwrap();
    assert_eq!(refused(), "error: cannot read `k.cu`: it is a folder, not a file");
    std::fs::remove_dir(&source).unwrap();
    assert!(Command::new("mkfifo").arg(&source).status().unwrap().success());
    assert_eq!(refused(), "error: cannot read `k.cu`: it is a pipe, not a file");
    std::fs::remove_file(&source).unwrap();
    std::os::unix::fs::symlink("k.cu", &source).unwrap();
    assert_eq!(refused(), "error: cannot read `k.cu`: too many levels of symbolic links");
    std::fs::remove_file(&source).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &source).unwrap();
    assert!(refused().contains("outside"), "{}", refused());
    // The error suggests no other name, because the file's own name is right.
    std::fs::write(dir.path().join("m.toml"), format!("# {}", "x".repeat(9 << 20))).unwrap();
    assert_eq!(refused(), "error: cannot read the manifest: it has more than 8 MB");
}

#[test]
fn a_number_that_rounds_to_the_largest_of_its_type_is_of_the_type() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("k.cu"), "extern \"C\" __global__ void k(void *x) {}\n").unwrap();
    // FLT_MAX as C prints it is above the largest f32, 2^128 - 2^104; from 2^128 - 2^103 on, values round to infinity.
    // 65,520 lies halfway between the largest f16, 65,504, and 65,536, which is even.
    let cases = [
        ("f32", "3.4028235e38", true),
        ("f32", "3.4028236e38", false),
        ("f16", "65519.9", true),
        ("f16", "65520", false),
        ("u64", "9223372036854775807", true),
        ("u64", "9223372036854775808", false),
    ];
    for (element, value, is_sound) in cases {
        std::fs::write(dir.path().join("m.toml"), filled(element, value)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(dir.path()).args(["--color", "never", "check", "m.toml"]).output().unwrap();
        assert_eq!(output.status.success(), is_sound, "{element} {value}: {}", text(&output.stderr));
    }
}
