//! `runner setup` against pip: the real one without access to any index, and scripts that replace it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::programs::write_program;

/// A private cache, and a pip that reaches nothing by default.
struct Home {
    dir: TempDir,
}

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn setup(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .args(["setup", "--cuda", "13"])
            .env("RUNNER_CACHE", self.dir.path().join("cache"))
            .env_remove("RUNNER_TOOLKIT")
            .env("PIP_NO_INDEX", "1")
            .env("PIP_NO_CACHE_DIR", "1");
        command
    }

    /// A shell script in place of the Python interpreter.
    fn python(&self, text: &str) -> String {
        let path = self.dir.path().join("python");
        write_program(&path, &format!("#!/bin/sh\n{text}\n"));
        path.to_str().unwrap().to_owned()
    }

    /// Whether a failed fetch left only its lock file.
    fn is_clean(&self) -> bool {
        let names = fs::read_dir(self.dir.path().join("cache/toolkit")).unwrap();
        names.map(|entry| entry.unwrap().file_name()).eq(["cuda-13.0.88.lock"])
    }
}

fn said(command: &mut Command) -> Said {
    let out = command.output().unwrap();
    Said {
        code: out.status.code(),
        stdout: String::from_utf8(out.stdout).unwrap(),
        stderr: String::from_utf8(out.stderr).unwrap(),
    }
}

fn fails_with(home: &Home, command: &mut Command, words: &[&str]) {
    let said = said(command);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    for words in words {
        assert!(said.stderr.contains(words), "{words:?} is not in: {}", said.stderr);
    }
    assert!(home.is_clean());
}

/// Script in place of pip: unpacks something that looks like the toolkit into the folder after `--target`.
const UNPACK: &str = r#"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nvidia/cu13/lib" "$2/nvidia/cu13/include" "$2/nvidia_cuda_nvrtc-13.0.88.dist-info" "$2/nvidia/cu13/bin"
touch "$2/nvidia/cu13/lib/libnvrtc.so.13" "$2/nvidia/cu13/lib/libnvrtc-builtins.so.13.0"
touch "$2/nvidia/cu13/lib/libnvrtc.alt.so.13" "$2/nvidia/cu13/include/cuda_fp16.h"
"#;

#[test]
fn offline_setup_says_what_is_missing_and_how_to_get_it() {
    let home = Home::new();
    let said = said(home.setup().arg("--offline"));
    assert_eq!(said.code, Some(3));
    let place = home.dir.path().join("cache/toolkit/cuda-13.0.88");
    assert!(said.stderr.contains(&format!("{} is not there", place.display())), "{}", said.stderr);
    assert!(said.stderr.contains("`runner setup --cuda 13` fetches NVRTC 13.0.88"), "{}", said.stderr);
    assert!(!place.parent().unwrap().exists());
}

#[test]
fn a_machine_without_python_is_told_so() {
    let home = Home::new();
    let command = &mut home.setup();
    fails_with(
        &home,
        command.env("RUNNER_PYTHON", "no-such-python"),
        &["cannot run `no-such-python`", "RUNNER_PYTHON"],
    );
}

#[test]
fn a_python_without_pip_is_told_so() {
    let home = Home::new();
    let environment = home.dir.path().join("venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&environment).status().unwrap();
    assert!(made.success());
    let python = environment.join("bin/python");
    let has_no_pip = format!("`{}` has no pip", python.display());
    fails_with(&home, home.setup().env("RUNNER_PYTHON", &python), &[&has_no_pip, "python3-pip"]);
}

#[test]
fn an_index_that_lacks_the_package_is_told_apart_from_no_network() {
    let home = Home::new();
    fails_with(&home, &mut home.setup(), &["lacks a pinned package", "nvidia-cuda-nvrtc==13.0.88"]);
    let unreachable = &mut home.setup();
    // Nothing listens on port 9 of this machine.
    unreachable.env_remove("PIP_NO_INDEX").env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("PIP_RETRIES", "1");
    fails_with(&home, unreachable, &["could not reach a package index", "check the network", "RUNNER_TOOLKIT"]);
    let warn = |left: u32| format!("echo 'WARNING: Retrying (Retry(total={left}, connect=None)) after x' >&2");
    let python = home.python(&format!("{}; {}; {}; exit 1", warn(2), warn(1), warn(0)));
    let said = said(home.setup().env("RUNNER_PYTHON", python)).stderr;
    assert_eq!(said.matches("Retrying").count(), 1, "one attempt says as much as three: {said}");
}

#[test]
fn a_package_with_another_hash_is_thrown_away() {
    let home = Home::new();
    let wheels = home.dir.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    let tags = format!("py3-none-manylinux2014_{0}.manylinux_2_17_{0}", std::env::consts::ARCH);
    for package in ["nvrtc-13.0.88", "runtime-13.0.96", "cccl-13.0.85", "crt-13.0.88"] {
        fs::write(wheels.join(format!("nvidia_cuda_{package}-{tags}.whl")), "not what was pinned").unwrap();
    }
    fails_with(&home, home.setup().env("PIP_FIND_LINKS", &wheels), &["does not have its pinned hash"]);
}

#[test]
fn a_full_disk_and_any_other_failure_of_pip_are_told() {
    let home = Home::new();
    let full = home.python("echo 'ERROR: Could not install packages: [Errno 28] No space left on device' >&2; exit 1");
    fails_with(
        &home,
        home.setup().env("RUNNER_PYTHON", full),
        &["no space is left in", "MB are needed", "RUNNER_CACHE"],
    );
    let odd = home.python("echo 'ERROR: something odd' >&2; exit 2");
    fails_with(&home, home.setup().env("RUNNER_PYTHON", odd), &["pip failed", "pip: ERROR: something odd"]);
    let empty = home.python(&format!("{UNPACK}\nrm \"$2\"/nvidia/cu13/include/cuda_fp16.h"));
    fails_with(
        &home,
        home.setup().env("RUNNER_PYTHON", empty),
        &["the fetched packages are incomplete", "no CUDA headers"],
    );
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let home = Home::new();
    fs::write(home.dir.path().join("cache"), "a file").unwrap();
    let said = said(&mut home.setup());
    assert_eq!(said.code, Some(3));
    let place = home.dir.path().join("cache/toolkit");
    assert!(said.stderr.contains(&format!("cannot create {}", place.display())), "{}", said.stderr);
    assert!(said.stderr.contains("set RUNNER_CACHE to a writable folder"), "{}", said.stderr);
}

#[test]
fn a_run_that_can_keep_no_code_leaves_nothing_behind() {
    let home = Home::new();
    let python = home.python(UNPACK);
    assert_eq!(said(home.setup().env("RUNNER_PYTHON", &python)).code, Some(0));
    let (code, out) = (home.dir.path().join("cache/code"), home.dir.path().join("out"));
    fs::write(code, "a file").unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_runner"));
    run.current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["run", "experiments/warp_primitives.toml", "--backend", "sim", "--out"])
        .arg(&out)
        .env("RUNNER_CACHE", home.dir.path().join("cache"))
        .env_remove("RUNNER_TOOLKIT");
    let said = said(&mut run);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert!(said.stderr.contains("set RUNNER_CACHE to a writable folder"), "{}", said.stderr);
    assert!(!out.exists(), "a folder was made for a run that never began");
}

