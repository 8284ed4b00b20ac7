//! The jobs of `runner init --ci`, run step by step as the services do: from an empty home, then with what was cached, and
//! with a change that fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::against::{LOADS_TWICE, Repository};
use super::ci::{Programs, comment_on_github, commented, github, pull_request, written};
use crate::programs::write_program;

/// What outlives the jobs of a service: its caches, and the artifacts of the last job.
struct Service {
    /// A program `cargo` that installs the `runner` of this build, if it is asked for a commit.
    programs: Programs,
    caches: TempDir,
}

/// How a job ended.
struct Ended {
    is_right: bool,
    log: String,
    /// The folder of the checkout, and the home beside it.
    root: TempDir,
}

impl Ended {
    fn comment(&self) -> String {
        fs::read_to_string(self.root.path().join("checkout/target/ci/comment.md")).unwrap_or_default()
    }

    fn installed(&self) -> bool {
        self.log.contains("installed runner")
    }
}

impl Service {
    fn new() -> Self {
        let programs = Programs(tempfile::tempdir().unwrap());
        let runner = env!("CARGO_BIN_EXE_runner");
        // As cargo: a revision is a commit, and the program goes below its root.
        programs.add(
            "cargo",
            &format!(
                "#!/bin/bash\n\
                 if [ \"${{*:1:6}} ${{*:8}}\" != 'install --locked --force --git https://example.org/runner.git --rev runner' ]\n\
                 then echo \"unexpected: cargo $*\"; exit 9; fi\n\
                 if ! [[ $7 =~ ^[0-9a-f]{{40}}$ ]]; then echo \"revision $7 not found\"; exit 101; fi\n\
                 bin=${{CARGO_INSTALL_ROOT:-$HOME/.cargo}}/bin; mkdir -p \"$bin\"\n\
                 ln -sf '{runner}' \"$bin/runner\"; echo 'installed runner'\n"
            ),
        );
        programs.add("apt-get", "#!/bin/bash\nexit 0\n");
        Self { programs, caches: tempfile::tempdir().unwrap() }
    }

    /// Runs a script in the checkout; whether it succeeded.
    fn run(&self, root: &Path, script: &str, variables: &BTreeMap<String, String>, log: &mut String) -> bool {
        let home = root.join("home");
        let path = format!(
            "{}:{}:/usr/local/bin:/usr/bin:/bin",
            home.join(".cargo/bin").display(),
            self.programs.0.path().display()
        );
        // The compiler is downloaded once for all tests.
        let cache = std::env::var("RUNNER_CACHE")
            .map_or_else(|_| PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/runner"), PathBuf::from);
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        command.current_dir(root.join("checkout")).env_clear().env("PATH", path).env("HOME", &home);
        command.envs(variables).env("RUNNER_CACHE", cache);
        let output = command.output().unwrap();
        log.push_str(&String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
        output.status.success()
    }

    fn restore(&self, key: &str, to: &Path) {
        let from = self.caches.path().join(key);
        if from.is_dir() {
            copy(&from, to);
        }
    }

    fn save(&self, key: &str, from: &Path) {
        copy(from, &self.caches.path().join(key));
    }
}

/// A checkout of a repository's commit, with an empty home beside it.
fn check_out(repository: &Repository) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("home")).unwrap();
    let source = format!("file://{}", repository.folder().display());
    let clone = ["clone", "-q", "--depth", "2", &source, "checkout"];
    assert!(Command::new("git").current_dir(root.path()).args(clone).status().unwrap().success());
    root
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let all = format!("{}/.", from.display());
    assert!(Command::new("cp").args(["-a", &all]).arg(to).status().unwrap().success());
}

