//! The jobs of `runner init --ci`, run step by step as the services do: from an empty home, then with what was cached, and
//! with a change that fails. The program is published, and each job downloads it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::against::{LOADS_TWICE, Repository};
use super::ci::{Programs, comment_on_github, commented, github, pull_request, written};

/// What outlives the jobs of a service: its caches, and what is published.
struct Service {
    /// A stand-in for `curl` that downloads this build's `runner` from its address.
    programs: Programs,
    caches: TempDir,
}

/// Where the program is published.
const URL: &str = "https://example.org/runner";

/// How a job ended.
struct Ended {
    is_right: bool,
    log: String,
    /// Contains the checkout and the home.
    root: TempDir,
    /// Jobs whose cache this job received.
    others: Vec<String>,
}

impl Ended {
    fn comment(&self) -> String {
        fs::read_to_string(self.root.path().join("checkout/target/ci/comment.md")).unwrap_or_default()
    }
}

impl Service {
    fn new() -> Self {
        let programs = Programs(tempfile::tempdir().unwrap());
        let runner = env!("CARGO_BIN_EXE_runner");
        // Acts like curl: a file of the registry requires the job's token.
        programs.add(
            "curl",
            &format!(
                "#!/bin/bash\n\
                 while [ $# -gt 1 ]; do\n\
                 case \"$1\" in --output) shift; output=$1 ;; --header) shift; header=$1 ;; --retry) shift ;; esac; shift\n\
                 done\n\
                 case \"$1 $header\" in\n\
                 '{URL} '|'https://git.example.org/api/v4/packages/runner JOB-TOKEN: secret') ln -f '{runner}' \"$output\" ||\n\
                 cp '{runner}' \"$output\"; echo 'downloaded runner' ;;\n\
                 *) echo \"unexpected: $1 $header\"; exit 22 ;; esac\n"
            ),
        );
        Self { programs, caches: tempfile::tempdir().unwrap() }
    }

    /// Runs a script in the checkout. Returns whether it succeeded.
    fn run(&self, root: &Path, script: &str, variables: &BTreeMap<String, String>, log: &mut String) -> bool {
        let home = root.join("home");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.programs.0.path().display());
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

