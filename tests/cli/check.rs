//! `runner check`: what it says of every kind of fault, word for word.
//!
//! `check/experiments/NAME.toml` holds the faults, `NAME.stderr` beside it what must be said of them. With
//! `RUNNER_BLESS=1` the answers are written anew; read the difference before it is committed.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder that the manifests of these tests are named from.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/check")
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
    let bless = std::env::var_os("RUNNER_BLESS").is_some();
    let mut wrong = Vec::new();
    let manifests = manifests();
    assert!(manifests.len() >= 30, "{} manifests", manifests.len());
    for path in manifests {
        let name = format!("experiments/{}", path.file_name().unwrap().to_str().unwrap());
        let output = check(&[&name]);
        let (said, golden) = (text(&output.stderr), path.with_extension("stderr"));
        if bless {
            std::fs::write(&golden, &said).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if said != expected || output.status.code() != Some(2) || !output.stdout.is_empty() {
            wrong.push(format!("{name}: exit {:?}\n{said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
