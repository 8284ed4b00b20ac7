//! A checkout may come from a stranger. Inspecting it, planning it and running its kernels must not run any of its
//! programs or write any of the user's files. Each test arms a trap that leaves a canary file, and first shows that the
//! trap works.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runner_compile::{Cache, CompileOptions, Target, Toolkit, ToolkitSource, compile_all};
use runner_process::programs::Programs;
use runner_results::journal::Journal;
use runner_types::{CompileUnit, ToolkitInfo};
use tempfile::TempDir;

use crate::programs::write_program;

struct Checkout {
    dir: TempDir,
}

impl Checkout {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// A program that only creates the canary file.
    fn trap(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        write_program(&self.path(name), &format!("#!/bin/sh\n: > '{}'\n", self.path("canary").display()));
        self.path(name)
    }

    /// Whether the trap was triggered; rearms it.
    fn is_trapped(&self) -> bool {
        fs::remove_file(self.path("canary")).is_ok()
    }

    /// Commits `kernels/k.cu` and the files in `more`; returns the commit.
    fn commit(&self, more: &[(&str, &str)]) -> String {
        self.write("kernels/k.cu", "__global__ void k() {}\n");
        for (name, text) in more {
            self.write(name, text);
        }
        git(self.dir.path(), &["init", "-q"]);
        git(self.dir.path(), &["add", "-A"]);
        git(self.dir.path(), &["commit", "-qm", "x"]);
        git(self.dir.path(), &["rev-parse", "HEAD"])
    }

    fn revision(&self) -> Option<String> {
        runner_revision::describe_checkout(&self.path("kernels"), &Programs::of_this_machine())
    }

