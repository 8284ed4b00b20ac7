//! The files of `runner init --ci`: what they are allowed to do, and their steps, executed as the service would.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::against::{LOADS_TWICE, MANIFEST, Repository};
use crate::programs::write_program;

/// A folder of programs at the front of PATH.
pub struct Programs(pub TempDir);

impl Programs {
    /// A folder that contains `runner`.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        symlink(env!("CARGO_BIN_EXE_runner"), dir.path().join("runner")).unwrap();
        Self(dir)
    }

    pub fn add(&self, name: &str, script: &str) {
        write_program(&self.0.path().join(name), script);
    }

    /// Runs a script as the services do. Returns its exit code and all output.
    fn run(&self, folder: &Path, script: &str, variables: &[(&str, &str)]) -> (i32, String) {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap());
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(folder)
            .env("PATH", path)
            .env_remove("GITHUB_STEP_SUMMARY")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }
}

/// The files that `runner init --ci` writes, parsed.
pub fn written(service: &str, files: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let init = |options: &[&str]| {
        let words = ["init", "--ci", service];
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.current_dir(folder.path()).args(words).args(options).output().unwrap()
    };
    assert!(init(&[]).status.success());
    let again = init(&[]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(again.status.code() == Some(2) && said.contains(files[0]) && said.contains("--force"), "{said}");
    assert!(init(&["--force"]).status.success());
    let read = |name: &&str| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(!text.contains("@compare.sh@") && !text.contains('\t'), "{text}");
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    files.iter().map(read).collect()
}

pub fn github() -> [Value; 3] {
    let names = ["runner.yml", "runner-gpu.yml", "runner-comment.yml"].map(|name| format!(".github/workflows/{name}"));
    written("github", &names.each_ref().map(String::as_str)).try_into().unwrap()
}

fn step<'y>(workflow: &'y Value, job: &str, name: &str) -> &'y Value {
    let steps = workflow["jobs"][job]["steps"].as_array().unwrap();
    steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name} in {workflow}"))
}

/// A change merged into its base, checked out as a service does for a pull request.
pub fn pull_request(change: impl FnOnce(&Repository)) -> Repository {
    let repository = Repository::new();
    repository
        .write("experiments/other.toml", &MANIFEST.replace("\"scale\"", "\"other\"").replace("scale.cu", "other.cu"));
    let kernel = fs::read_to_string(repository.path("kernels/scale.cu")).unwrap();
    repository.write(
        "kernels/other.cu",
        &kernel.replace("#include \"load.cuh\"", "__device__ float load(const float* at) { return *at; }"),
    );
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "other"]);
    repository.git(&["checkout", "-q", "-b", "change"]);
    change(&repository);
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
    repository.git(&["checkout", "-q", "main"]);
    repository.git(&["merge", "-q", "--no-ff", "-m", "merge", "change"]);
    repository
}

/// A pull request that changes a comment.
pub fn commented() -> Repository {
    pull_request(|repository| {
        let kernel = fs::read_to_string(repository.path("kernels/scale.cu")).unwrap();
        repository.write("kernels/scale.cu", &format!("// A comment.\n{kernel}"));
    })
}

const PATHS: &str = "experiments kernels reports";

/// Runs the comparison step of a job. Returns its exit code and the page.
fn compared(repository: &Repository, script: &str, base: &str) -> (i32, String) {
    compared_in(repository.folder(), script, base)
}

fn compared_in(folder: &Path, script: &str, base: &str) -> (i32, String) {
    let variables = [("BACKEND", "sim"), ("BASE", base), ("NUMBER", "7"), ("RUNNER_PATHS", PATHS)];
    let (code, said) = Programs::new().run(folder, script, &variables);
    let page = fs::read_to_string(folder.join("target/ci/comment.md")).unwrap_or(said);
    (code, page)
}

/// Compares a checkout with a base as the job on GitHub does: its exit code and the comment.
pub fn job_on_github(folder: &Path, base: &str) -> (i32, String) {
    let [workflow, ..] = github();
    compared_in(folder, step(&workflow, "simulator", "Compare")["run"].as_str().unwrap(), base)
}

