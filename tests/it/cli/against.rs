//! `runner run --against`, as a user types it: a repository, a change in its working tree, one run on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

pub const MANIFEST: &str = r#"
[experiment]
name     = "scale"
title    = "Twice the input"
baseline = "plain"

[axes]
n = [1024]

[buffers.input]
type = "f32"
len  = "n"
fill = { uniform = [-1, 1], seed = 7 }

[buffers.output]
type   = "f32"
len    = "n"
access = "out"

[check]
actual = "output"
expect = "add(input, input)"

[[variant]]
name   = "plain"
source = "scale.cu"
kernel = "scale<1>"
grid   = ["ceil_div(n, 256)"]
block  = [256]
args   = ["input", "output", "u32(n)"]

[[variant]]
name   = "wide"
source = "scale.cu"
kernel = "scale<2>"
grid   = ["ceil_div(n, 512)"]
block  = [256]
args   = ["input", "output", "u32(n)"]
"#;

const KERNEL: &str = r#"
#include "load.cuh"

template <int PER_THREAD>
__global__ void scale(const float* input, float* output, unsigned n) {
    for (int k = 0; k < PER_THREAD; ++k) {
        unsigned i = (blockIdx.x * PER_THREAD + k) * blockDim.x + threadIdx.x;
        if (i < n) output[i] = 2.0f * load(input + i);
    }
}

// Twice the input.
"#;

const HEADER: &str = "__device__ float load(const float* at) { return *at; }\n";

/// Loads each element twice.
pub const LOADS_TWICE: &str = "__device__ float load(const float* at) {\n    volatile const float* again = at;\n    float \
                           first = *again;\n    return first == *again ? first : 0.0f;\n}\n";

/// A repository with the experiment in its only commit.
pub struct Repository {
    dir: TempDir,
}

pub struct Ran {
    pub code: Option<i32>,
    pub said: String,
    pub error: String,
}

impl Ran {
    #[track_caller]
    fn expect(&self, code: i32, words: &[&str]) {
        let all = format!("{}{}", self.said, self.error);
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is not in:\n{all}");
        }
    }

    /// Change of a case in the comparison as JSON.
    #[track_caller]
    fn change(&self, variant: &str, n: u64) -> Value {
        let page: Value = serde_json::from_str(&self.said).unwrap();
        let mut changes = page["reports"][0]["changes"].as_array().unwrap().iter();
        let is_it = |change: &&Value| change["variant"] == variant && change["axes"]["n"] == n;
        changes.find(is_it).unwrap_or_else(|| panic!("no {variant} of {n} in {page}")).clone()
    }
}

impl Repository {
    pub fn new() -> Self {
        Self::with(MANIFEST)
    }

    pub fn with(manifest: &str) -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap() };
        repository.write("experiments/scale.toml", manifest);
        repository.write("kernels/scale.cu", KERNEL);
        repository.write("kernels/load.cuh", HEADER);
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "experiment"]);
        repository
    }

    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = Command::new("git").current_dir(self.dir.path()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_all(&["experiments/scale.toml"], arguments)
    }

    fn run_all(&self, manifests: &[&str], arguments: &[&str]) -> Ran {
        let words = ["--color", "never", "run", "--backend", "sim"].iter().chain(manifests);
        let output = Command::new(env!("CARGO_BIN_EXE_runner"))
            .current_dir(self.dir.path())
            .args(words)
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), said: text(output.stdout), error: text(output.stderr) }
    }

    fn is_there(&self, name: &str) -> bool {
        Path::exists(&self.path(name))
    }
}

#[test]
fn one_more_load_per_thread_is_found_and_explained() {
    let repository = Repository::new();
    repository.write("kernels/load.cuh", LOADS_TWICE);
    let ran = repository.run(&["--against", "HEAD"]);
    ran.expect(
        4,
        &[
            "✗ Fails: 2 cases do more work (`scale` on Simulated H100, ",
            "\n2 cases: 2 do more work.",
            "source changed",
            "gld_sectors 128 → 256",
        ],
    );
    assert!(!repository.is_there("reports"), "the report is below target/");
    // 1024 elements are 32 warps; requests are counted per warp.
    let ran = repository.run(&["--against", "main", "--format", "json", "--markdown", "page.md"]);
    let change = ran.change("plain", 1024);
    assert_eq!((change["change"].as_str(), change["counted_by"].as_str()), (Some("more_work"), Some("simulator")));
    let counters = change["counters"].as_array().unwrap();
    let requests = counters.iter().find(|counter| counter["name"] == "gld_requests").unwrap();
    assert_eq!((requests["base"].as_f64(), requests["new"].as_f64()), (Some(32.0), Some(64.0)));
    assert!(change["operations"].is_null(), "the run did not ask for them: {change}");
    assert!(fs::read_to_string(repository.path("page.md")).unwrap().contains("2 cases do more work"));
    let report = repository.path("target/reports/scale/simulated-h100-against-main/records.jsonl");
    let records = fs::read_to_string(report).unwrap();
    assert!(records.contains("\"plain@") && records.contains("\"wide@"), "{records}");
}

