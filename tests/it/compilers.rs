//! One kernel compiled by NVRTC, nvcc and clang, in one group: `any_kernel/experiments/compilers.toml`. Compilers that
//! are not installed are skipped.

use std::path::Path;
use std::process::{Command, Output};

use runner_compile::{Clang, Nvcc};
use runner_process::programs::Programs;

use crate::gpu::first;

/// Variants whose compiler is installed.
fn variants() -> Vec<&'static str> {
    let programs = Programs::of_this_machine();
    let nvcc = Nvcc::installed(&programs);
    let clang = nvcc.as_ref().and_then(|nvcc| Clang::find(nvcc, &programs));
    let found = [("nvrtc", true), ("nvcc", nvcc.is_some()), ("clang", clang.is_some())];
    let (there, not): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, found)| *found);
    for (name, _) in not {
        println!("skipped: {name} is not installed");
    }
    there.into_iter().map(|(name, _)| name).collect()
}

fn runner(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/any_kernel"))
        .env("XDG_STATE_HOME", state)
        .args(["--color", "never", "run", "experiments/compilers.toml", "--out"])
        .arg(state.join("report"))
        .args(arguments);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Runs the kernel with every installed compiler; every result must be right.
fn run(backend: &str) {
    let variants = variants();
    if variants.len() == 1 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["--backend", backend, "--quiet", "--allow-host-code"];
    arguments.extend(variants.iter().flat_map(|&name| ["--variant", name]));
    let output = runner(folder.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    for name in &variants {
        // The fastest variant's name is bold.
        assert!(
            [format!("| `{name}` |"), format!("| **`{name}`** |")].iter().any(|row| report.contains(row)),
            "{report}"
        );
    }
    let count = variants.len();
    let done = if backend == "sim" { "passed" } else { "measured" };
    assert!(report.contains(&format!("{count} of {count} cases {done}")), "{report}");
    let method = report.lines().find(|line| line.contains("NVRTC 1")).unwrap();
    for name in &variants[1..] {
        assert!(method.contains(&format!("{name} 1")), "{method}");
    }
}

#[test]
fn one_kernel_is_right_by_every_compiler_on_the_simulator() {
    run("sim");
}

#[test]
#[ignore = "needs a GPU"]
fn one_kernel_is_right_by_every_compiler_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    run("cuda");
}

#[test]
fn a_compiler_that_is_missing_ends_the_run_and_is_named_with_what_to_install() {
    if Path::new("/usr/local/cuda/bin/nvcc").exists() {
        println!("skipped: nvcc is always found here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let variant = ["--variant", "nvcc"];
    let mut command = runner(folder.path(), &[&["--backend", "sim", "--quiet", "--offline"], &variant[..]].concat());
    let output = command.env("PATH", folder.path()).env_remove("CUDA_HOME").env_remove("CUDA_PATH").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let message = "error: cannot compile variant `nvcc` with nvcc: nvcc needs a C++ compiler";
    assert!(text(&output).contains(message) && text(&output).contains("install g++"), "{}", text(&output));
    assert!(!folder.path().join("report").exists(), "nothing is written");
}

#[test]
fn a_compiler_that_is_a_program_needs_consent_only_without_a_sandbox() {
    if !variants().contains(&"nvcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = runner(folder.path(), &["--backend", "sim", "--quiet", "--variant", "nvcc"]).output().unwrap();
    let wanted = if runner_process::sandbox::is_enforced() { 0 } else { 2 };
    assert_eq!(output.status.code(), Some(wanted), "{}", text(&output));
}