#[test]
fn one_more_transaction_in_one_kernel_fails_the_job_and_is_explained() {
    let [workflow, ..] = github();
    let compare = step(&workflow, "simulator", "Compare");
    let base = "${{ github.event_name == 'push' && github.event.before || 'HEAD^1' }}";
    assert_eq!((&compare["env"]["BACKEND"], &compare["env"]["BASE"]), (&json!("sim"), &json!(base)));
    let script = compare["run"].as_str().unwrap();
    let changed = pull_request(|repository| repository.write("kernels/load.cuh", LOADS_TWICE));
    let (code, page) = compared(&changed, script, "HEAD^1");
    assert_eq!(code, 4, "{page}");
    // 1024 floats are 128 sectors, each of which is loaded twice.
    assert!(page.starts_with("## ✗ Fails: 1 of 2 experiments changed: `scale` 2 cases do more work ("), "{page}");
    assert!(page.contains("gld_sectors 128 → 256"), "{page}");
    let (worst, rest) = page.split_once("<summary><b>Unaffected: 1</b></summary>").expect("it is folded");
    assert!(worst.contains("### ▲ More work: 2") && rest.contains("- other, Simulated H100: 2 same"), "{page}");
    assert_eq!(fs::read_to_string(changed.path("target/ci/number")).unwrap(), "7\n");
}

#[test]
fn a_job_without_a_finding_passes_and_one_with_a_wrong_result_fails_first() {
    let [gitlab] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let script = gitlab[".runner-compare"]["script"][0].as_str().unwrap();
    let (code, page) = compared(&commented(), script, "HEAD^1");
    assert_eq!(code, 0, "{page}");
    assert!(page.starts_with("## ✓ Passes: 0 of 2 experiments changed (Simulated H100, "), "{page}");
    // One experiment is slower, the other is wrong.
    let wrong = pull_request(|repository| {
        repository.write("kernels/load.cuh", LOADS_TWICE);
        let kernel = fs::read_to_string(repository.path("kernels/other.cu")).unwrap();
        repository.write("kernels/other.cu", &kernel.replace("2.0f", "3.0f"));
    });
    let (code, page) = compared(&wrong, script, "HEAD^1");
    assert_eq!(code, 1, "{page}");
    let first = "## ✗ Fails: 2 of 2 experiments changed: `other` 2 cases newly wrong, `scale` 2 cases do more work (";
    assert!(page.starts_with(first), "{page}");
    let [red, slower] =
        ["### ✗ Newly wrong: 2 cases", "### ▲ More work: 2 cases"].map(|title| page.find(title).unwrap());
    assert!(red < slower, "{page}");
}

#[test]
fn the_jobs_of_both_services_check_every_case_on_a_second_set_of_inputs() {
    let [workflow, ..] = github();
    let [gitlab] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    for script in [&step(&workflow, "simulator", "Compare")["run"], &gitlab[".runner-compare"]["script"][0]] {
        assert!(script.as_str().unwrap().contains("--against \"$BASE\" --gate --thorough "), "{script}");
    }
}

/// A required check must finish even if a change touches no kernel.
#[test]
fn a_change_of_nothing_that_is_compared_ends_the_jobs_at_once_and_as_a_success() {
    let [workflow, gpu, _] = github();
    let [gitlab] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let readme = pull_request(|repository| repository.write("README.md", "words"));
    let programs = Programs(tempfile::tempdir().unwrap());
    for name in ["runner", "curl"] {
        programs.add(name, "#!/bin/bash\necho \"ran $0\"; exit 9\n");
    }
    for (file, job) in [(&workflow, "simulator"), (&gpu, "gpu")] {
        for name in ["Install", "Compare"] {
            let script = step(file, job, name)["run"].as_str().unwrap();
            let paths = file["env"]["RUNNER_PATHS"].as_str().unwrap();
            let variables = [("BASE", "HEAD^1"), ("NUMBER", "7"), ("RUNNER_PATHS", paths)];
            let (code, said) = programs.run(readme.folder(), script, &variables);
            assert!(code == 0 && !said.contains("ran "), "{name}: {code} {said}");
        }
    }
    let script = gitlab[".runner-compare"]["script"][0].as_str().unwrap();
    let paths = gitlab["variables"]["RUNNER_PATHS"].as_str().unwrap();
    let (code, said) =
        programs.run(readme.folder(), script, &[("BASE", "HEAD^1"), ("NUMBER", "7"), ("RUNNER_PATHS", paths)]);
    assert!(code == 0 && !said.contains("ran "), "{code} {said}");
    let page = fs::read_to_string(readme.path("target/ci/comment.md")).unwrap();
    assert!(page.starts_with("## ✓ Passes: nothing to compare\n"), "{page}");
    for job in ["runner-simulator", "runner-gpu"] {
        let rules = gitlab[job]["rules"].as_array().unwrap();
        assert!(rules.iter().all(|rule| rule["changes"].is_null()), "{job}");
    }
}

