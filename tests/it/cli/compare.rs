//! `runner compare`, as a user types it: folders, trees, journals and git revisions.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use runner_results::journal::{self, Journal};
use runner_types::Records;
use tempfile::TempDir;

/// A repository with reports in its only commit; tests change them in the working tree.
struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap() };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = Command::new("git").current_dir(self.dir.path()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "reports"]);
    }

    fn store(&self, folder: &str, records: &Records) {
        let folder = self.dir.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("records.jsonl"), journal::records_text(records).unwrap()).unwrap();
    }

    fn compare(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = compare(self.dir.path(), arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

fn compare(dir: &Path, arguments: &[&str]) -> Output {
    let words = ["--color", "never", "compare"].iter().chain(arguments);
    Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(dir).args(words).output().unwrap()
}

/// Records of many variants in two regimes, from a calibrated machine.
fn records() -> Records {
    fixture::calibrated(&fixture::regimes())
}

fn slow_down(records: &mut Records, variant: &str, factor: f64) {
    for record in records.cases.iter_mut().filter(|record| record.case.key.variant == variant) {
        let time = &mut record.result.as_mut().unwrap().time;
        for end in [&mut time.point, &mut time.low, &mut time.high] {
            *end *= factor;
        }
        "another".clone_into(&mut record.hashes.as_mut().unwrap().source);
        record.launches[0].resources.registers = Some(96);
    }
}

#[test]
fn a_revision_is_compared_with_the_working_tree_without_a_checkout() {
    let repository = Repository::new();
    let mut new = records();
    repository.store("reports/regimes/h100", &new);
    repository.commit();
    let (code, said, error) = repository.compare(&["main:reports/regimes", "reports/regimes"]);
    assert_eq!(code, Some(0), "{said}{error}");
    assert!(
        said.starts_with("✓ Passes: no regression (") && said.contains("\n36 cases (72 measurements: cold, warm): "),
        "{said}"
    );

    slow_down(&mut new, "variant3", 1.5);
    repository.store("reports/regimes/h100", &new);
    for base in ["main:reports/regimes/h100", "HEAD:reports/regimes/h100/records.jsonl", "main:", "HEAD:/reports/"] {
        let (code, said, error) = repository.compare(&[base, "reports"]);
        assert_eq!(code, Some(4), "{base}: {said}{error}");
        assert!(said.starts_with("✗ Fails: 3 cases slower ("), "{said}");
        assert!(said.contains("source changed; registers 40 → 96"), "{said}");
        let commit = &repository.git(&["rev-parse", "HEAD"])[..7];
        assert!(said.contains(&format!(", measured, {commit} → {commit} with changes)\n")), "{said}");
    }
    let (code, said, error) = repository.compare(&["reports", "main:reports"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("✓ Passes: no regression, 3 cases faster ("), "{said}");
}

#[test]
fn a_wrong_revision_or_path_says_what_is_wrong() {
    let repository = Repository::new();
    repository.store("reports/regimes/h100", &records());
    repository.commit();
    let refused = |argument: &str, words: &str| {
        let (code, _, error) = repository.compare(&[argument, "reports"]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(words), "`{words}` is not in {error}");
    };
    refused("topic:reports", "git knows no revision `topic` here");
    refused("--:reports", "unexpected argument");
    refused("main:report", "`report` is not in revision `main`");
    refused("report", "report does not exist");
    let outside = tempfile::tempdir().unwrap();
    let output = compare(outside.path(), &["main:reports", repository.dir.path().to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("is not in a git checkout"), "{error}");
}

/// As in `checkout.rs`: git runs programs that a checkout's configuration names, but not when `runner` calls it.
#[test]
fn reading_a_revision_runs_no_program_of_the_checkout() {
    let repository = Repository::new();
    repository.store("reports/regimes/h100", &records());
    repository.commit();
    let canary = repository.dir.path().join("canary");
    let trap = format!("touch '{}'", canary.display());
    let attributes = repository.dir.path().join(".gitattributes");
    fs::write(attributes, "*.jsonl filter=trap diff=trap\n").unwrap();
    for key in ["core.fsmonitor", "filter.trap.smudge", "filter.trap.clean", "diff.trap.textconv", "core.sshCommand"] {
        repository.git(&["config", key, &trap]);
    }
    // The trap works: an ordinary git command triggers it.
    let _ = Command::new("git").current_dir(repository.dir.path()).args(["status"]).output().unwrap();
    assert!(fs::remove_file(&canary).is_ok());
    let (code, said, error) = repository.compare(&["main:reports", "reports"]);
    assert_eq!(code, Some(0), "{said}{error}");
    assert!(!canary.exists());
}

#[test]
fn a_tree_gives_one_verdict_and_pairs_reports_by_experiment_and_folder() {
    let repository = Repository::new();
    let mut records = records();
    repository.store("base/regimes/h100", &records);
    repository.store("base/regimes/h100-again", &records);
    repository.store("base/other/h100", &fixture::calibrated(&fixture::sum_matrix()));
    slow_down(&mut records, "variant3", 1.5);
    repository.store("new/regimes/h100", &records);
    repository.store("new/regimes/h100-again", &records);
    let (code, said, error) = repository.compare(&["base", "new"]);
    assert_eq!(code, Some(4), "{error}");
    assert!(said.starts_with("✗ Fails: 6 cases slower ("), "{said}");
    assert!(said.contains("\nReport deleted: `base/other/h100` ("), "{said}");
}

#[test]
fn a_journal_is_compared_as_the_report_that_it_gives() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&dir.path().join("journal")).unwrap();
    let run = fixture::sum_matrix();
    for event in &run.events {
        journal.record(event).unwrap();
    }
    drop(journal);
    let records = runner_results::analyse::records(&run.events).unwrap();
    fs::create_dir(dir.path().join("stored")).unwrap();
    fs::write(dir.path().join("stored/records.jsonl"), journal::records_text(&records).unwrap()).unwrap();
    for new in ["journal", "journal/journal.jsonl"] {
        let output = compare(dir.path(), &["stored", new, "--threshold", "5%"]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.starts_with("✓ Passes: no regression (") && said.contains("\n26 cases: 26 same."), "{said}");
    }
}

const KERNEL: &str = "extern \"C\" __global__ void scale(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = in[i];
        // EXTRA
        out[i] = 2.0f * x;
    }
}
";

