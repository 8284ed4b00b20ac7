//! What the tasks of a job need besides the sources of their own cases, and what a shard that fails leaves undone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{JOB, KERNEL, MANIFEST, project, runner};

/// Variants whose files are all different: source, header, include folder and reference.
const VARIANTS: &str = r#"
[[variant]]
name   = "other"
source = "other.cu"
kernel = "other"
include_paths = ["include", "unused"]
grid   = ["ceil_div(n, block)"]
block  = ["block"]
args   = ["input", "output", "u32(n)"]
check  = { actual = "output", expect = { npy = "expected.npy" } }

[[variant]]
name   = "large"
source = ["large.cu", "linked.cu"]
kernel = "large"
requires = "n > 1000000"
grid   = ["ceil_div(n, block)"]
block  = ["block"]
args   = ["input", "output", "u32(n)"]
check  = { actual = "output", expect = { cpp = "large.cpp:expected" } }
"#;

const OTHER: &str = "extern \"C\" __global__ void NAME(const float* input, float* output, unsigned n) {\n\
                     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) output[i] = 2.0f * input[i];\n}\n";

/// An `.npy` file of 256 zeros in f32.
fn npy() -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }".to_owned();
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(118_u16.to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([0; 1024]);
    bytes
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn tasks_have_the_files_of_variants_without_a_case() {
    let dir = project("experiments/scale.toml");
    let dir = dir.path();
    let manifest = MANIFEST.replace("n     = { pow2 = [8, 17, 1] }", "n     = { npy = \"sizes.npy\", dim = 0 }");
    write(
        dir,
        &[
            ("experiments/scale.toml", &(manifest + VARIANTS)),
            ("kernels/other.cu", "#include <other.cuh>\n"),
            ("kernels/include/other.cuh", &OTHER.replace("NAME", "other")),
            ("kernels/unused/README", "no header"),
            ("kernels/large.cu", &OTHER.replace("NAME", "large")),
            ("kernels/linked.cu", "__device__ int linked;\n"),
            (
                "experiments/large.cpp",
                "#include <vector>\n#include \"twice.hpp\"\nstd::vector<float> expected(const std::vector<float>& input) {\n\
                 std::vector<float> all;\nfor (float x : input) all.push_back(twice(x));\nreturn all;\n}\n",
            ),
            ("experiments/twice.hpp", "static float twice(float x) { return x + x; }\n"),
        ],
    );
    for name in ["sizes.npy", "expected.npy"] {
        fs::write(dir.join("experiments").join(name), npy()).unwrap();
    }
    let sent = |name: &str, more: &[&str]| {
        let words = ["submit", "experiments/scale.toml", "--backend", "sim", "--name", name];
        runner(dir, &[&words[..], more].concat(), 0);
        let said = runner(dir, &["status", &format!("target/jobs/{name}")], 0);
        assert!(said.contains("1 shard: 1 done"), "{more:?}: {said}");
    };
    sent("one", &["--variant", "plain"]);
    sent("two", &["--filter", "variant == \"plain\""]);
    sent("three", &["--set", "block=64", "--variant", "twice"]);
}

#[test]
fn a_shard_that_fails_does_not_end_the_others_of_its_task() {
    let dir = project("experiments/scale.toml");
    let dir = dir.path();
    let named = |name: &str| MANIFEST.replace("\"scale\"\ntitle", &format!("\"{name}\"\ntitle"));
    let manifests = ["first", "second", "third"].map(|name| (format!("experiments/{name}.toml"), named(name)));
    write(dir, &manifests.each_ref().map(|(path, text)| (path.as_str(), text.as_str())));
    write(dir, &[("kernels/scale.cu", KERNEL)]);
    let files: Vec<&str> = manifests.iter().map(|(path, _)| path.as_str()).collect();
    let options = ["--backend", "sim", "--set", "n=256", "--scheduler", "pbs", "--name", "job"];
    let said = runner(dir, &[&["submit"], &files[..], &options].concat(), 0);
    assert!(said.contains("3 shards in 1 task"), "{said}");
    let groups = dir.join(JOB).join("groups/first");
    let whole = fs::read(&groups).unwrap();
    fs::write(&groups, &whole[..whole.len() - 1]).unwrap();
    let task = || {
        let mut script = Command::new("bash");
        script.arg(dir.join(JOB).join("task-1-0.sh")).env("PBS_ARRAY_INDEX", "0");
        script.env("XDG_STATE_HOME", dir.join("state")).output().unwrap()
    };
    let output = task();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = runner(dir, &["status", JOB], 1);
    assert!(said.contains("3 shards: 2 done, 1 failed"), "{said}");
    assert!(said.contains("failed         first 1/1: ") && said.contains("groups/first"), "{said}");
    // The next start of the task runs only what is missing.
    fs::write(&groups, &whole).unwrap();
    assert_eq!(task().status.code(), Some(0));
    let said = runner(dir, &["status", JOB], 0);
    assert!(said.contains("3 shards: 3 done"), "{said}");
    let attempts = |name: &str| fs::read_dir(dir.join(JOB).join("shards").join(name).join("1-of-1")).unwrap().count();
    assert_eq!(["first", "second", "third"].map(attempts), [1, 1, 1]);
}