/// On the default branch, there is no pull request number.
#[test]
fn a_slowdown_that_was_merged_fails_nothing_on_the_default_branch_and_a_wrong_result_does() {
    let [workflow, ..] = github();
    let script = step(&workflow, "simulator", "Compare")["run"].as_str().unwrap();
    let slower = pull_request(|repository| repository.write("kernels/load.cuh", LOADS_TWICE));
    let wrong = pull_request(|repository| {
        let kernel = fs::read_to_string(repository.path("kernels/other.cu")).unwrap();
        repository.write("kernels/other.cu", &kernel.replace("2.0f", "3.0f"));
    });
    for (repository, expected, verdict) in [(&slower, 0, "! Passes, needs a reviewer: "), (&wrong, 1, "✗ Fails: ")] {
        let variables = [("BACKEND", "sim"), ("BASE", "HEAD^1"), ("NUMBER", ""), ("RUNNER_PATHS", PATHS)];
        let (code, said) = Programs::new().run(repository.folder(), script, &variables);
        assert_eq!(code, expected, "{said}");
        let page = fs::read_to_string(repository.path("target/ci/comment.md")).unwrap();
        assert!(page.starts_with(&format!("## {verdict}1 of 2 experiments changed")), "{page}");
    }
}

/// A push of two commits, of which the first makes a kernel wrong. The base is the commit before the push; if there is none,
/// it is the parent.
#[test]
fn all_commits_of_a_push_are_compared_on_the_default_branch() {
    let [workflow, ..] = github();
    let script = step(&workflow, "simulator", "Compare")["run"].as_str().unwrap();
    let pushed = Repository::new();
    let kernel = fs::read_to_string(pushed.path("kernels/scale.cu")).unwrap();
    pushed.write("kernels/scale.cu", &kernel.replace("2.0f", "3.0f"));
    pushed.git(&["commit", "-qam", "wrong"]);
    pushed.write("experiments/scale.toml", &MANIFEST.replace("title", "# Comment.\ntitle"));
    pushed.git(&["commit", "-qam", "comment"]);
    let before = fs::read_to_string(pushed.path(".git/refs/heads/main")).unwrap();
    assert_eq!(before.trim().len(), 40);
    for (base, expected) in [("HEAD~2", 1), ("HEAD~1", 0), (&"0".repeat(40), 0), (&"1".repeat(40), 0)] {
        let variables = [("BACKEND", "sim"), ("BASE", base), ("NUMBER", ""), ("RUNNER_PATHS", PATHS)];
        let (code, said) = Programs::new().run(pushed.folder(), script, &variables);
        assert_eq!(code, expected, "{base}: {said}");
    }
    let [gitlab] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let rules = gitlab["runner-simulator"]["rules"].as_array().unwrap();
    assert_eq!(rules[1]["variables"], json!({ "BASE": "$CI_COMMIT_BEFORE_SHA", "NUMBER": "" }));
}

