//! The log of `-v` and `RUNNER_LOG`, as a user reads it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const MANIFEST: &str = include_str!("../../slurm/project/experiments/scale.toml");
const KERNEL: &str = include_str!("../../slurm/project/kernels/scale.cu");

/// A project with kernels that no earlier test has compiled.
fn project(manifest: &str, kernel: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let kernel = format!("// {}\n{kernel}", dir.path().display());
    for (name, text) in [("experiments/scale.toml", manifest), ("kernels/scale.cu", &kernel)] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn command(dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(dir).env_remove("RUNNER_LOG").args(options);
    command.args([
        "run",
        "experiments/scale.toml",
        "--backend",
        "sim",
        "--set",
        "n=256",
        "--set",
        "block=64",
        "--quiet",
    ]);
    command
}

/// Standard error of a successful run.
#[track_caller]
fn log_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    log
}

/// Log lines without their times, which must not decrease.
fn texts(log: &str) -> Vec<&str> {
    let mut last = 0.0;
    let text = |line| {
        let (time, text) = str::split_once(line, " s  ").unwrap_or_else(|| panic!("no time: {line}"));
        let time: f64 = time.trim().parse().unwrap();
        assert!(time >= last, "{log}");
        last = time;
        text
    };
    log.lines().map(text).collect()
}

/// Number of lines that contain these words in this order.
fn count(log: &str, words: &[&str]) -> usize {
    let has = |line: &&str| words.iter().try_fold(*line, |rest, word| Some(rest.split_once(word)?.1)).is_some();
    texts(log).iter().filter(|line| has(line)).count()
}

#[test]
fn the_log_says_what_is_compiled_first_and_what_is_taken_from_the_cache_later() {
    let dir = project(MANIFEST, KERNEL);
    let first = log_of(&mut command(dir.path(), &["-v"]));
    let compile = r#"compile source=kernels/scale.cu kernels=["twice"]"#;
    for expected in [
        &["runner 0.1.0 ", r#"arguments=["-v", "run", "#][..],
        &["end read the manifest file=experiments/scale.toml after ", " s"],
        &["found the compiler ", "libnvrtc.so"],
        &["started worker ", "--backend"],
        &["worker ", ": end open the device after ", " s"],
        &["locked target/reports/scale/simulated-h100/journal.lock"],
        &["begin ", compile],
        &["end ", compile, " after ", " s"],
        &["send to worker ", ": group 0, 2 cases n=256, block=64 bytes="],
        &["end run the group ordinal=0 ", " after ", " s"],
        &["worker ", " exited with code 0"],
    ] {
        assert_eq!(count(&first, expected), 1, "{expected:?}\n{first}");
    }
    assert_eq!(count(&first, &["found in the cache"]), 0, "{first}");

    let second = log_of(command(dir.path(), &[]).env("RUNNER_LOG", "info"));
    assert_eq!(count(&second, &["found in the cache: kernels/scale.cu entry="]), 2, "{second}");
    assert_eq!(count(&second, &["begin compile"]), 0, "{second}");
}

#[test]
fn only_the_second_level_has_the_steps_of_cases() {
    let dir = project(MANIFEST, KERNEL);
    let steps = &["worker ", ": twice[n=256, block=64] activity=Checking"];
    let info = log_of(&mut command(dir.path(), &["-v"]));
    assert_eq!(count(&info, steps), 0, "{info}");
    for debug in [&mut command(dir.path(), &["-vv"]), command(dir.path(), &["-vv"]).env("RUNNER_LOG", "off")] {
        let debug = log_of(debug);
        assert_eq!(count(&debug, steps), 1, "{debug}");
        assert_eq!(count(&debug, &["write target/reports/scale/simulated-h100/report.md bytes="]), 1, "{debug}");
    }
}

#[test]
fn without_the_option_there_is_no_log() {
    let dir = project(MANIFEST, KERNEL);
    assert_eq!(log_of(&mut command(dir.path(), &[])), "");
    assert_eq!(log_of(command(dir.path(), &[]).env("RUNNER_LOG", "")), "");
}

#[test]
fn a_level_that_is_not_known_is_refused() {
    let dir = project(MANIFEST, KERNEL);
    let output = command(dir.path(), &[]).env("RUNNER_LOG", "loud").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "error: RUNNER_LOG is `loud`, which is not a level: set it to info or debug\n");
}

#[test]
fn the_log_of_a_worker_that_dies_is_not_its_last_output() {
    let endless = KERNEL.replace("output[i] = input[i] + input[i]", "while (true) output[i] = clock()");
    let dir = project(MANIFEST, &endless);
    let mut runner = command(dir.path(), &["-vv"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut failures = Vec::new();
    for line in BufReader::new(runner.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if let Some((before, _)) = line.split_once(": twice[n=256, block=64] activity=Checking") {
            let (_, worker) = before.rsplit_once(' ').unwrap();
            kill_process(Pid::from_raw(worker.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        } else if !line.contains(" s  ") {
            failures.push(line);
        }
    }
    assert_eq!(runner.wait().unwrap().code(), Some(1));
    // The worker may already be running its other case, which then crashes as well.
    let killed = "crashed       twice[n = 256, block = 64]: the worker was killed by SIGKILL";
    assert!(failures.iter().any(|failure| failure.starts_with(killed)), "{failures:#?}");
    assert!(!failures.concat().contains("its last output"), "{failures:#?}");
}