const MANIFEST: &str = r#"
[experiment]
name  = "scale"
title = "Scale an array"
[axes]
n = [4096]
[buffers.input]
type = "f32"
len  = "n"
fill = { uniform = [0, 1], seed = 1 }
[buffers.output]
type   = "f32"
len    = "n"
access = "out"
[[variant]]
name   = "scale"
source = "scale.cu"
kernel = "scale"
grid   = ["n / 256"]
block  = [256]
args   = ["input", "output", "u32(n)"]
"#;

/// One warp reads one more element, from another cache line: one more request and one more sector.
#[test]
fn one_extra_transaction_in_a_simulated_kernel_is_found_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let simulate = |out: &str| {
        let run = ["run", "scale.toml", "--backend", "sim", "--out", out, "--quiet"];
        let output = Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(dir.path()).args(run).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    };
    write("scale.toml", MANIFEST);
    write("scale.cu", KERNEL);
    simulate("base");
    let same = compare(dir.path(), &["base", "base"]);
    assert_eq!(same.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&same.stdout).contains(")\nNo count changed.\n1 case: 1 same. "));
    let extra = "if (i == 5) x += 0.0f * *(volatile const float *)(in + n - 1);";
    write("scale.cu", &KERNEL.replace("// EXTRA", extra));
    simulate("new");

    let output = compare(dir.path(), &["base", "new"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.starts_with("✗ Fails: 1 case does more work (`scale` on Simulated H100, base → new)\nMore work: "),
        "{said}"
    );
    // 128 warps read 4 sectors each; one of them reads one more.
    assert!(said.contains("source changed") && said.contains("gld_sectors 512 → 513"), "{said}");
    let json = compare(dir.path(), &["base", "new", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["verdict"], "regression");
    let counters = json["reports"][0]["changes"][0]["counters"].as_array().unwrap();
    let sectors = counters.iter().find(|counter| counter["name"] == "gld_sectors").unwrap();
    assert_eq!((sectors["base"].as_f64(), sectors["new"].as_f64()), (Some(512.0), Some(513.0)));
}