/// However a manifest is written, its experiment is run; if it no longer is one, that is named.
#[test]
fn every_experiment_of_the_base_is_run_or_named_as_gone() {
    let [workflow, ..] = github();
    let script = step(&workflow, "simulator", "Compare")["run"].as_str().unwrap();
    let wrong = |repository: &Repository| {
        let kernel = fs::read_to_string(repository.path("kernels/scale.cu")).unwrap();
        repository.write("kernels/scale.cu", &kernel.replace("2.0f", "3.0f"));
    };
    let path = "experiments/scale.toml";
    let dotted = |text: &str| {
        let (_, rest) = text.split_once("[experiment]\n").unwrap();
        let (keys, tables) = rest.split_once("\n\n").unwrap();
        let keys: Vec<String> = keys.lines().map(|line| format!("experiment.{line}")).collect();
        format!("{}\n\n{tables}", keys.join("\n"))
    };
    let written = [
        MANIFEST.replace("[experiment]", "  [experiment]"),
        MANIFEST.replace("[experiment]", "[ experiment ]"),
        dotted(MANIFEST),
    ];
    for text in &written {
        let changed = pull_request(|repository| {
            repository.write(path, text);
            wrong(repository);
        });
        let (code, page) = compared(&changed, script, "HEAD^1");
        assert_eq!(code, 1, "{text}\n{page}");
    }
    // Its name says where it was; what it measured is compared with the same experiment of the base.
    let moved = pull_request(|repository| {
        fs::create_dir(repository.path("experiments/deep")).unwrap();
        fs::rename(repository.path(path), repository.path("experiments/renamed.toml")).unwrap();
        wrong(repository);
    });
    let (code, page) = compared(&moved, script, "HEAD^1");
    assert_eq!(code, 1, "{page}");
    assert!(page.contains("manifest file: `experiments/scale.toml` → `experiments/renamed.toml`."), "{page}");
    let linked = pull_request(|repository| {
        fs::rename(repository.path(path), repository.path("experiments/scale.real")).unwrap();
        symlink("scale.real", repository.path(path)).unwrap();
        wrong(repository);
    });
    let (code, page) = compared(&linked, script, "HEAD^1");
    assert_eq!(code, 1, "{page}");
    for change in
        [(|repository| repository.write("experiments/scale.toml", "# Nothing.\n")) as fn(&Repository), |repository| {
            fs::rename(repository.path("experiments/scale.toml"), repository.path("scale.toml")).unwrap();
        }]
    {
        let gone = pull_request(change);
        let (code, page) = compared(&gone, script, "HEAD^1");
        assert_eq!(code, 0, "{page}");
        assert!(page.starts_with("## ! Passes, needs a reviewer: 1 experiment deleted"), "{page}");
        assert!(page.contains("Experiment `experiments/scale.toml` deleted (2 cases, no claims)."), "{page}");
    }
    let all = pull_request(|repository| fs::remove_dir_all(repository.path("experiments")).unwrap());
    let (code, page) = compared(&all, script, "HEAD^1");
    assert_eq!(code, 0, "{page}");
    assert!(page.starts_with("## ! Passes, needs a reviewer: 2 experiments deleted ("), "{page}");
}

/// Pages without records, and records that are damaged: the comment has one verdict, and says what is at fault.
#[test]
fn reports_that_nothing_proves_fail_the_job_and_are_named() {
    let [workflow, ..] = github();
    let script = step(&workflow, "simulator", "Compare")["run"].as_str().unwrap();
    for (file, reason) in [
        ("reports/scale/x/report.md", "reports/scale/x has files of a report but no records.jsonl"),
        ("reports/scale/x/records.jsonl", "reports/scale/x/records.jsonl"),
    ] {
        let changed = pull_request(|repository| {
            fs::create_dir_all(repository.path("reports/scale/x")).unwrap();
            repository.write(file, "nothing\n");
        });
        let (code, page) = compared(&changed, script, "HEAD^1");
        assert!([1, 3].contains(&code), "{code}: {page}");
        assert!(page.starts_with("## ✗ Fails: `committed reports`: not what their records make\n"), "{page}");
        assert_eq!(page.matches("\n## ").count(), 0, "{page}");
        assert!(page.contains(reason), "{page}");
    }
}