#[test]
fn what_is_fetched_is_kept_without_what_no_compile_needs() {
    let home = Home::new();
    let python = home.python(UNPACK);
    let wreck = home.dir.path().join("cache/toolkit/.fetching-13.0.88-x");
    fs::create_dir_all(&wreck).unwrap();
    let first = said(home.setup().env("RUNNER_PYTHON", &python));
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let root = home.dir.path().join("cache/toolkit/cuda-13.0.88/nvidia/cu13");
    let library = fs::canonicalize(root.join("lib/libnvrtc.so.13")).unwrap();
    assert_eq!(first.stdout, format!("NVRTC 13.0.88 (fetched): {}\n", library.display()));
    assert!(!root.join("lib/libnvrtc.alt.so.13").exists() && !root.join("bin").exists());
    assert!(!wreck.exists(), "what a killed process left goes");
    // The second time there is nothing to do, so pip is not even called.
    let second = said(home.setup().env("RUNNER_PYTHON", "no-such-python"));
    assert_eq!((second.code, second.stdout, second.stderr.as_str()), (Some(0), first.stdout, ""));
}

#[test]
fn processes_that_need_the_compiler_at_once_fetch_it_once() {
    let home = Home::new();
    let calls = home.dir.path().join("calls");
    let python = home.python(&format!("echo call >> '{}'; sleep 0.5\n{UNPACK}", calls.display()));
    let start = || -> Child {
        home.setup().env("RUNNER_PYTHON", &python).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..3).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fs::read_to_string(calls).unwrap(), "call\n");
}

#[test]
fn the_log_names_the_lock_that_is_waited_for() {
    let home = Home::new();
    let place = home.dir.path().join("cache/toolkit/cuda-13.0.88.lock");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let lock = File::create(&place).unwrap();
    lock.lock().unwrap();
    let mut setup = home.setup();
    setup.arg("-v").env("RUNNER_PYTHON", home.python(UNPACK)).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut setup = setup.spawn().unwrap();
    let mut log = BufReader::new(setup.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waits = format!("wait for the lock file={}", place.display());
    assert!(log.any(|line| line.ends_with(&format!(" s  begin {waits}"))));
    lock.unlock().unwrap();
    assert!(log.any(|line| line.contains(&format!(" s  end {waits} after "))));
    assert!(log.any(|line| line.contains(" s  begin run pip ")));
    log.for_each(drop);
    assert!(setup.wait().unwrap().success());
}

#[test]
fn a_toolkit_that_the_environment_names_is_used_when_it_is_the_pinned_one_and_refused_with_a_reason_otherwise() {
    let home = Home::new();
    let make = |build: &str| {
        let root = home.dir.path().join(build);
        let write = |name: &str| {
            let path: &Path = &root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        write("nvidia/cu13/lib/libnvrtc.so.13");
        write("nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
        write("nvidia/cu13/include/cuda_fp16.h");
        write(&format!("nvidia_cuda_nvrtc-{build}.dist-info/METADATA"));
        root
    };
    let pinned = said(home.setup().arg("--offline").env("RUNNER_TOOLKIT", make("13.0.88")));
    assert_eq!(pinned.code, Some(0), "{}", pinned.stderr);
    let other = said(home.setup().arg("--offline").env("RUNNER_TOOLKIT", make("13.0.12")));
    assert_eq!(other.code, Some(3));
    assert!(other.stderr.contains("is NVRTC 13.0.12, but only 13.0.88 is accepted"), "{}", other.stderr);
}