#[test]
fn with_lines_the_operations_of_the_machine_code_that_changed_are_named() {
    let repository = Repository::new();
    repository.write("kernels/load.cuh", LOADS_TWICE);
    let ran = repository.run(&["--against", "HEAD", "--lines", "--format", "json", "--markdown", "page.md"]);
    let change = ran.change("plain", 1024);
    let loads = change["operations"].as_array().unwrap().iter().find(|operation| operation["name"] == "LDG").unwrap();
    assert_eq!((loads["base"].as_u64(), loads["new"].as_u64()), (Some(1), Some(2)));
    let added = |instruction: &&Value| instruction["added"] == true && instruction["name"] == "LDG";
    let added: Vec<_> = change["instructions"].as_array().unwrap().iter().filter(added).collect();
    assert_eq!(added.iter().map(|one| &one["place"]).collect::<Vec<_>>(), ["load.cuh:3"], "{change}");
    let page = fs::read_to_string(repository.path("page.md")).unwrap();
    assert!(
        page.contains("machine code: + LDG at new load.cuh:3, + FSETP at new load.cuh:4, + FSEL at new scale.cu:8"),
        "{page}"
    );
}

#[test]
fn counts_by_lines_say_at_which_line_of_the_source_sectors_rose() {
    let repository = Repository::new();
    let store = "if (i < n) output[i] = 2.0f * load(input + i);";
    let apart = "if (i < n) output[i * 33 % n] = 2.0f * load(input + i * 33 % n);";
    repository.write("kernels/scale.cu", &KERNEL.replace(store, apart));
    // 1024 floats are 128 sectors. With a stride of 33 floats, each float is in its own sector.
    let words = [
        "\n  + 8  if (i < n) output[i * 33 % n]",
        "gld_sectors 128 → 1,024 (+700 %, all at load.cuh:1)",
        "gst_sectors 128 → 1,024 (+700 %, all at scale.cu:8)",
    ];
    repository.run(&["--against", "HEAD", "--lines", "--out", "made"]).expect(4, &words);
    let lines = fs::read_to_string(repository.path("made/lines.csv")).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains("output[i * 33 % n]")).count(), 2, "{lines}");
    // The table is generated from the records; a report without line data has none.
    let check = |code| {
        let checked = Command::new(env!("CARGO_BIN_EXE_runner"))
            .current_dir(repository.folder())
            .args(["report", "--check", "made"])
            .output()
            .unwrap();
        assert_eq!(checked.status.code(), Some(code), "{}", String::from_utf8_lossy(&checked.stdout));
    };
    check(0);
    fs::write(repository.path("made/lines.csv"), lines.replace(",128,", ",127,")).unwrap();
    check(1);
    let ran = repository.run(&["--against", "HEAD", "--out", "made"]);
    assert!(!ran.said.contains("all at"), "{}", ran.said);
    assert!(!repository.is_there("made/lines.csv"));
}

#[test]
fn without_a_change_everything_is_the_same() {
    Repository::new().run(&["--against", "HEAD"]).expect(0, &["✓ Passes: no regression (", "\n2 cases: 2 same."]);
}

#[test]
fn a_base_that_cannot_be_read_is_named_and_the_rest_runs() {
    let repository = Repository::with(&MANIFEST.replace("ceil_div(n, 512)", "ceil_div(m, 512)"));
    repository.write("experiments/scale.toml", MANIFEST);
    let ran = repository.run(&["--against", "HEAD"]);
    ran.expect(0, &["2 cases: 2 new.", "HEAD:experiments/scale.toml cannot be used", "undefined name `m`"]);
    // The base does not have this experiment.
    repository.git(&["mv", "experiments/scale.toml", "experiments/other.toml"]);
    repository.git(&["commit", "-qm", "without"]);
    repository.write("experiments/scale.toml", MANIFEST);
    repository.run(&["--against", "HEAD"]).expect(0, &["HEAD:experiments/scale.toml does not exist", "2 new"]);
}

