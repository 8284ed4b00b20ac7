//! What a check accepts and what it says, through the real binary, on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A folder with the sources and manifests of these tests.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/checking");
    for entry in fs::read_dir(fixtures).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// Exit code, standard output and standard error together.
fn runner(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["--color", "never"])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

/// Runs a manifest on the simulator with a report in `MANIFEST.out`.
fn run(folder: &TempDir, manifest: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let out = format!("{manifest}.out");
    runner(folder, &[&["run", manifest, "--backend", "sim", "--offline", "--out", &out], arguments].concat())
}

#[track_caller]
fn expect(said: (Option<i32>, String), code: i32, words: &[&str]) -> String {
    let (ended, text) = said;
    assert_eq!(ended, Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
    text
}

#[test]
fn scratch_memory_that_another_variant_wrote_was_never_written() {
    let folder = folder();
    let never = "which was never written";
    expect(run(&folder, "counter.toml", &[]), 1, &["forgets_to", never]);
    expect(run(&folder, "counter.toml", &["--variant", "forgets_to"]), 1, &[never]);
    expect(run(&folder, "counter.toml", &["--variant", "zeroes_the_counter"]), 0, &[]);
    expect(run(&folder, "copies.toml", &[]), 1, &["cheat", never]);
}

#[test]
fn variables_and_the_heap_are_those_of_a_new_process_for_every_variant() {
    let words = ["3 of 4 cases passed", "wrong, copies_a_variable: out against 2 * x: element 1 is 0.0, expected 2.0"];
    expect(run(&folder(), "state.toml", &[]), 1, &words);
}