/// One manifest is deleted and another is invalid: the page names both, and the third experiment is compared.
#[test]
fn a_deleted_experiment_and_one_with_a_fault_are_named() {
    let [workflow, ..] = github();
    let script = step(&workflow, "simulator", "Compare")["run"].as_str().unwrap();
    let repository = pull_request(|repository| {
        fs::remove_file(repository.path("experiments/other.toml")).unwrap();
        repository.write("experiments/broken.toml", "[experiment]\nnmae = \"broken\"\n");
    });
    let (code, page) = compared(&repository, script, "HEAD^1");
    assert_eq!(code, 2, "{page}");
    let first = page.lines().next().unwrap();
    assert!(
        first.starts_with("## ✗ Fails: 1 experiment not compared, 0 of 2 experiments changed, 1 experiment deleted ("),
        "{page}"
    );
    let [fault, deleted] = [
        "\n- Experiment `experiments/broken.toml` not compared: the manifest has no `variant`.\n",
        "\n- Experiment `experiments/other.toml` deleted (2 cases, no claims).\n",
    ];
    assert!(
        page.contains(fault)
            && page.contains(deleted)
            && page.contains("\n- 2 cases: 2 same. Both results are correct, as before.\n"),
        "{page}"
    );
}

#[test]
fn jobs_that_run_the_code_of_a_pull_request_cannot_write() {
    let [simulator, gpu, comment] = github();
    for workflow in [&simulator, &gpu] {
        let events: Vec<&String> = workflow["on"].as_object().unwrap().keys().collect();
        assert!(events == ["pull_request"] || events == ["pull_request", "push"], "{events:?}");
        // A path filter would leave a required check pending.
        assert!(workflow["on"]["pull_request"].is_null() && !workflow["env"]["RUNNER_PATHS"].is_null());
        assert_eq!(workflow["permissions"], json!({ "contents": "read" }));
        let jobs = workflow["jobs"].as_object().unwrap();
        let steps: Vec<&Value> = jobs.values().flat_map(|job| job["steps"].as_array().unwrap()).collect();
        let checkout = steps.iter().find(|step| step["uses"].as_str().is_some_and(|uses| uses.contains("/checkout@")));
        assert_eq!(checkout.unwrap()["with"]["persist-credentials"], false);
        for uses in steps.iter().filter_map(|step| step["uses"].as_str()) {
            let (_, commit) = uses.split_once('@').unwrap_or_else(|| panic!("{uses} is not pinned"));
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{uses}");
        }
        assert!(jobs.values().all(|job| job["permissions"].is_null()) && !workflow.to_string().contains("secrets."));
    }
    // Forks use another environment, which has reviewers.
    assert!(gpu["jobs"]["gpu"]["environment"].as_str().unwrap().contains("head.repo.full_name == github.repository"));
    assert_eq!(comment["permissions"], json!({}));
    assert_eq!(comment["jobs"]["comment"]["permissions"], json!({ "actions": "read", "pull-requests": "write" }));
    assert_eq!(comment["on"]["workflow_run"]["workflows"], json!([simulator["name"], gpu["name"]]));
    // The job runs a single script, expands nothing from the event in it, and checks nothing out.
    let steps = comment["jobs"]["comment"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1);
    assert!(!steps[0]["run"].as_str().unwrap().contains("${{"));
}

/// What posting a comment needs: an artifact, and a service that answers from files and records its requests.
struct Service {
    programs: Programs,
    folder: TempDir,
    script: String,
}