    /// Keys of the caches, the oldest first.
    fn saved(&self) -> Vec<String> {
        let entries = fs::read_dir(self.caches.path()).unwrap().map(|entry| entry.unwrap());
        let mut saved: Vec<_> =
            entries.map(|entry| (entry.metadata().unwrap().modified().unwrap(), entry.file_name())).collect();
        saved.sort();
        saved.into_iter().map(|(_, name)| name.into_string().unwrap()).collect()
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

/// A checkout of a repository's commit, next to an empty home.
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

/// What starts a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    /// A pull request with this number.
    Request(u32),
    /// A commit on the default branch.
    Push,
}

impl Event {
    fn number(self) -> String {
        if let Self::Request(number) = self { number.to_string() } else { String::new() }
    }
}

/// Writes to a job's cache what the job leaves behind, as the program writes compiled kernels.
fn leave(cache: &Path, job: &str) {
    fs::create_dir_all(cache).unwrap();
    fs::write(cache.join(job), "").unwrap();
}

/// What other jobs left behind in the cache that a job received.
fn found(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The condition of the step that saves the cache.
const SAVED_IF: &str = "${{ !cancelled() && github.event_name == 'push' && steps.cache.outputs.cache-hit != 'true' }}";

/// Runs the job of a workflow under a name.
fn run_github(service: &Service, workflow: &Value, repository: &Repository, (name, event): (&str, Event)) -> Ended {
    let root = check_out(repository);
    let mut variables: BTreeMap<String, String> =
        workflow["env"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))).collect();
    assert_eq!(variables["RUNNER_SHA256"].len(), 64);
    variables.insert("RUNNER_URL".to_owned(), URL.to_owned());
    let hash = variables["RUNNER_SHA256"].clone();
    let mut git = Command::new("git");
    let kernels = git.current_dir(repository.folder()).args(["rev-parse", "HEAD:experiments", "HEAD:kernels"]);
    let kernels = String::from_utf8(kernels.output().unwrap().stdout).unwrap().replace('\n', "");
    // A push of one commit. A pull request is checked out as a merge commit.
    let parent = Command::new("git").current_dir(repository.folder()).args(["rev-parse", "HEAD^1"]).output().unwrap();
    let parent = String::from_utf8(parent.stdout).unwrap().trim().to_owned();
    let (depth, base) = if event == Event::Push { ("0", parent.as_str()) } else { ("2", "HEAD^1") };
    let expand = |text: &str| {
        text.replace("${{ runner.os }}", "Linux")
            .replace("${{ github.event_name == 'push' && '0' || '2' }}", depth)
            .replace("${{ github.event_name == 'push' && github.event.before || 'HEAD^1' }}", base)
            .replace("${{ env.RUNNER_SHA256 }}", &hash)
            .replace("${{ hashFiles('experiments/**', 'kernels/**') }}", &kernels)
            .replace("${{ github.event.pull_request.number }}", &event.number())
    };
    let (mut is_right, mut log) = (true, String::new());
    let home = root.path().join("home");
    let cache = home.join(".cache/runner");
    let (mut key, mut others, mut is_hit) = (String::new(), Vec::new(), false);
    for step in workflow["jobs"]["simulator"]["steps"].as_array().unwrap() {
        let is_due = match step["if"].as_str() {
            None => is_right,
            Some("${{ !cancelled() }}") => true,
            Some(SAVED_IF) => event == Event::Push && !is_hit,
            Some(other) => panic!("{other} is not known here"),
        };
        let action = step["uses"].as_str().map(|uses| uses.split_once('@').unwrap().0);
        match action {
            _ if !is_due => {}
            None => {
                let mut own = variables.clone();
                for (name, value) in step["env"].as_object().into_iter().flatten() {
                    own.insert(name.clone(), expand(&text(value)));
                }
                is_right &= service.run(root.path(), step["run"].as_str().unwrap(), &own, &mut log);
            }
            Some("actions/checkout") => assert_eq!(expand(&text(&step["with"]["fetch-depth"])), depth),
            Some("actions/cache/restore") => {
                assert_eq!((&step["with"]["path"], &step["id"]), (&"~/.cache/runner".into(), &"cache".into()));
                key = expand(step["with"]["key"].as_str().unwrap());
                assert!(!key.contains("${{"), "{key}");
                let beginning = expand(step["with"]["restore-keys"].as_str().unwrap());
                let saved = service.saved();
                is_hit = saved.contains(&key);
                if let Some(found) = saved.iter().rev().find(|name| **name == key || name.starts_with(beginning.trim()))
                {
                    service.restore(found, &cache);
                }
                others = found(&cache);
            }
            Some("actions/cache/save") => {
                assert_eq!(step["with"]["key"], "${{ steps.cache.outputs.cache-primary-key }}");
                leave(&cache, name);
                service.save(&key, &cache);
            }
            Some("actions/upload-artifact") => assert_eq!(step["with"]["path"], "target/ci"),
            Some(other) => panic!("{other} is not known here"),
        }
    }
    Ended { is_right, log, root, others }
}

