//! `runner compare REPORT OLD NEW` and the end of `runner try`: what differs most between two variants.

use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_runner");
    let output = Command::new(program).current_dir(folder).args(["--color", "never"]).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The ranked reasons between two variants of a committed report.
#[track_caller]
fn reasons(report: &str, old: &str, new: &str) -> Vec<String> {
    let report = Path::new("reports").join(report);
    let (code, out, error) =
        run(Path::new(env!("CARGO_MANIFEST_DIR")), &["compare", report.to_str().unwrap(), old, new]);
    assert_eq!(code, Some(0), "{out}{error}");
    out.lines().filter(|line| line.starts_with(char::is_numeric)).map(str::to_owned).collect()
}

#[track_caller]
fn first(report: &str, old: &str, new: &str, expected: &str) {
    let found = reasons(report, old, new);
    assert!(found.first().is_some_and(|line| line.starts_with(&format!("1. {expected}"))), "{old}, {new}: {found:#?}");
    assert!(found.len() <= 3, "{found:#?}");
}

#[test]
fn each_step_of_a_ladder_is_explained_by_what_it_was_written_for() {
    let reduce = "reduce/simulated-h100";
    // The remainder by a variable is a conversion, a reciprocal and a conversion back, in the slowest pipeline.
    first(reduce, "neighbored", "neighbored_less", "conversions and special functions (pipe_xu): 1,563,648 → 0");
    // Consecutive threads at a distance of 2, 4, 8 … words load a sector each; the interleaved ones share it.
    first(reduce, "neighbored_less", "interleaved", "global load sectors (gld_sectors)");
    // Each block folds twice the elements before the same tree.
    first(reduce, "interleaved", "unrolling2", "machine instructions (inst_executed)");
    let matmul = "matmul/simulated-h100";
    // A row of A and a column of B are loaded once per tile, not once per element.
    first(matmul, "naive", "conflicting32", "global load sectors (gld_sectors)");
    // 64 × 64 × 64 in tiles of 32: 2 blocks, 2 tiles and 32 warps that store in 31 additional passes; with the second
    // size, 19,840 as the hardware counts.
    first(
        matmul,
        "conflicting32",
        "padded32",
        "bank conflicts (shared_ld_bank_conflicts + shared_st_bank_conflicts): ",
    );
    first(
        matmul,
        "conflicting32",
        "in_rows32",
        "bank conflicts (shared_ld_bank_conflicts + shared_st_bank_conflicts): ",
    );
    // The loop has a comparison and additions that one element per thread does not need.
    first("copy/simulated-h100", "guarded", "grid_stride", "machine instructions (inst_executed)");
    // Blocks of one warp: 32 blocks per SM are half of its 64 warps. The counts are the same.
    first("sum_matrix/simulated-h100", "sum[bx=32, by=1]", "sum[bx=32, by=16]", "occupancy: 50.0 % → 100 % (2.00×)");
    // Half of each warp idles.
    first(
        "sum_matrix/simulated-h100",
        "sum[bx=16, by=1]",
        "sum[bx=256, by=1]",
        "machine instructions (inst_executed): 524,288 → 262,144 (0.500×)",
    );
}

#[test]
fn what_counteracts_the_result_comes_after_what_explains_it() {
    let found = reasons("copy/simulated-h100", "plain_twice", "guarded");
    assert_eq!(
        found,
        [
            "1. kernel launches: 2 → 1 (0.500×)",
            "2. occupancy: 93.8 % → 100 % (1.07×)",
            "3. in return, machine instructions (inst_executed): 81,288 → 93,800 (1.15×)",
        ]
    );
    // The other way round, the same differences explain the opposite.
    let back = reasons("copy/simulated-h100", "guarded", "plain_twice");
    assert_eq!(back.first().map(String::as_str), Some("1. kernel launches: 1 → 2 (2.00×)"));
}

#[test]
fn times_of_a_gpu_decide_what_counts_as_a_reason_and_a_report_without_counts_says_what_to_do() {
    let (code, out, error) = run(
        Path::new(env!("CARGO_MANIFEST_DIR")),
        &["compare", "reports/sum_matrix/nvidia-h100-80gb-hbm3", "sum[bx=32, by=1]", "sum[bx=32, by=16]"],
    );
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(out.contains("\n1. occupancy: 50.0 % → 100 % (2.00×)\n"), "{out}");
    assert!(out.contains("`sum[bx=32, by=16]` is right and takes 0.2"), "{out}");
}