#[test]
fn a_base_that_does_not_compile_is_named_and_the_rest_is_compared() {
    let broken = KERNEL.replace("template", "template <int N> __global__ void broken() { nothing(N); }\ntemplate");
    let repository = Repository::with(&MANIFEST.replace("scale<2>", "broken<2>"));
    repository.write("kernels/scale.cu", &broken);
    repository.git(&["commit", "-qam", "broken"]);
    repository.write("experiments/scale.toml", MANIFEST);
    let ran = repository.run(&["--against", "HEAD", "--format", "json"]);
    ran.expect(0, &[]);
    let wide = ran.change("wide", 1024);
    assert_eq!((wide["change"].as_str(), wide["base_outcome"].as_str()), (Some("fixed"), Some("compile_error")));
    assert_eq!(ran.change("plain", 1024)["change"], "same");
}

#[test]
fn variants_and_axis_values_that_one_side_lacks_are_listed() {
    let repository = Repository::with(&MANIFEST.replace("[1024]", "[1024, 2048]"));
    // The kernel differs too. If only the name differed, it would count as the same variant, renamed.
    let wider = MANIFEST.replace("[1024]", "[1024, 4096]").replace("\"wide\"", "\"wider\"").replace("<2>", "<4>");
    repository.write("experiments/scale.toml", &wider.replace("512", "1024"));
    let ran = repository.run(&["--against", "HEAD", "--format", "json"]);
    ran.expect(0, &[]);
    for (variant, n, expected) in [
        ("plain", 1024, "same"),
        ("plain", 4096, "new"),
        ("plain", 2048, "gone"),
        ("wider", 1024, "new"),
        ("wider", 4096, "new"),
        ("wide", 1024, "gone"),
        ("wide", 2048, "gone"),
    ] {
        assert_eq!(ran.change(variant, n)["change"], expected, "{variant} {n}");
    }
}

#[test]
fn a_changed_launch_is_compared_and_another_input_is_not() {
    let repository = Repository::new();
    repository.write("experiments/scale.toml", &MANIFEST.replace("[256]", "[128]").replace(", 256)", ", 128)"));
    let ran = repository.run(&["--against", "HEAD", "--variant", "plain"]);
    ran.expect(0, &["1 case: 1 same."]);

    // The base runs on the new contents.
    repository.write("experiments/scale.toml", &MANIFEST.replace("seed = 7", "seed = 8"));
    let ran = repository.run(&["--against", "HEAD"]);
    ran.expect(
        0,
        &[
            "Buffer `input`: `f32[n], uniform from -1 to 1, seed 7, access in` → `f32[n], uniform from -1 to 1, seed 8",
            "2 cases: 2 same.",
        ],
    );
}

#[test]
fn a_folder_takes_the_place_of_a_revision() {
    let (old, new) = (Repository::new(), Repository::new());
    new.write("kernels/load.cuh", LOADS_TWICE);
    let folder = old.dir.path().to_str().unwrap();
    new.run(&["--against", folder]).expect(4, &["✗ Fails: 2 cases do more work"]);
    old.run(&["--against", new.dir.path().to_str().unwrap()])
        .expect(0, &["✓ Passes: no regression, 2 cases do less work"]);
    fs::remove_file(old.path("experiments/scale.toml")).unwrap();
    new.run(&["--against", folder]).expect(2, &["it has no experiments/scale.toml"]);
}

#[test]
fn no_report_is_replaced_and_nothing_unknown_is_compared() {
    let repository = Repository::new();
    repository.run(&["--out", "there"]).expect(0, &[]);
    let before = fs::read(repository.path("there/records.jsonl")).unwrap();
    repository.run(&["--against", "HEAD", "--out", "there"]).expect(2, &["never replaces a report", "--out"]);
    assert_eq!(fs::read(repository.path("there/records.jsonl")).unwrap(), before);
    repository.run(&["--against", "no-such"]).expect(2, &["--against no-such", "no revision `no-such`"]);
    repository.run(&["--threshold", "2%"]).expect(2, &["--against"]);
}

#[test]
fn several_manifests_give_one_verdict() {
    let repository = Repository::new();
    repository.write("experiments/twice.toml", &MANIFEST.replace("\"scale\"", "\"twice\"").replace("[1024]", "[2048]"));
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "another"]);
    let manifests = ["experiments/scale.toml", "experiments/twice.toml"];
    let same = repository.run_all(&manifests, &["--against", "HEAD"]);
    same.expect(0, &["4 cases: 4 same.", "2 of 2 experiments succeeded"]);
    assert!(
        same.said.starts_with("✓ Passes: 0 of 2 experiments changed (") && !same.said.contains("experiments succeeded"),
        "{}",
        same.said
    );

    repository.write("kernels/load.cuh", LOADS_TWICE);
    let ran = repository.run_all(&manifests, &["--against", "HEAD", "--format", "json"]);
    ran.expect(4, &["2 of 2 experiments succeeded"]);
    let page: Value = serde_json::from_str(&ran.said).unwrap();
    let experiments: Vec<&str> =
        page["reports"].as_array().unwrap().iter().map(|report| report["experiment"].as_str().unwrap()).collect();
    assert_eq!((experiments, page["counts"]["more_work"].as_u64()), (vec!["scale", "twice"], Some(4)));
}