impl Service {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self, name: &str, text: &str) {
        fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        fs::write(self.file(name), text).unwrap();
    }

    /// Exit code, all output, and the comment that was written, if any: method and text.
    fn post(&self, kind: &str) -> (i32, String, Option<(String, String)>) {
        let (state, work) = (self.folder.path().to_str().unwrap().to_owned(), tempfile::tempdir().unwrap());
        let variables = [
            ("STATE", state.as_str()),
            ("KIND", kind),
            ("HEAD_SHA", "1234567890abcdef"),
            ("JOB_URL", "https://example.org/job"),
            ("REPOSITORY", "us/kernels"),
            ("HEAD_REPOSITORY", "them/kernels"),
            ("RUN_ID", "99"),
            ("CI_MERGE_REQUEST_IID", "7"),
            ("CI_API_V4_URL", "https://example.org/api"),
            ("CI_PROJECT_ID", "5"),
            ("RUNNER_COMMENT_TOKEN", "token"),
        ];
        if self.file("artifact").is_dir() {
            // GitLab unpacks the artifact before it runs the script.
            let copy = format!("mkdir -p target && cp -rP {state}/artifact target/ci");
            self.programs.run(work.path(), &copy, &[]);
        }
        let _ = fs::remove_file(self.file("posted.md"));
        let (code, said) = self.programs.run(work.path(), &self.script, &variables);
        let posted = fs::read_to_string(self.file("posted.md")).ok();
        (code, said, posted.map(|text| (fs::read_to_string(self.file("method")).unwrap().trim().to_owned(), text)))
    }
}

fn github_service() -> Service {
    let [.., workflow] = github();
    let script = step(&workflow, "comment", "Comment")["run"].as_str().unwrap().to_owned();
    let service = Service { programs: Programs::new(), folder: tempfile::tempdir().unwrap(), script };
    service.programs.add(
        "gh",
        r#"#!/bin/bash
case "$*" in
  "run download 99 --repo us/kernels --name runner-"*" --dir data") cp -rP "$STATE/artifact" data ;;
  "api repos/us/kernels/pulls/7 "*) cat "$STATE/about" ;;
  "api --paginate repos/us/kernels/issues/7/comments?per_page=100 --jq "*) cat "$STATE/ids" ;;
  "api repos/us/kernels/issues/comments/31 --jq .body") cat "$STATE/old" ;;
  "api --method PATCH repos/us/kernels/issues/comments/31 -F body=@body.md "*) echo PATCH > "$STATE/method"; cp body.md "$STATE/posted.md" ;;
  "api --method POST repos/us/kernels/issues/7/comments -F body=@body.md "*) echo POST > "$STATE/method"; cp body.md "$STATE/posted.md" ;;
  *) echo "unexpected: gh $*"; exit 9 ;;
esac
"#,
    );
    service.set("about", "1234567890abcdef them/kernels\n");
    service.set("ids", "");
    service
}

/// Passes the artifact of a job to the commenting job. Returns its exit code, all output, and the comment that was
/// written: method and text.
pub fn comment_on_github(artifact: &Path) -> (i32, String, Option<(String, String)>) {
    let service = github_service();
    for name in ["number", "comment.md"] {
        service.set(&format!("artifact/{name}"), &fs::read_to_string(artifact.join(name)).unwrap());
    }
    service.post("simulator")
}

fn gitlab_service() -> Service {
    let [gitlab] = &written("gitlab", &[".gitlab/runner.yml"])[..] else { panic!("one file") };
    let script = gitlab[".runner-comment"]["script"][0].as_str().unwrap().to_owned();
    let service = Service { programs: Programs::new(), folder: tempfile::tempdir().unwrap(), script };
    service.programs.add(
        "curl",
        r#"#!/bin/bash
notes=https://example.org/api/projects/5/merge_requests/7/notes
case "$*" in
  *"PRIVATE-TOKEN: token https://example.org/api/user") echo '{"id": 3}' ;;
  *"$notes?sort=asc&per_page=100&page=1") cat "$STATE/notes" ;;
  *"$notes?sort=asc&per_page=100&page=2") echo '[]' ;;
  *"--request PUT --data-urlencode body@body.md $notes/31") echo PATCH > "$STATE/method"; cp body.md "$STATE/posted.md" ;;
  *"--request POST --data-urlencode body@body.md $notes") echo POST > "$STATE/method"; cp body.md "$STATE/posted.md" ;;
  *) echo "unexpected: curl $*"; exit 9 ;;
esac
"#,
    );
    service.set("notes", "[]");
    service
}

