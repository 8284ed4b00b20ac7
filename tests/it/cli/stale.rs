//! Reports that were measured before a source or the manifest changed: `compare`, `report --check` and `history` say
//! so.
//!
//! According to their records, the reports are from a GPU. They were generated on the simulator, with the same hashes.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_plan::{self, PlanOptions, link::link};
use runner_results::journal;
use runner_types::{BackendKind, Records};
use tempfile::TempDir;

const KERNEL: &str = "#include \"load.cuh\"
#ifndef EXTRA
#define EXTRA 0
#endif

template <int FACTOR>
__global__ void scale(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = FACTOR * load(in + i) + EXTRA;
}
";

const HEADER: &str = "__device__ inline float load(const float *at) { return *at; }\n";

const MANIFEST: &str = r#"
[experiment]
name  = "scale"
title = "Scale an array"
[axes]
n = [1024, 4096]
[buffers.input]
type = "f32"
len  = "n"
fill = { uniform = [0, 1], seed = 1 }
[buffers.output]
type   = "f32"
len    = "n"
access = "out"
[[variant]]
name   = "twice"
source = "../kernels/scale.cu"
kernel = "scale<2>"
grid   = ["n / 256"]
block  = [256]
args   = ["input", "output", "u32(n)"]
[[variant]]
name   = "thrice"
source = "../kernels/scale.cu"
kernel = "scale<3>"
grid   = ["n / 256"]
block  = [256]
args   = ["input", "output", "u32(n)"]
"#;

const REPORT: &str = "reports/scale/gpu";

/// A repository whose first commit has an experiment, and the report of a GPU that matches it.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self::uncommitted();
        repository.git(&["init", "-q", "-b", "main"]);
        repository.commit("Measure");
        repository
    }

    /// A folder with the same content, without git.
    fn uncommitted() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.write("experiments/scale.toml", MANIFEST);
        repository.write("kernels/scale.cu", KERNEL);
        repository.write("kernels/load.cuh", HEADER);
        let run = ["run", "experiments/scale.toml", "--backend", "sim", "--out", REPORT, "--quiet"];
        let (code, _, error) = repository.runner(&run);
        assert_eq!(code, Some(0), "{error}");
        repository.change(|records| {
            records.header.backend = BackendKind::Cuda;
            records.environment.device.backend = BackendKind::Cuda;
            // The simulator's code hashes cover PTX.
            records.cases.iter_mut().filter_map(|record| record.hashes.as_mut()).for_each(|hashes| hashes.code = None);
        });
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.0.path().join(name)).unwrap();
        assert!(text.contains(from), "{name} has no `{from}`");
        self.write(name, &text.replace(from, to));
    }

    /// Changes the report's records and rewrites its files.
    fn change(&self, change: impl FnOnce(&mut Records)) {
        let file = self.0.path().join(REPORT).join("records.jsonl");
        let mut records = journal::read_records(&file).unwrap();
        change(&mut records);
        fs::write(&file, journal::records_text(&records).unwrap()).unwrap();
        let (code, _, error) = self.runner(&["report", REPORT]);
        assert_eq!(code, Some(0), "{error}");
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").current_dir(self.0.path()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", subject]);
    }

    fn runner(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        runner(self.0.path(), arguments)
    }

    /// Asserts the output of `report --check`, and the exit code with `--strict`.
    #[track_caller]
    fn assert_checked(&self, said: &str, strict: i32) {
        let (code, found, error) = self.runner(&["report", "--check"]);
        assert_eq!((found.as_str(), code), (said, Some(0)), "{error}");
        assert_eq!(self.runner(&["report", "--check", "--strict"]).0, Some(strict));
    }
}