/// Runs the job of a workflow for a pull request.
fn run_github(service: &Service, workflow: &Value, repository: &Repository, commit: &str) -> Ended {
    let root = check_out(repository);
    let mut variables: BTreeMap<String, String> =
        workflow["env"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))).collect();
    variables.insert("RUNNER_SOURCE".to_owned(), "https://example.org/runner.git".to_owned());
    let revision = variables["RUNNER_REVISION"].clone();
    let expand = |text: &str| {
        text.replace("${{ runner.os }}", "Linux")
            .replace("${{ env.RUNNER_REVISION }}", &revision)
            .replace("${{ github.sha }}", commit)
            .replace("${{ github.event.pull_request.number }}", "7")
    };
    let (mut is_right, mut log) = (true, String::new());
    let home = root.path().join("home");
    for step in workflow["jobs"]["simulator"]["steps"].as_array().unwrap() {
        let is_due = is_right || step["if"] == "${{ !cancelled() }}";
        assert!(step["if"].is_null() || step["if"] == "${{ !cancelled() }}", "{step}");
        let action = step["uses"].as_str().map(|uses| uses.split_once('@').unwrap().0);
        let key = expand(step["with"]["key"].as_str().unwrap_or_default());
        assert!(!key.contains("${{"), "{key}");
        match action {
            _ if !is_due => {}
            None => {
                let mut own = variables.clone();
                for (name, value) in step["env"].as_object().into_iter().flatten() {
                    own.insert(name.clone(), expand(&text(value)));
                }
                is_right &= service.run(root.path(), step["run"].as_str().unwrap(), &own, &mut log);
            }
            Some("actions/checkout") => assert_eq!(step["with"]["fetch-depth"], 2),
            Some("actions/cache/restore") => {
                let beginning = expand(step["with"]["restore-keys"].as_str().unwrap());
                let saved = fs::read_dir(service.caches.path()).unwrap().map(|entry| entry.unwrap().file_name());
                let mut saved: Vec<String> = saved.map(|name| name.into_string().unwrap()).collect();
                saved.sort();
                let found = saved.iter().rev().find(|name| **name == key || name.starts_with(&beginning));
                if let Some(found) = found {
                    service.restore(found, &home);
                }
            }
            Some("actions/cache/save") => {
                assert!(text(&step["with"]["path"]).contains("~/.cargo/bin/runner"));
                service.save(&key, &home);
            }
            Some("actions/upload-artifact") => assert_eq!(step["with"]["path"], "target/ci"),
            Some(other) => panic!("{other} is not known here"),
        }
    }
    Ended { is_right, log, root }
}

/// Runs the job of a merge request, or the one of the default branch.
fn run_gitlab(service: &Service, file: &Value, repository: &Repository) -> Ended {
    let root = check_out(repository);
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for layer in [&file["variables"], &file[".runner-compare"]["variables"], &file["runner-simulator"]["variables"]] {
        variables.extend(layer.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))));
    }
    let checkout = root.path().join("checkout");
    for value in variables.values_mut() {
        *value = value
            .replace("$CI_PROJECT_DIR", checkout.to_str().unwrap())
            .replace("$CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD^1")
            .replace("$CI_MERGE_REQUEST_IID", "7");
    }
    variables.insert("RUNNER_SOURCE".to_owned(), "https://example.org/runner.git".to_owned());
    let cache = &file[".runner-compare"]["cache"];
    let key = text(&cache["key"]).replace("$RUNNER_REVISION", &variables["RUNNER_REVISION"]);
    let folder = checkout.join(cache["paths"][0].as_str().unwrap());
    service.restore(&key, &folder);
    let lines = ["before_script", "script"].map(|part| file[".runner-compare"][part].as_array().unwrap());
    let script: Vec<String> = lines.into_iter().flatten().map(text).collect();
    let mut log = String::new();
    let is_right = service.run(root.path(), &script.join("\n"), &variables, &mut log);
    assert_eq!(cache["when"], "always");
    service.save(&key, &folder);
    Ended { is_right, log, root }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Writes the report of the experiment on the simulator, as a commit has it.
fn report(repository: &Repository) {
    let manifest = ["experiments/scale.toml"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command
        .current_dir(repository.folder())
        .args(["run", "--backend", "sim", "--out", "reports/scale/sim"])
        .args(manifest);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A base with a report, and a change that loads everything twice, with the report that follows.
fn slower_with_report() -> Repository {
    pull_request(|repository| {
        report(repository);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "report"]);
        repository.git(&["checkout", "-q", "main"]);
        repository.git(&["merge", "-q", "--ff-only", "change"]);
        repository.git(&["checkout", "-q", "change"]);
        repository.write("kernels/load.cuh", LOADS_TWICE);
        report(repository);
    })
}

