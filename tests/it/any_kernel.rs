//! Kernels as people have them, described in one manifest: code of another compiler, and what a manifest can say of data,
//! references and arguments. `any_kernel/experiments/any_kernel.toml` has all of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::gpu::first;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/any_kernel")
}

fn runner(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(folder).args(["--color", "never"]).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Runs the manifest on a backend. Every case of it must be right.
fn run(backend: &str) {
    let reports = tempfile::tempdir().unwrap();
    let out = reports.path().join("report");
    let out = out.to_str().unwrap();
    let arguments = ["run", "experiments/any_kernel.toml", "--backend", backend, "--quiet", "--out", out];
    let output = runner(&folder(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = std::fs::read_to_string(reports.path().join("report/report.md")).unwrap();
    assert!(!report.contains("mismatch"), "{report}");
    assert!(report.contains("triton"), "{report}");
}

#[test]
fn every_case_is_right_on_the_simulator() {
    run("sim");
}

#[test]
fn every_case_is_right_on_a_gpu() {
    // The guard stays, so that no other test times anything meanwhile.
    if let Some((device, _turn)) = first::device() {
        drop(device);
        run("cuda");
    }
}

#[test]
fn an_entry_of_tritons_cache_becomes_a_source_and_a_manifest_that_runs() {
    let project = tempfile::tempdir().unwrap();
    let cache = folder().join("triton_cache");
    let output = runner(project.path(), &["import", "triton", cache.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let manifest = std::fs::read_to_string(project.path().join("experiments/softmax.toml")).unwrap();
    let launch = "source = \"softmax.ptx\"\nkernel = \"softmax\"\ngrid   = [\"ceil_div(n, 1024)\"]\nblock  = [128]\n\
                  shared = 16\nargs   = [\"out_ptr\", \"in_ptr\", \"i32(n)\", \"null\", \"null\"]\n";
    assert!(manifest.ends_with(launch), "{manifest}");
    // The code stores to one pointer and loads from the other.
    assert!(manifest.contains("[buffers.out_ptr]\ntype   = \"f32\"\nlen    = \"n\"\naccess = \"out\"\n"), "{manifest}");
    assert!(manifest.contains("fill   = { uniform = [0.0, 1.0] }\naccess = \"in\"\n"), "{manifest}");
    let again = runner(project.path(), &["import", "triton", cache.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2), "files that exist are kept");
    let run = ["run", "experiments/softmax.toml", "--backend", "sim", "--quiet", "--set", "n=1024"];
    let output = runner(project.path(), &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn a_folder_without_a_kernel_of_triton_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let output = runner(empty.path(), &["import", "triton", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains(". has no kernel of Triton: a .ptx with its .json"), "{}", text(&output));
}