fn runner(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let words = ["--color", "never"].iter().chain(arguments);
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(dir).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const ALL: &str = "scale on Simulated H100 (4 of 4 cases: twice, thrice)";

#[test]
fn a_report_measured_before_its_kernel_changed_is_no_proof() {
    let repository = Repository::new();
    let same = ["compare", "HEAD:reports", "reports"];
    let (code, said, error) = repository.runner(&same);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("✓ Passes: no regression (") && !said.contains("tale"), "{said}");
    repository.assert_checked("", 0);

    repository.edit("kernels/scale.cu", "FACTOR * load", "FACTOR + load");
    repository.commit("Break the kernel");
    let sentence = format!("Stale: measured before kernels/scale.cu changed: {ALL}.\n");
    for (base, new) in [("HEAD~1:reports", "reports"), ("HEAD~1:reports", "HEAD:reports")] {
        let (code, said, error) = repository.runner(&["compare", base, new]);
        assert_eq!(code, Some(0), "{error}");
        assert!(said.starts_with("! Passes, needs a reviewer: 1 stale report ("), "{said}");
        assert!(said.replace("\n  ", " ").contains(&sentence), "{said}");
        assert_eq!(repository.runner(&["compare", base, new, "--strict"]).0, Some(6));
    }
    // At the older revision, the report matches its sources.
    let (_, said, _) = repository.runner(&["compare", "HEAD:reports", "HEAD~1:reports"]);
    assert!(said.starts_with("✓ Passes: no regression ("), "{said}");
    repository.assert_checked(&sentence, 6);

    let (_, json, _) = repository.runner(&["compare", "HEAD~1:reports", "reports", "--format", "json"]);
    let page: serde_json::Value = serde_json::from_str(&json).unwrap();
    let finding = &page["new_stale"][0]["findings"][0];
    assert_eq!((&finding["part"], &finding["files"][0]), (&"source".into(), &"kernels/scale.cu".into()), "{json}");
}

#[test]
fn an_included_header_is_named() {
    let repository = Repository::new();
    repository.edit("kernels/load.cuh", "return *at", "return 2 * *at");
    repository.assert_checked(&format!("Stale: measured before kernels/load.cuh changed: {ALL}.\n"), 6);
}

