//! `runner run --shard` and `runner merge`, as a user types them, on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const MANIFEST: &str = r#"
[experiment]
name     = "scale"
title    = "Twice the input"
baseline = "plain"

[axes]
n     = { pow2 = [8, 14, 2] }
block = [64, 256]

[matrix]
exclude = [{ when = "n < 4 * block", why = "fewer than four blocks" }]

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
kernel = "scale"
grid   = ["ceil_div(n, block)"]
block  = ["block"]
args   = ["input", "output", "u32(n)"]
"#;

const KERNEL: &str = r"
__global__ void scale(const float* input, float* output, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = 2.0f * input[i];
}
";

pub fn project() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("experiments/scale.toml", MANIFEST), ("kernels/scale.cu", KERNEL)] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[track_caller]
pub fn runner(dir: &Path, arguments: &[&str], code: i32) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(dir)
        .args(["--color", "never"])
        .args(arguments)
        .output()
        .unwrap();
    let all = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{all}");
    all
}

const SIMULATED: [&str; 4] = ["run", "experiments/scale.toml", "--backend", "sim"];

fn shard(dir: &Path, shard: &str) -> String {
    runner(dir, &[&SIMULATED[..], &["--shard", shard]].concat(), 0)
}

pub const DEVICE: &str = "simulated-h100";

#[test]
fn merged_shards_are_the_report_of_one_run_byte_for_byte() {
    let dir = project();
    runner(dir.path(), &[&SIMULATED[..], &["--out", "alone"]].concat(), 0);
    let said = shard(dir.path(), "1/3");
    let folder = format!("target/shards/scale/{DEVICE}");
    assert!(said.contains(&format!("journal: {folder}/1-of-3/journal.jsonl")), "{said}");
    shard(dir.path(), "3/3");

    let said = runner(dir.path(), &["merge", &folder, "--out", "merged"], 1);
    assert!(said.contains("no journal of 1 shard: 2/3"), "{said}");
    assert!(fs::read_to_string(dir.path().join("merged/report.md")).unwrap().contains("Incomplete: "));

    shard(dir.path(), "2/3");
    let said = runner(dir.path(), &["merge", &folder, "--out", "merged"], 0);
    assert!(!said.contains("warning"), "{said}");
    for file in ["report.md", "records.jsonl", "results.csv", "environment.json"] {
        let [alone, merged] = ["alone", "merged"].map(|out| fs::read(dir.path().join(out).join(file)).unwrap());
        assert!(alone == merged, "{file} differs");
    }
}

#[test]
fn a_part_of_the_matrix_never_replaces_the_report_of_the_whole() {
    let dir = project();
    runner(dir.path(), &[&SIMULATED[..], &["--out", "whole"]].concat(), 0);
    let report = || fs::read(dir.path().join("whole/records.jsonl")).unwrap();
    let before = report();
    shard(dir.path(), "1/3");
    shard(dir.path(), "3/3");
    let said = runner(dir.path(), &["merge", &format!("target/shards/scale/{DEVICE}"), "--out", "whole"], 1);
    let kept = "warning: whole has the report of a complete run and is kept; the partial report goes to \
                target/reports/scale/whole";
    assert!(said.contains(kept), "{said}");
    assert!(said.contains(" of 8 planned cases passed"), "{said}");
    let page = fs::read_to_string(dir.path().join("target/reports/scale/whole/report.md")).unwrap();
    assert!(page.contains("1 of 8 planned cases was not run. Run what is missing and merge again."), "{page}");

    runner(dir.path(), &[&SIMULATED[..], &["--set", "n=1024", "--out", "narrow"]].concat(), 0);
    let said = runner(dir.path(), &["merge", "narrow", "--out", "whole"], 0);
    assert!(said.contains(kept), "{said}");
    assert!(report() == before, "the report of the whole was replaced");
}

#[test]
fn a_shard_writes_no_report_and_resumes() {
    let dir = project();
    shard(dir.path(), "2/2");
    let folder = dir.path().join(format!("target/shards/scale/{DEVICE}/2-of-2"));
    assert!(folder.join("journal.jsonl").exists() && !folder.join("report.md").exists());
    let before = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    runner(dir.path(), &[&SIMULATED[..], &["--shard", "2/2", "--resume"]].concat(), 0);
    let after = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    assert!(!after[before.len()..].contains("case_checked"), "{after}");
}

#[test]
fn a_wrong_shard_and_a_folder_without_journals_say_what_to_do() {
    let dir = project();
    let refused = |shard: &str| runner(dir.path(), &[&SIMULATED[..], &["--shard", shard]].concat(), 2);
    assert!(refused("0/3").contains("numbered from 1 to N"));
    assert!(refused("3").contains("write I/N, for example 3/40"));
    assert!(runner(dir.path(), &["merge", "experiments"], 2).contains("holds no journal"));
    assert!(runner(dir.path(), &["merge", "nowhere"], 2).contains("nowhere does not exist"));
}