fn is_as_it_should_be(first: &Ended, warm: &Ended, failing: &Ended, after: &Ended) {
    assert!(first.is_right && first.installed(), "{}", first.log);
    assert!(first.comment().starts_with("## ✓ 0 of 2 experiments changed ("), "{}", first.comment());
    assert!(warm.is_right && !warm.installed(), "{}", warm.log);
    assert!(!failing.is_right && failing.installed(), "{}", failing.log);
    let comment = failing.comment();
    assert!(comment.starts_with("## ✗ 1 of 2 experiments changed: `scale` 2 cases do more work ("), "{comment}");
    assert!(comment.contains("### `committed reports, compared`: ✗ 2 with more work counted ("), "{comment}");
    assert!(comment.contains("<code>committed reports</code>: ✓ What their records make"), "{comment}");
    // The job that failed left its cache.
    assert!(after.is_right && !after.installed(), "{}", after.log);
}

#[test]
fn the_job_for_github_installs_once_and_caches_what_a_failing_job_made() {
    let [workflow, ..] = github();
    let (unchanged, slower) = (commented(), slower_with_report());
    let service = Service::new();
    let [first, warm] = ["1", "2"].map(|commit| run_github(&service, &workflow, &unchanged, commit));
    let service = Service::new();
    let failing = run_github(&service, &workflow, &slower, "3");
    let after = run_github(&service, &workflow, &unchanged, "4");
    is_as_it_should_be(&first, &warm, &failing, &after);
}

/// The job that runs the code of a fork reads the cache of the default branch. Its variables are those of the workflow
/// alone, without a token; the page is posted by the job that runs none of that code.
#[test]
fn a_pull_request_of_a_fork_is_compared_by_one_job_and_commented_by_another() {
    let [workflow, ..] = github();
    let service = Service::new();
    assert!(run_github(&service, &workflow, &commented(), "1").is_right);
    let fork = run_github(&service, &workflow, &slower_with_report(), "2");
    assert!(!fork.is_right && !fork.installed(), "{}", fork.log);
    let (code, said, posted) = comment_on_github(&fork.root.path().join("checkout/target/ci"));
    let (method, text) = posted.unwrap_or_else(|| panic!("nothing posted: {code} {said}"));
    assert_eq!((code, method.as_str()), (0, "POST"), "{said}");
    assert!(text.contains("### `committed reports, compared`: ✗ 2 with more work counted ("), "{text}");
}

/// GitLab runs the pipeline of a fork in the fork's project. One that a member starts in this project has no job that
/// could read the token.
#[test]
fn no_note_is_posted_for_a_fork_on_gitlab() {
    let [file] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let jobs = ["runner-comment-simulator", "runner-comment-gpu"].map(|name| &file[name]);
    for rule in jobs.iter().flat_map(|job| job["rules"].as_array().unwrap()) {
        let condition = rule["if"].as_str().unwrap();
        assert!(condition.contains("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"), "{condition}");
    }
}

#[test]
fn the_job_for_gitlab_installs_once_and_caches_what_a_failing_job_made() {
    let [file] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let (unchanged, slower) = (commented(), slower_with_report());
    let service = Service::new();
    let [first, warm] = [(); 2].map(|()| run_gitlab(&service, file, &unchanged));
    let service = Service::new();
    let failing = run_gitlab(&service, file, &slower);
    let after = run_gitlab(&service, file, &unchanged);
    is_as_it_should_be(&first, &warm, &failing, &after);
}

#[test]
fn a_job_without_the_source_or_the_commit_says_what_to_set() {
    let [workflow, ..] = github();
    let install = workflow["jobs"]["simulator"]["steps"].as_array().unwrap();
    let install = install.iter().find(|step| step["name"] == "Install").unwrap()["run"].as_str().unwrap();
    let service = Service::new();
    let root = check_out(&pull_request(|_| {}));
    for (source, revision) in [("", "1"), ("https://example.org/runner.git", "")] {
        let pairs = [("RUNNER_SOURCE", source), ("RUNNER_REVISION", revision)];
        let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut log = String::new();
        assert!(!service.run(root.path(), install, &variables, &mut log) && log.contains("set RUNNER_SOURCE"), "{log}");
    }
    // Another build is replaced.
    let bin = root.path().join("home/.cargo/bin");
    fs::create_dir_all(&bin).unwrap();
    let other = "#!/bin/bash\necho 'runner 0.1.0 (0123456789ab, CUDA toolkit 13.0.88)'\n";
    write_program(&bin.join("runner"), other);
    let pairs = [("RUNNER_SOURCE", "https://example.org/runner.git"), ("RUNNER_REVISION", &"a".repeat(40))];
    let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut log = String::new();
    assert!(service.run(root.path(), install, &variables, &mut log) && log.contains("installed runner"), "{log}");
}