#[test]
fn a_wrong_name_of_a_variant_is_a_mistake_of_the_caller() {
    let expect = |arguments: &[&str], words: &str| {
        let (code, out, error) = run(Path::new(env!("CARGO_MANIFEST_DIR")), &[&["compare"], arguments].concat());
        assert_eq!(code, Some(2), "{out}{error}");
        assert!(error.contains(words), "{error}");
    };
    let reduce = "reports/reduce/simulated-h100";
    expect(&[reduce, "neighbord", "vector"], "has no variant `neighbord`; did you mean `neighbored`?");
    expect(&["reports/reduce", "neighbored", "vector"], "to compare two variants, name one of ");
    expect(&[reduce, "neighbored", "vector", "--format", "json"], "cannot be used with");
}

const TRANSPOSE: &str = r"__global__ void naive(const float *in, float *out, int rows, int cols) {
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < cols)
        out[c * rows + r] = in[r * cols + c];
}
__global__ void tiled(const float *in, float *out, int rows, int cols) {
    __shared__ float t[16][16];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < cols) t[threadIdx.y][threadIdx.x] = in[r * cols + c];
    __syncthreads();
    int d = blockIdx.y * 16 + threadIdx.x, e = blockIdx.x * 16 + threadIdx.y;
    if (d < rows && e < cols)
        out[e * rows + d] =
            t[threadIdx.x][threadIdx.y];
}
";

/// A warp is two rows of 16 threads. Stores of `naive` are `rows` apart: at most 2 threads share a sector. Reads of a
/// column of `t` are 16 words apart, so that 16 lanes share 2 banks.
#[test]
fn a_trial_names_the_lines_and_what_to_do_about_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.cu"), TRANSPOSE).unwrap();
    let (code, out, error) = run(folder.path(), &["try", "t.cu", "--backend", "sim", "--block", "16,16"]);
    assert_eq!(code, Some(0), "{out}{error}");
    let at = |text: &str| out.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {out}"));
    let stores = at("global store sectors (gst_sectors)");
    assert!(stores.starts_with("1. ") && stores.ends_with(", at t.cu:4 → t.cu:13"), "{stores}");
    let conflicts = at("2. in return, bank conflicts");
    assert!(conflicts.contains(": 0 → ") && conflicts.contains(", at t.cu:14. Pad rows by one element"), "{conflicts}");
    let last = out.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("`tiled` is right and does ") && last.ends_with(" the global store sectors (t.cu:13)."),
        "{last}"
    );
}

/// In each group of the report, a step's instructions are divided by those of the step before. The mean of the
/// quotients is the quotient of the means in the table, which are relative to the baseline.
#[test]
fn in_a_table_of_counts_each_step_has_its_ratio_to_the_row_before() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/reduce/simulated-h100/records.jsonl");
    let records = runner_results::journal::read_records(&records).unwrap();
    let screen = runner_report::Screen { styled: false, width: None };
    let text = runner_report::terminal(&records, screen);
    let head = text.lines().find(|line| line.contains("× row before")).unwrap_or_else(|| panic!("{text}"));
    let titles: Vec<&str> = head.split_whitespace().take(5).collect();
    assert_eq!(titles, ["variant", "inst_executed", "×", "row", "before"]);
    let cell = |variant: &str, place: usize| -> f64 {
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(variant)).unwrap();
        row.split_whitespace().nth(place).unwrap().trim_end_matches('×').parse().unwrap()
    };
    assert!((cell("unrolling2", 2) - cell("unrolling2", 1) / cell("interleaved", 1)).abs() < 0.002);
    assert!((cell("vector", 2) - cell("vector", 1) / cell("complete_unroll", 1)).abs() < 0.006);
    let first = text.lines().find(|line| line.split_whitespace().next() == Some("neighbored")).unwrap();
    assert_eq!(first.split_whitespace().nth(1), Some("1.00×"));
}