#[test]
fn a_comment_makes_nothing_stale() {
    let repository = Repository::new();
    repository.edit("kernels/scale.cu", "template", "// Scales by a factor.\n\n\ntemplate");
    repository.edit("kernels/load.cuh", "{ return", "{\n    /* one element */ return");
    repository.assert_checked("", 0);
    let (code, said, error) = repository.runner(&["compare", "HEAD:reports", "reports"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("✓ Passes: no regression ("), "{said}");
}

/// Reports of the simulator have no machine code hash; the PTX is compared instead.
#[test]
fn a_comment_makes_no_simulated_report_stale_and_another_kernel_does() {
    let repository = Repository::new();
    repository.change(|records| {
        records.header.backend = BackendKind::Sim;
        records.environment.device.backend = BackendKind::Sim;
    });
    repository.commit("Simulate");
    repository.edit("kernels/scale.cu", "template", "// Scales by a factor.\n\n\ntemplate");
    repository.assert_checked("", 0);
    repository.edit("kernels/scale.cu", "FACTOR *", "FACTOR +");
    repository.assert_checked(&format!("Stale: measured before kernels/scale.cu changed: {ALL}.\n"), 6);
}

#[test]
fn each_changed_part_of_the_manifest_is_named() {
    let repository = Repository::new();
    let checked = |from: &str, to: &str, said: &str| {
        repository.edit("experiments/scale.toml", from, to);
        repository.assert_checked(said, 6);
        repository.write("experiments/scale.toml", MANIFEST);
    };
    let of_twice = "scale on Simulated H100 (2 of 4 cases: twice)";
    let before = |what: &str, cases: &str| format!("Stale: measured before {what} changed: {cases}.\n");
    checked("seed = 1", "seed = 2", &before("its inputs or arguments", ALL));
    let halves = "kernel = \"scale<2>\"\ngrid   = [\"n / 128\"]\nblock  = [128]";
    let whole = "kernel = \"scale<2>\"\ngrid   = [\"n / 256\"]\nblock  = [256]";
    checked(whole, halves, &(before("its grid", of_twice) + &before("its block", of_twice)));
    let defined = |value: u8| format!("block  = [256]\ndefines = {{ EXTRA = {value} }}");
    checked("block  = [256]", &defined(1), &before("its compiler options", ALL));
    checked("scale<2>", "scale<5>", &before("its kernel", of_twice));
    let gone = format!("Stale: no longer in the manifest: {of_twice}.\n");
    let added = "Stale: in the manifest, not measured: scale on Simulated H100 (2 cases: double).\n";
    checked("name   = \"twice\"", "name   = \"double\"", &(gone + added));
    let added = "Stale: in the manifest, not measured: scale on Simulated H100 (2 cases: twice, thrice).\n";
    checked("n = [1024, 4096]", "n = [1024, 4096, 8192]", added);
    // Options that yield the same code.
    repository.edit("experiments/scale.toml", "block  = [256]", &defined(0));
    repository.assert_checked("", 0);
}

/// Compiles the kernels as a run on an H100 does, and stores their machine code hashes.
fn with_machine_code(repository: &Repository) {
    let manifest = runner_manifest::load(&repository.0.path().join("experiments/scale.toml")).unwrap();
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let mut options = CompileOptions::new(cache).unwrap();
    options.compiler = env!("CARGO_BIN_EXE_runner").into();
    repository.change(|records| {
        let device = records.environment.device.clone();
        let target = Target::Gpu(device.compute_capability);
        let planned = PlanOptions { device: Some(device), ..PlanOptions::for_backend(BackendKind::Cuda) };
        let plan = runner_plan::expand(&manifest, &planned).unwrap();
        for group in 0..plan.group_count() {
            let job = runner_plan::resolve(&manifest, &plan, group).job;
            let units: Vec<_> = job.cases.iter().flat_map(|case| case.body.units()).cloned().collect();
            let compiled = compile_all(&units, target, &toolkit, &options, &mut |_, _, _| {});
            for case in link(job, &compiled, &records.environment).0.cases {
                let record = records.cases.iter_mut().find(|record| record.case.key == case.case.key).unwrap();
                record.hashes.as_mut().unwrap().code = case.hashes.unwrap().code;
                assert!(record.hashes.as_ref().unwrap().code.is_some());
            }
        }
    });
}

#[test]
fn without_git_the_recorded_code_decides() {
    let repository = Repository::uncommitted();
    repository.edit("kernels/scale.cu", "template", "// Scales.\ntemplate");
    let unknown = "the records have no code hash, and git has no revision with the measured sources";
    let sources = "kernels/load.cuh, kernels/scale.cu";
    let doubt = format!("a source differs (one of {sources}), but the code was not compared ({unknown})");
    repository.assert_checked(&format!("May be stale: {doubt}: {ALL}.\n"), 0);

    with_machine_code(&repository);
    repository.assert_checked("", 0);
    repository.edit("kernels/load.cuh", "return *at", "return 2 * *at");
    repository.assert_checked(&format!("Stale: measured before a source changed (one of {sources}): {ALL}.\n"), 6);

    repository.change(|records| records.environment.toolkit.build = Some("12.0.1".to_owned()));
    let (_, said, _) = repository.runner(&["report", "--check"]);
    assert!(
        said.contains("the code was not compared (it was compiled by NVRTC 12.0.1, but this machine has 13."),
        "{said}"
    );
}

#[test]
fn a_shallow_clone_names_what_it_lacks() {
    let repository = Repository::new();
    repository.edit("kernels/load.cuh", "return *at", "return 2 * *at");
    repository.commit("Load twice as much");
    let clone = tempfile::tempdir().unwrap();
    let source = format!("file://{}", repository.0.path().display());
    let arguments = ["clone", "-q", "--depth", "1", &source, "."];
    assert!(Command::new("git").current_dir(clone.path()).args(arguments).status().unwrap().success());
    let (code, said, error) = runner(clone.path(), &["report", "--check"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("May be stale: a source differs (one of kernels/load.cuh, kernels/scale.cu)"), "{said}");
    assert!(said.contains("git has no revision with the measured sources"), "{said}");
}

#[test]
fn records_without_hashes_and_reports_without_a_manifest_are_not_known_to_be_current() {
    let repository = Repository::new();
    repository.git(&["rm", "-q", "experiments/scale.toml"]);
    let unknown = |why: &str| {
        format!("Not checked whether the report fits the sources of this revision ({why}): scale on Simulated H100.\n")
    };
    repository.assert_checked(&unknown("there is no experiments/scale.toml"), 0);
    repository.write("experiments/scale.toml", MANIFEST);
    repository.change(|records| records.cases.iter_mut().for_each(|record| record.hashes = None));
    repository.assert_checked(&unknown("its records have no source hashes"), 0);
}

#[test]
fn the_history_says_that_its_newest_report_is_stale() {
    let repository = Repository::new();
    repository.change(|records| {
        let timed = fixture::calibrated(&fixture::regimes());
        let result = timed.cases.iter().find_map(|record| record.result.clone()).unwrap();
        records.cases.iter_mut().for_each(|record| record.result = Some(result.clone()));
    });
    repository.commit("Take times");
    let (code, said, error) = repository.runner(&["history", REPORT]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("No change in the history of 4 cases\n"), "{said}");
    repository.edit("kernels/scale.cu", "FACTOR *", "FACTOR +");
    repository.commit("Break the kernel");
    let (_, said, _) = repository.runner(&["history", REPORT]);
    let sentence = format!("Stale: measured before kernels/scale.cu changed: {ALL}.");
    assert!(said.starts_with(&format!("No change in the history of 4 cases; 1 stale report\n{sentence}\n")), "{said}");
}