/// Posts for both backends: the second post updates the comment of the first.
fn is_updated_in_place(service: &Service, remember: impl Fn(&Service, &str)) {
    service.set("artifact/number", "7\n");
    service.set(
        "artifact/comment.md",
        "### `scale`: ✗ 1 slower\n<!-- runner:gpu -->\nto @all\n/close\n<!-- runner:gpu end -->\n",
    );
    let (code, said, posted) = service.post("simulator");
    let (method, first) = posted.unwrap_or_else(|| panic!("nothing posted: {code} {said}"));
    let expected = "<!-- runner -->\n<!-- runner:simulator -->\n## On the simulator\n\nCommit 1234567 compared with its \
                    base: [job](https://example.org/job).\n\n### `scale`: ✗ 1 slower\nto @\u{200b}all\n\\/close\n\n<!-- runner:simulator \
                    end -->\n";
    assert_eq!((code, method.as_str(), first.as_str()), (0, "POST", expected), "{said}");

    remember(service, &first);
    service.set("artifact/comment.md", "### `scale`: ✓ No regression");
    let (code, said, posted) = service.post("gpu");
    let (method, second) = posted.unwrap_or_else(|| panic!("nothing posted: {code} {said}"));
    assert_eq!((code, method.as_str()), (0, "PATCH"), "{said}");
    let (marker, simulator) = expected.split_once('\n').unwrap();
    let head = format!("{marker}\n<!-- runner:gpu -->\n## On the GPU\n");
    assert!(second.starts_with(&head) && second.ends_with(simulator), "{second}");
    assert!(second.contains("### `scale`: ✓ No regression\n<!-- runner:gpu end -->"), "{second}");
}

/// A page that is too long, an invalid number, or a link is not posted.
fn refuses_what_is_not_data(service: &Service) {
    for (number, page, why) in
        [("7; touch x\n", "page".to_owned(), "is not a number"), ("7\n", "x".repeat(30001), "longer than 30000 bytes")]
    {
        service.set("artifact/number", number);
        service.set("artifact/comment.md", &page);
        let (code, said, posted) = service.post("simulator");
        assert!(code == 1 && said.contains(why) && posted.is_none(), "{code} {said}");
    }
    service.set("artifact/number", "7\n");
    fs::remove_file(service.file("artifact/comment.md")).unwrap();
    symlink("/etc/hostname", service.file("artifact/comment.md")).unwrap();
    let (code, said, posted) = service.post("simulator");
    assert!(code == 1 && said.contains("data/comment.md is not a regular file") && posted.is_none(), "{code} {said}");
}

#[test]
fn a_comment_on_github_is_updated_in_place_and_its_content_is_data() {
    let service = github_service();
    is_updated_in_place(&service, |service, body| {
        service.set("ids", "31\n32\n");
        service.set("old", &body.replace('\n', "\r\n"));
    });
    // Another commit was pushed meanwhile, or the number belongs to another pull request.
    service.set("about", "fedcba0987654321 them/kernels\n");
    let (code, said, posted) = service.post("simulator");
    assert!(code == 0 && said.contains("is at another commit") && posted.is_none(), "{code} {said}");
    refuses_what_is_not_data(&service);
    fs::remove_dir_all(service.file("artifact")).unwrap();
    let (code, said, posted) = service.post("simulator");
    assert!(code == 0 && said.contains("the job produced nothing to post") && posted.is_none(), "{code} {said}");
}

#[test]
fn a_note_on_gitlab_is_updated_in_place_and_its_content_is_data() {
    let service = gitlab_service();
    is_updated_in_place(&service, |service, body| {
        let notes = json!([
            { "id": 30, "author": { "id": 4 }, "body": body },
            { "id": 31, "author": { "id": 3 }, "body": body },
        ]);
        service.set("notes", &notes.to_string());
    });
    refuses_what_is_not_data(&service);
    service.set("artifact/number", "8\n");
    fs::remove_file(service.file("artifact/comment.md")).unwrap();
    service.set("artifact/comment.md", "page");
    let (code, said, posted) = service.post("simulator");
    assert!(code == 1 && said.contains("belongs to another merge request") && posted.is_none(), "{code} {said}");
}
