//! Machine code counts when there is no disassembler and none may be fetched, through the real binary.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const MANIFEST: &str = r#"
[experiment]
name = "scale"
[buffers]
x = { type = "f32", len = 1024, fill = { uniform = [0, 1] } }
y = { type = "f32", len = 1024 }
[check]
actual = "y"
expect = "add(x, x)"
[[variant]]
name = "scale"
source = "scale.cu"
kernel = "scale"
grid = [4]
block = [256]
args = ["y", "x"]
"#;

const KERNEL: &str = "__global__ void scale(float* y, const float* x)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}
";

/// A folder with a cache that contains the compiler but no disassembler.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scale.toml"), MANIFEST).unwrap();
    fs::write(folder.path().join("scale.cu"), KERNEL).unwrap();
    let toolkits = runner_files::cache_folder::cache_folder().unwrap().join("toolkit");
    let own = folder.path().join("cache/toolkit");
    fs::create_dir_all(&own).unwrap();
    for entry in fs::read_dir(toolkits).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if name.to_str().unwrap().starts_with("cuda-") {
            symlink(entry.path(), own.join(name)).unwrap();
        }
    }
    folder
}

/// Exit code, and standard output and error combined. `has_none` hides the cache's disassembler.
fn runner(folder: &TempDir, has_none: bool, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(folder.path()).args(arguments).env("PATH", "/usr/bin:/bin").env_remove("CUDA_HOME");
    if has_none {
        command.env("RUNNER_CACHE", folder.path().join("cache"));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

#[test]
fn without_a_disassembler_a_run_has_counts_of_the_ptx_and_a_changed_case_is_undecided() {
    if ["/usr/local/cuda/bin/nvdisasm", "/usr/bin/nvdisasm"].iter().any(|path| Path::new(path).exists()) {
        println!("skipped: this machine has nvdisasm");
        return;
    }
    let folder = folder();
    let run = |out: &str, has_none| {
        let options = ["run", "scale.toml", "--backend", "sim", "--offline", "--out", out];
        let (code, text) = runner(&folder, has_none, &options);
        assert_eq!(code, Some(0), "{text}");
        (text, fs::read_to_string(folder.path().join(out).join("results.csv")).unwrap())
    };
    let (_, known) = run("known", false);
    assert!(known.contains(",counter.inst_executed,"), "{known}");
    let (said, unknown) = run("unknown", true);
    let why = "scale: no counts of machine code: nvdisasm was not found on the search path";
    assert!(said.contains(why) && said.contains("run once without --offline"), "{said}");
    assert!(
        unknown.contains(",counter.ptx_inst_executed,") && !unknown.contains(",counter.inst_executed,"),
        "{unknown}"
    );
    let compare = |more: &[&str]| runner(&folder, true, &[&["compare", "known", "unknown"], more].concat());
    // The same source compiles to the same machine code.
    assert_eq!(compare(&["--strict"]).0, Some(0));
    fs::write(folder.path().join("scale.cu"), KERNEL.replace("2 * x[i]", "__fadd_rn(x[i], x[i])")).unwrap();
    run("unknown", true);
    let (code, text) = compare(&[]);
    assert!(code == Some(0) && text.contains("1 undecided") && text.contains("nvdisasm was not found"), "{text}");
    // `--strict` fails on loosened checks and on removals. Here, nothing that was proved before is lost.
    assert_eq!(compare(&["--strict"]).0, Some(0));
}