/// Runs a comparison job under a name.
fn run_gitlab(
    service: &Service,
    file: &Value,
    repository: &Repository,
    (name, job, event): (&str, &str, Event),
) -> Ended {
    let root = check_out(repository);
    let compare = &file[".runner-compare"];
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut layers = vec![&file["variables"], &compare["variables"], &file[job]["variables"]];
    if event == Event::Push {
        let rules = file[job]["rules"].as_array().unwrap();
        let of_default = rules.iter().find(|rule| rule["if"] == "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH").unwrap();
        layers.push(&of_default["variables"]);
    }
    for layer in layers {
        variables.extend(layer.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))));
    }
    let checkout = root.path().join("checkout");
    let source = if event == Event::Push { "push" } else { "merge_request_event" };
    let expand = |value: &str| {
        value
            .replace("$CI_PROJECT_DIR", checkout.to_str().unwrap())
            .replace("$CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD^1")
            .replace("$CI_MERGE_REQUEST_IID", &event.number())
            .replace("$CI_JOB_NAME", job)
            .replace("$CI_PIPELINE_SOURCE", source)
    };
    for value in variables.values_mut() {
        *value = expand(value);
    }
    // A private registry.
    variables.insert("RUNNER_URL".to_owned(), "https://git.example.org/api/v4/packages/runner".to_owned());
    variables.insert("CI_API_V4_URL".to_owned(), "https://git.example.org/api/v4".to_owned());
    variables.insert("CI_JOB_TOKEN".to_owned(), "secret".to_owned());
    // This machine simulates the GPU.
    variables.insert("BACKEND".to_owned(), "sim".to_owned());
    let cache = &compare["cache"];
    let key = expand(cache["key"].as_str().unwrap());
    assert!(!key.contains('$'), "{key}");
    let folder = checkout.join(cache["paths"][0].as_str().unwrap());
    assert_eq!(variables["RUNNER_CACHE"], folder.display().to_string());
    service.restore(&key, &folder);
    let others = found(&folder);
    let lines = ["before_script", "script"].map(|part| compare[part].as_array().unwrap());
    let script: Vec<String> = lines.into_iter().flatten().map(text).collect();
    let mut log = String::new();
    let is_right = service.run(root.path(), &script.join("\n"), &variables, &mut log);
    assert_eq!(cache["when"], "always");
    leave(&folder, name);
    service.save(&key, &folder);
    Ended { is_right, log, root, others }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Writes the experiment's report on the simulator, as it would be committed.
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

/// A base with a report, and a change that loads every element twice and updates the report.
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

fn assert_red(failing: &Ended) {
    assert!(!failing.is_right && failing.log.contains("downloaded runner"), "{}", failing.log);
    let comment = failing.comment();
    assert!(comment.starts_with("## ✗ Fails: 1 of 2 experiments changed: `scale` 2 cases do more work ("), "{comment}");
    assert!(comment.contains("### `committed reports, compared`: ✗ 2 cases do more work ("), "{comment}");
    assert!(comment.contains("<code>committed reports</code>: ✓ what their records make"), "{comment}");
}

fn assert_green(ended: &Ended) {
    assert!(ended.is_right && ended.log.contains("downloaded runner"), "{}", ended.log);
    assert!(ended.comment().starts_with("## ✓ Passes: 0 of 2 experiments changed ("), "{}", ended.comment());
}

/// Pull requests read the cache of the default branch but never write it. Another commit with the same kernels needs no
/// new cache.
#[test]
fn the_jobs_for_github_keep_one_cache_for_each_state_of_the_kernels() {
    let [workflow, ..] = github();
    let (unchanged, slower) = (commented(), slower_with_report());
    let service = Service::new();
    let run = |repository, name, event| run_github(&service, &workflow, repository, (name, event));
    let request = run(&unchanged, "request", Event::Request(7));
    assert_green(&request);
    assert_eq!((request.others.len(), service.saved().len()), (0, 0));
    let merged = run(&unchanged, "merged", Event::Push);
    assert_green(&merged);
    assert_eq!((merged.others.len(), service.saved().len()), (0, 1));
    let failing = run(&slower, "failing", Event::Request(8));
    assert_red(&failing);
    assert_eq!((failing.others, service.saved().len()), (vec!["merged".to_owned()], 1));
    let again = run(&unchanged, "again", Event::Push);
    assert_green(&again);
    assert_eq!((again.others, service.saved().len()), (vec!["merged".to_owned()], 1));
    // The slowdown was merged.
    let shown = run(&slower, "shown", Event::Push);
    assert!(
        shown.is_right && shown.comment().starts_with("## ! Passes, needs a reviewer: 1 of 2 experiments changed"),
        "{}",
        shown.comment()
    );
    assert_eq!((shown.others, service.saved().len()), (vec!["merged".to_owned()], 2));
}

