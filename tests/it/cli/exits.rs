//! The exit codes in docs/reference/commands.md, for every command that needs no GPU.

use std::path::Path;
use std::process::Command;

/// Runs a command in a new folder, without a GPU and without a network.
fn code(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("damaged.jsonl"), "{\n").unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(arguments)
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("HOME", folder.path())
        .env("RUNNER_CACHE", folder.path().join("cache"))
        .env_remove("RUNNER_TOOLKIT")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), format!("{arguments:?}: {}", String::from_utf8_lossy(&said)))
}

#[test]
fn help_that_cannot_be_written_is_an_error_unless_its_reader_has_ended() {
    for words in [&["--help"][..], &["-h"], &["run", "--help"], &["--version"]] {
        let run = |stdout: std::fs::File| {
            Command::new(env!("CARGO_BIN_EXE_runner")).args(words).stdout(stdout).output().unwrap()
        };
        let full = run(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let said = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(3), "{words:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left on device"), "{words:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(std::os::fd::OwnedFd::from(writer).into());
        assert_eq!((closed.status.code(), closed.stderr.len()), (Some(0), 0), "{words:?}");
    }
}

#[test]
fn every_command_ends_with_its_documented_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (manifest, readme) = (path("experiments/reduce.toml"), path("README.md"));
    let (simulated, hardware) =
        (path("reports/reduce/simulated-h100"), path("reports/reduce/nvidia-h100-80gb-hbm3-counters"));
    let cases: &[(i32, &[&str])] = &[
        (0, &["--help"]),
        (0, &["--version"]),
        (2, &[]),
        (2, &["no-such-command"]),
        (0, &["check", &manifest]),
        (2, &["check", &readme]),
        (2, &["check", "missing.toml"]),
        (0, &["plan", &manifest]),
        (0, &["plan", &manifest, "--backend", "cuda"]),
        (2, &["plan", &manifest, "--variant", "none"]),
        (2, &["plan", "missing.toml"]),
        (2, &["tune"]),
        (2, &["tune", "missing.toml"]),
        (2, &["tune", "--simulate", "missing.csv"]),
        (2, &["show", "missing.toml", "a"]),
        (2, &["show", &manifest, "no such case", "--backend", "sim"]),
        (3, &["show", &manifest, "unrolling2[n = 16384, block = 128, type = i32]", "--backend", "sim", "--offline"]),
        (2, &["run", &manifest, "--watch", "--backend", "cuda"]),
        (2, &["run"]),
        (2, &["run", &readme]),
        (2, &["run", &manifest, "--sim-device", "none"]),
        (2, &["run", &manifest, &manifest, "--backend", "sim"]),
        (3, &["run", &manifest, "--backend", "cuda"]),
        (3, &["run", &manifest, "--backend", "sim", "--offline"]),
        (2, &["try"]),
        (2, &["try", "missing.cu"]),
        (2, &["try", &manifest]),
        (3, &["try", &path("kernels/sum_matrix.cu:sum_matrix"), "--backend", "cuda"]),
        (2, &["init", "missing.cu"]),
        (0, &["init", &path("kernels/sum_matrix.cu:sum_matrix")]),
        (3, &["init", &path("kernels/sum_matrix.cu:sum_matrix"), "--out", "file/a.toml"]),
        (2, &["init"]),
        (0, &["init", "--ci", "gitlab"]),
        (2, &["init", "--ci", "github", &manifest]),
        (2, &["init", "--ci", "jenkins"]),
        (0, &["list", &manifest]),
        (2, &["list"]),
        (2, &["list", "missing.toml"]),
        (2, &["profile", "missing.toml"]),
        (3, &["profile", &manifest]),
        (2, &["report", "missing"]),
        (2, &["report", "."]),
        (2, &["report"]),
        (2, &["report", "--check"]),
        (2, &["report", "--check", "missing"]),
        (3, &["report", "--check", "damaged.jsonl"]),
        (0, &["report", "--check", &simulated, &hardware]),
        (2, &["fidelity", "missing"]),
        (2, &["fidelity", &simulated]),
        (3, &["fidelity", "damaged.jsonl"]),
        (0, &["fidelity", &simulated, &hardware]),
        (3, &["fidelity", &simulated, &hardware, "--out", "file/page.md"]),
        (0, &["compare", &simulated, &simulated]),
        (6, &["compare", &simulated, &hardware]),
        (2, &["compare", &simulated]),
        (2, &["compare", "missing", &simulated]),
        (2, &["compare", &simulated, "main:reports"]),
        (2, &["compare", ".", &simulated]),
        (2, &["compare", &simulated, &path("reports/copy/simulated-h100")]),
        (2, &["compare", &simulated, &simulated, "--threshold", "much"]),
        (3, &["compare", &simulated, "damaged.jsonl"]),
        (3, &["compare", &simulated, &simulated, "--out", "file/page.md"]),
        (2, &["history", "."]),
        (2, &["history", &simulated, "no-such-revision"]),
        (3, &["devices"]),
        (3, &["doctor", "--calibrate"]),
        (3, &["doctor", "--offline"]),
        (3, &["setup", "--offline"]),
        (2, &["setup", "--cuda", "99"]),
        (0, &["schema"]),
        (3, &["schema", "--out", "file/schema.json"]),
        (0, &["completions", "bash"]),
        (2, &["completions", "cobol"]),
        (2, &["submit", "--again", "missing"]),
        (2, &["status"]),
        (2, &["status", "missing"]),
        (0, &["prune"]),
        (2, &["prune", "missing"]),
        (2, &["cancel", "missing"]),
        (2, &["logs", "missing"]),
        (0, &["man"]),
        (0, &["man", "run"]),
        (2, &["man", "walk"]),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .map(|(expected, arguments)| (expected, code(arguments)))
        .filter(|(expected, (code, _))| *code != Some(**expected))
        .map(|(expected, (code, said))| format!("{code:?} instead of {expected}: {said}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn completions_and_man_pages_name_the_options_of_commands() {
    let (_, bash) = code(&["completions", "bash"]);
    assert!(bash.contains("--sim-device") && bash.contains("fidelity") && !bash.contains("RUNNER"), "{bash:.400}");
    let (_, page) = code(&["man", "run"]);
    assert!(page.contains(".TH") && page.contains("runner") && page.contains("sim\\-device"), "{page}");
}