#[test]
fn a_claim_that_the_change_removes_is_in_the_verdict_and_fails_if_that_is_asked_for() {
    let claim = "[[claim]]\nthat = 'counter(\"gld_requests\", \"plain\") <= 32'\n";
    let repository = Repository::with(&format!("{MANIFEST}{claim}"));
    repository.write("experiments/scale.toml", MANIFEST);
    repository.run(&["--against", "HEAD"]).expect(0, &["! Passes, needs a reviewer: 1 claim removed ("]);
    repository.run(&["--against", "HEAD", "--strict"]).expect(6, &["≠ Fails: 1 claim removed ("]);
}

#[test]
fn a_renamed_variant_is_measured_beside_what_it_was() {
    let repository = Repository::with(MANIFEST);
    let renamed = MANIFEST.replace("\"wide\"", "\"broad\"");
    assert_ne!(renamed, MANIFEST);
    repository.write("experiments/scale.toml", &renamed);
    let said = ["\n2 cases: 2 same.", "Variant `wide` renamed to `broad`."];
    repository.run(&["--against", "HEAD"]).expect(0, &said);
}

/// Requests and sectors double.
#[test]
fn an_accepted_slowdown_is_shown_and_fails_nothing_until_the_base_has_it() {
    let accept =
        |by: &str| format!("[[accept]]\nby = \"{by}\"\nreason = \"the second load checks\"\ncommit = \"1a2b3c4\"\n");
    let repository = Repository::with(MANIFEST);
    repository.write("kernels/load.cuh", LOADS_TWICE);
    repository.write("experiments/scale.toml", &format!("{MANIFEST}{}", accept("100%")));
    let said = [
        "! Passes, needs a reviewer: 2 cases do more work, accepted in the manifest",
        "accepted up to +100 % (1a2b3c4: the second load checks)",
    ];
    repository.run(&["--against", "HEAD"]).expect(0, &said);
    repository.write("experiments/scale.toml", &format!("{MANIFEST}{}", accept("99%")));
    repository.run(&["--against", "HEAD"]).expect(4, &["✗ Fails: 2 cases do more work ("]);
    let known = Repository::with(&format!("{MANIFEST}{}", accept("100%")));
    known.write("kernels/load.cuh", LOADS_TWICE);
    known.run(&["--against", "HEAD"]).expect(4, &["✗ Fails: 2 cases do more work ("]);
}

/// 1024 elements are 32 warps; their requests double.
#[test]
fn a_claim_that_the_change_breaks_is_told_from_one_that_was_broken() {
    let claim = |most: u32| format!("[[claim]]\nthat = 'counter(\"gld_requests\", \"plain\") <= {most}'\n");
    let repository = Repository::with(&format!("{MANIFEST}{}{}{}", claim(32), claim(16), claim(64)));
    let same = repository.run(&["--against", "HEAD"]);
    same.expect(5, &["✗ Fails: 1 claim still broken (", "Claims: 1 still broken, 2 held.", "<= 16: 32, as before"]);
    repository.write("kernels/load.cuh", LOADS_TWICE);
    let ran = repository.run(&["--against", "HEAD", "--format", "json", "--markdown", "page.md"]);
    ran.expect(5, &[]);
    let page: Value = serde_json::from_str(&ran.said).unwrap();
    assert_eq!(page["verdict"], "broken_claim");
    let claims = page["reports"][0]["claims"].as_array().unwrap();
    let changes: Vec<&str> = claims.iter().map(|claim| claim["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["newly_broken", "still_broken", "held"]);
    assert_eq!((claims[0]["base"]["detail"].as_str(), claims[0]["new"]["detail"].as_str()), (Some("32"), Some("64")));
    let text = fs::read_to_string(repository.path("page.md")).unwrap();
    assert!(
        text.starts_with("## ✗ Fails: 1 claim newly broken, 1 claim still broken, 2 cases do more work ("),
        "{text}"
    );
    assert!(
        text.contains("- ✗ **newly broken**: `counter(\"gld_requests\", \"plain\") <= 32`: 64; before: 32\n"),
        "{text}"
    );
}