/// The job that runs a fork's code reads the cache of the default branch. It only has the variables of the workflow,
/// and no token. The page is posted by another job, which runs none of that code.
#[test]
fn a_pull_request_of_a_fork_is_compared_by_one_job_and_commented_by_another() {
    let [workflow, ..] = github();
    let service = Service::new();
    assert_green(&run_github(&service, &workflow, &commented(), ("merged", Event::Push)));
    let fork = run_github(&service, &workflow, &slower_with_report(), ("fork", Event::Request(7)));
    assert_red(&fork);
    assert_eq!(fork.others, ["merged"]);
    let (code, said, posted) = comment_on_github(&fork.root.path().join("checkout/target/ci"));
    let (method, text) = posted.unwrap_or_else(|| panic!("nothing posted: {code} {said}"));
    assert_eq!((code, method.as_str()), (0, "POST"), "{said}");
    assert!(text.contains("### `committed reports, compared`: ✗ 2 cases do more work ("), "{text}");
}

/// GitLab runs a fork's pipeline in the fork's project. If a member starts one in this project, none of its jobs can
/// read the token.
#[test]
fn no_note_is_posted_for_a_fork_on_gitlab() {
    let [file] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let jobs = ["runner-comment-simulator", "runner-comment-gpu"].map(|name| &file[name]);
    for rule in jobs.iter().flat_map(|job| job["rules"].as_array().unwrap()) {
        let condition = rule["if"].as_str().unwrap();
        assert!(condition.contains("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"), "{condition}");
    }
}

/// The cache that a merge request's job writes is read by no job of another merge request, by no GPU job, and by no job
/// on the default branch.
#[test]
fn the_jobs_for_gitlab_have_caches_that_no_other_job_reads() {
    let [file] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let (unchanged, slower) = (commented(), slower_with_report());
    let service = Service::new();
    let run = |repository, name, job, event| run_gitlab(&service, file, repository, (name, job, event));
    let first = run(&slower, "first", "runner-simulator", Event::Request(7));
    assert_red(&first);
    for (job, event) in
        [("runner-simulator", Event::Push), ("runner-gpu", Event::Request(7)), ("runner-simulator", Event::Request(8))]
    {
        let other = run(&unchanged, "other", job, event);
        assert_green(&other);
        assert!(other.others.is_empty(), "{job} {event:?}: {:?}", other.others);
    }
    // The failed job left its cache for the next job of its merge request.
    let after = run(&unchanged, "after", "runner-simulator", Event::Request(7));
    assert_green(&after);
    assert_eq!(after.others, ["first"]);
    assert!(service.saved().iter().all(|key| !service.caches.path().join(key).join("program").exists()));
}

/// A tag such as `python:3` may be a different image tomorrow.
#[test]
fn images_are_pinned_to_a_release() {
    let [file] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let images: Vec<&str> = file.as_object().unwrap().values().filter_map(|job| job["image"].as_str()).collect();
    assert_eq!(images.len(), 2, "{images:?}");
    for image in images {
        let (_, tag) = image.split_once(':').unwrap();
        let (version, _) = tag.split_once('-').unwrap();
        assert!(version.split('.').filter(|part| part.parse::<u32>().is_ok()).count() == 3, "{image}");
    }
}

#[test]
fn a_job_without_the_program_or_with_another_one_says_what_to_set() {
    let [workflow, ..] = github();
    let install = workflow["jobs"]["simulator"]["steps"].as_array().unwrap();
    let install = install.iter().find(|step| step["name"] == "Install").unwrap()["run"].as_str().unwrap();
    let service = Service::new();
    let root = check_out(&pull_request(|repository| repository.write("kernels/load.cuh", "// changed\n")));
    for (url, hash, said) in [
        ("", "1", "set RUNNER_URL at the top of this file"),
        (URL, "", "set RUNNER_URL at the top of this file"),
        (URL, &"0".repeat(64), "RUNNER_SHA256 does not match the file at RUNNER_URL: "),
        ("https://example.org/gone", &"0".repeat(64), "unexpected: https://example.org/gone"),
    ] {
        let variables = [("RUNNER_URL", url), ("RUNNER_SHA256", hash), ("BASE", "HEAD^1"), ("RUNNER_PATHS", "kernels")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut log = String::new();
        assert!(!service.run(root.path(), install, &variables, &mut log) && log.contains(said), "{said}: {log}");
        assert!(!root.path().join("checkout/target/program/runner").exists(), "{said}");
    }
}
