//! Checks that accept wrong results: what `runner run` says about them, and its exit code, on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Softmax of rows with 65,536 columns, whose largest value is far below 1e-2, and a kernel that stores zeros.
const MANIFEST: &str = r#"
[experiment]
name = "zeros"

[let]
n = "2 * 65536"

[buffers]
x = { type = "f32", len = "n", fill = { normal = [0.0, 1.0], seed = 1 } }
y = { type = "f32", len = "n" }

[check]
actual = "y"
expect = "softmax(x, 65536)"
tolerance = { abs = TOLERANCE }

[[variant]]
name = "zeros"
source = "zeros.cu"
kernel = "zeros"
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "y", "i32(n)"]
"#;

const SOURCE: &str = "extern \"C\" __global__ void zeros(const float *x, float *y, int n)\n\
                      { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 0; }\n";

/// Exit code and all output of a run.
fn run(folder: &Path, tolerance: &str, options: &[&str]) -> (Option<i32>, String) {
    fs::write(folder.join("zeros.cu"), SOURCE).unwrap();
    fs::write(folder.join("zeros.toml"), MANIFEST.replace("TOLERANCE", tolerance)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(folder).args(["--color", "never", "run", "zeros.toml", "--backend", "sim", "--out", "report"]);
    let output = command.args(options).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_check_that_zeros_pass_is_called_weak_in_the_row_and_at_the_top_and_fails_with_strict() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), "1e-2", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Weak check in 1 case: y against softmax(x, 65536) would also accept zeros"), "{said}");
    // Table cells use no-break spaces.
    let report = fs::read_to_string(folder.path().join("report/report.md")).unwrap().replace('\u{a0}', " ");
    let place = |text: &str| report.find(text).unwrap_or_else(|| panic!("`{text}` is not in:\n{report}"));
    assert!(place("Weak check in 1 case") < place("✓ pass, weak check"), "{report}");
    assert!(report.contains("and abs = 0.01 is allowed"), "{report}");
    // The largest of 131,072 normal deviates is between 4 and 6. Softmax divides its exponential by 65,536 times the
    // mean exponential, sqrt(e).
    let value = report.split("the largest expected value is ").nth(1).and_then(|rest| rest.split(',').next());
    let value: f64 = value.unwrap().parse().unwrap();
    assert!((5e-4..4e-3).contains(&value), "{value}");
    let (code, said) = run(folder.path(), "1e-2", &["--strict"]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_tolerance_below_the_expected_values_finds_the_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), "1e-9", &["--strict"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("✗ wrong") && !said.contains("Weak check"), "{said}");
}