    fn runner(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .current_dir(self.dir.path())
            .env("RUNNER_CACHE", self.path("cache"))
            .env_remove("RUNNER_TOOLKIT")
            .env_remove("RUNNER_PYTHON")
            .env("PIP_NO_INDEX", "1");
        command
    }
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let output = Command::new("git").current_dir(dir).args(identity).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_revision_is_that_of_the_last_commit_and_says_whether_a_tracked_file_differs() {
    let checkout = Checkout::new();
    assert_eq!(runner_revision::describe_checkout(checkout.dir.path(), &Programs::of_this_machine()), None);
    let commit = checkout.commit(&[]);
    assert_eq!(commit.len(), 40);
    checkout.write("untracked", "");
    assert_eq!(checkout.revision(), Some(commit.clone()));
    checkout.write("kernels/k.cu", "__global__ void k() { }\n");
    assert_eq!(checkout.revision(), Some(format!("{commit}-dirty")));
    let programs = Programs::in_dirs(Vec::<PathBuf>::new());
    assert_eq!(runner_revision::describe_checkout(&checkout.path("kernels"), &programs), None, "without git");
}

#[test]
fn worktrees_and_packed_references_have_a_revision_too() {
    let checkout = Checkout::new();
    let commit = checkout.commit(&[]);
    git(checkout.dir.path(), &["pack-refs", "--all"]);
    git(checkout.dir.path(), &["gc", "-q"]);
    assert_eq!(checkout.revision(), Some(commit.clone()));
    let elsewhere = tempfile::tempdir().unwrap();
    let tree = elsewhere.path().join("tree");
    git(checkout.dir.path(), &["worktree", "add", "-q", tree.to_str().unwrap()]);
    assert_eq!(
        runner_revision::describe_checkout(&tree.join("kernels"), &Programs::of_this_machine()),
        Some(commit.clone())
    );
    fs::write(tree.join("kernels/k.cu"), "").unwrap();
    assert_eq!(
        runner_revision::describe_checkout(&tree, &Programs::of_this_machine()),
        Some(format!("{commit}-dirty"))
    );
}

/// Arms a trap in `.git`. Asserts that git itself triggers it, and that asking for the revision does not.
fn git_runs_nothing(attributes: &str, arm: impl Fn(&Checkout, &Path)) {
    let checkout = Checkout::new();
    let commit = checkout.commit(&[(".gitattributes", attributes)]);
    let trap = checkout.trap("trap");
    arm(&checkout, &trap);
    // The content is the same, but git must read the file to find out.
    fs::remove_file(checkout.path("kernels/k.cu")).unwrap();
    checkout.write("kernels/k.cu", "__global__ void k() {}\n");
    assert_eq!(checkout.revision(), Some(commit));
    assert!(!checkout.is_trapped(), "asking for the revision ran the trap");
    git(checkout.dir.path(), &["status", "--porcelain"]);
    assert!(checkout.is_trapped(), "the trap is not armed");
}

#[test]
fn a_monitor_of_the_file_system_is_not_run() {
    git_runs_nothing("", |checkout, trap| {
        git(checkout.dir.path(), &["config", "core.fsmonitor", trap.to_str().unwrap()]);
    });
}

#[test]
fn a_configuration_that_another_includes_is_not_read() {
    git_runs_nothing("", |checkout, trap| {
        checkout.write("evil.cfg", &format!("[core]\n\tfsmonitor = {}\n", trap.display()));
        git(checkout.dir.path(), &["config", "include.path", "../evil.cfg"]);
    });
}

#[test]
fn filters_are_not_run() {
    for key in ["filter.evil.clean", "filter.evil.process"] {
        git_runs_nothing("*.cu filter=evil\n", |checkout, trap| {
            git(checkout.dir.path(), &["config", key, trap.to_str().unwrap()]);
        });
    }
}

#[test]
fn hooks_are_not_run() {
    git_runs_nothing("", |checkout, _| {
        checkout.trap(".git/hooks/post-index-change");
    });
}

#[test]
fn submodules_with_a_configuration_of_their_own_are_left_out() {
    git_runs_nothing("", |checkout, trap| {
        let (root, inner) = (checkout.dir.path(), Checkout::new());
        inner.commit(&[]);
        git(root, &["submodule", "--quiet", "add", inner.dir.path().to_str().unwrap(), "inner"]);
        git(&checkout.path("inner"), &["config", "core.fsmonitor", trap.to_str().unwrap()]);
        // The expected revision is still the commit: a status that ignores submodules does not show one that is only
        // added.
        git(root, &["rm", "-q", "--cached", ".gitmodules"]);
        checkout.is_trapped();
    });
}

#[test]
fn python_takes_no_module_from_the_working_directory() {
    let checkout = Checkout::new();
    let canary = checkout.path("canary");
    for module in ["pip.py", "subprocess.py"] {
        checkout.write(module, &format!("open({:?}, 'w')\n", canary.to_str().unwrap()));
    }
    Command::new("python3").args(["-m", "pip", "--version"]).current_dir(checkout.dir.path()).output().unwrap();
    assert!(checkout.is_trapped(), "the trap is not armed");
    let doctor = checkout.runner().args(["doctor", "--offline"]).output().unwrap();
    assert!(!checkout.is_trapped(), "{}", error(&doctor));
    for cache in [checkout.path("cache"), PathBuf::from("cache")] {
        let setup = checkout.runner().args(["setup", "--cuda", "13"]).env("RUNNER_CACHE", cache).output().unwrap();
        assert!(!checkout.is_trapped());
        assert!(error(&setup).contains("lacks a pinned package"), "{}", error(&setup));
    }
}

#[test]
fn programs_are_not_taken_from_relative_folders_of_the_search_path() {
    let checkout = Checkout::new();
    for name in ["git", "python3", "nvidia-smi", "nvcc", "ncu"] {
        checkout.trap(name);
    }
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", "git"]).env("PATH", &path).current_dir(checkout.dir.path()).output().unwrap();
    assert!(checkout.is_trapped(), "the trap is not armed");
    let doctor = checkout.runner().args(["doctor", "--offline"]).env("PATH", &path).output().unwrap();
    assert!(!checkout.is_trapped(), "{}", error(&doctor));
}

#[test]
fn an_option_that_writes_a_file_never_reaches_the_compiler() {
    let checkout = Checkout::new();
    checkout.write("kernels/k.cu", "__global__ void k() {}\n");
    let manifest = |option: &str| {
        format!(
            "[experiment]\nname = \"x\"\n[axes]\npch = [\"create-pch\", \"time\"]\n[let]\nto = '\"canary\"'\n[[variant]]\n\
             name = \"a\"\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\noptions = ['{option}']\n"
        )
    };
    for option in ["--create-pch=canary", "--time=canary", "--{pch}=canary", "--use_fast_math --time=canary"] {
        checkout.write("experiments/x.toml", &manifest(option));
        let run =
            checkout.runner().args(["run", "experiments/x.toml", "--backend", "sim", "--offline"]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{}", error(&run));
        assert!(error(&run).contains("experiments/x.toml:13:"), "{}", error(&run));
        assert!(!checkout.is_trapped());
    }
    // Options that the manifest check cannot see are refused by the compile stage.
    let options = CompileOptions::new(Cache::at(checkout.path("cache"))).unwrap();
    let nowhere = Toolkit {
        info: ToolkitInfo { version: (13, 0), build: Some("13.0.88".to_owned()) },
        source: ToolkitSource::Fetched,
        library: PathBuf::new(),
        builtins: PathBuf::new(),
        include_dirs: vec![],
        device_runtime: None,
    };
    let unit = CompileUnit {
        options: vec![format!("--time={}", checkout.path("canary").display())],
        ..CompileUnit::from_kernels(checkout.path("kernels/k.cu"), ["k"])
    };
    let mut results =
        compile_all(std::slice::from_ref(&unit), Target::Ptx((9, 0)), &nowhere, &options, &mut |_, _, _| {});
    let failure = results.remove(&unit).unwrap().unwrap_err();
    assert!(failure.summary.contains("is not allowed"), "{}", failure.summary);
}

#[test]
fn a_link_in_the_folder_of_a_report_is_not_written_through() {
    for name in ["journal.jsonl", "journal.lock"] {
        let checkout = Checkout::new();
        checkout.write("profile", "as it was");
        fs::create_dir(checkout.path("report")).unwrap();
        symlink(checkout.path("profile"), checkout.path("report").join(name)).unwrap();
        let created = Journal::create(&checkout.path("report")).map(drop);
        let continued = Journal::append_to(&checkout.path("report")).map(drop);
        assert_eq!(fs::read_to_string(checkout.path("profile")).unwrap(), "as it was", "{name}");
        if name == "journal.lock" {
            assert!(created.unwrap_err().to_string().contains(name) && continued.is_err());
        }
    }
}
