//! Pull requests as a team sees them. The first lines of each page say what changed, by how much, why, and whether the
//! results are still right.
//!
//! Most are changes of an experiment, which `run --against` compares on the simulator. Updates of a toolkit or driver
//! change no file; `compare` reads their records. Facts that follow from the change are also checked one by one and in
//! order, because a golden file could be overwritten with a wrong page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_results::journal;
use runner_types::{BackendKind, Estimate, Records};
use tempfile::TempDir;

use super::ci::job_on_github;
use fixture::snapshot;

const MANIFEST: &str = include_str!("pull_requests/sum.toml");
const KERNEL: &str = include_str!("pull_requests/sum.cu");
const HEADER: &str = "__device__ float load(const float* at) { return *at; }\n";

const MANIFEST_PATH: &str = "experiments/sum.toml";
const KERNEL_PATH: &str = "kernels/sum.cu";

/// A git repository whose commits always have the same hashes.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let date = "2026-03-04T05:06:07+0000";
        let mut command = Command::new("git");
        command.current_dir(self.0.path()).args(identity).args(arguments);
        let output = command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", subject]);
    }

    /// Runs the program. Returns its exit code.
    fn runner(&self, arguments: &[&str]) -> Option<i32> {
        let output =
            Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(self.0.path()).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(self.0.path().join("page.md").is_file(), "{said}");
        output.status.code()
    }

    fn edit(&self, edits: &[Edit]) {
        for (path, edit) in edits {
            let before = fs::read_to_string(self.0.path().join(path)).unwrap_or_default();
            let after = edit(&before);
            assert_ne!(before, after, "{path}");
            self.write(path, &after);
        }
    }

    /// Compares the page with the golden file.
    fn assert_page(&self, name: &str) {
        let page = fs::read_to_string(self.0.path().join("page.md")).unwrap();
        snapshot::assert_is(&page, &golden(name));
    }
}

/// Asserts that the golden file contains all of these, in this order.
#[track_caller]
fn assert_says(name: &str, facts: &[&str]) {
    let page = fs::read_to_string(golden(name)).unwrap();
    let mut rest = page.as_str();
    for fact in facts {
        rest = rest.split_once(fact).unwrap_or_else(|| panic!("`{fact}` is not in, or not in its place:\n{page}")).1;
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/pull_requests").join(format!("{name}.md"))
}

/// File of the experiment, and the edit of its text.
type Edit = (&'static str, fn(&str) -> String);

/// Compares a change with its base, as the generated job does.
#[track_caller]
fn assert_change(name: &str, code: i32, edits: &[Edit]) {
    assert_change_of(name, code, &[], edits);
}

/// Writes the experiment with `edits_of_base` as the base, and compares a change with it.
#[track_caller]
fn assert_change_of(name: &str, code: i32, edits_of_base: &[Edit], edits: &[Edit]) {
    let repository = Repository::new();
    repository.write(MANIFEST_PATH, MANIFEST);
    repository.write(KERNEL_PATH, KERNEL);
    repository.write("kernels/load.cuh", HEADER);
    repository.edit(edits_of_base);
    repository.commit("Sum blocks");
    repository.git(&["checkout", "-qb", "change"]);
    repository.edit(edits);
    repository.commit(name);
    let run = [
        "run",
        MANIFEST_PATH,
        "--backend",
        "sim",
        "--against",
        "main",
        "--gate",
        "--thorough",
        "--lines",
        "--markdown",
        "page.md",
    ];
    let found = repository.runner(&run);
    repository.assert_page(name);
    assert_eq!(found, Some(code), "{name}");
}

/// Removes every section of the manifest that contains `first`; empty lines separate sections.
fn without(text: &str, first: &str) -> String {
    let mut parts: Vec<&str> = text.split("\n\n").collect();
    parts.retain(|part| !part.contains(first));
    parts.join("\n\n")
}

#[test]
fn a_comment() {
    assert_change("comment", 0, &[(KERNEL_PATH, |text| text.replace("// The sum", "// Computes the sum"))]);
}

#[test]
fn a_refactoring_that_changes_nothing() {
    let renamed = |text: &str| text.replace("own", "mine").replace("half", "reach").replace("load(", "load(0 + ");
    assert_change("refactoring", 0, &[(KERNEL_PATH, renamed)]);
}

#[test]
fn an_extra_barrier() {
    let twice = |text: &str| {
        text.replace("half];\n        __syncthreads();", "half];\n        __syncthreads();\n        __syncthreads();")
    };
    assert_change("extra_barrier", 4, &[(KERNEL_PATH, twice)]);
}

#[test]
fn a_wrong_index() {
    let shifted = |text: &str| text.replace("* EACH + k)", "* EACH + k / 2)");
    assert_change("wrong_index", 1, &[(KERNEL_PATH, shifted)]);
    let line = "own += load(input + (blockIdx.x * EACH + k";
    let [before, after] = [") * ", " / 2) * "].map(|rest| format!("{line}{rest}"));
    let facts = [
        "## ✗ Fails: 2 cases newly wrong (",
        "`two`, `four`: ",
        "source changed: sum.cu:9.",
        "\n- 9  ",
        &before,
        "\n+ 9  ",
        &after,
    ];
    assert_says("wrong_index", &facts);
}

#[test]
fn a_missing_barrier() {
    let racing = |text: &str| text.replace("half];\n        __syncthreads();", "half];");
    assert_change("missing_barrier", 1, &[(KERNEL_PATH, racing)]);
    let facts = [
        "`tree`: the kernel stops: race on shared memory + 128 bytes: ",
        "former sum.cu:15 is gone.",
        "the same change makes `tree` wrong, but no fault was found in these.",
        "\n- 15  __syncthreads();",
    ];
    assert_says("missing_barrier", &facts);
}

/// The last five steps need no barrier and no memory.
fn shuffled(kernel: &str) -> String {
    kernel.replace("half > 0;", "half > 16;").replace(
        "    if (threadIdx.x == 0) sums[blockIdx.x] = held[0];",
        "    float last = held[threadIdx.x % 32];\n    for (int lane = 16; lane > 0; lane /= 2) last += \
         __shfl_down_sync(~0u, last, lane);\n    if (threadIdx.x == 0) sums[blockIdx.x] = last;",
    )
}

#[test]
fn an_improvement() {
    assert_change("improvement", 0, &[(KERNEL_PATH, shuffled)]);
}

#[test]
fn an_added_variant() {
    let eight = |text: &str| {
        format!(
            "{text}\n[[variant]]\nname   = \"eight\"\nsource = \"sum.cu\"\nkernel = \"sum<8>\"\ngrid   = [\"n / 128\"]\nblock  = \
             [16]\nargs   = [\"input\", \"sums\"]\n"
        )
    };
    assert_change("added", 0, &[(MANIFEST_PATH, eight)]);
}

#[test]
fn a_renamed_variant() {
    assert_change("renamed", 0, &[(MANIFEST_PATH, |text| text.replace("\"two\"", "\"pairs\""))]);
}

#[test]
fn a_removed_variant() {
    assert_change("removed", 0, &[(MANIFEST_PATH, |text| without(text, "name   = \"two\""))]);
}

#[test]
fn removed_claims() {
    assert_change("claims_removed", 0, &[(MANIFEST_PATH, |text| without(text, "[[claim]]"))]);
    assert_says(
        "claims_removed",
        &[
            "## ! Passes, needs a reviewer: 1 claim removed (",
            "\n- Claim removed: `counter(",
            "< 0.6 * counter(",
            // 3,488 of 13,184 instructions.
            "`. It still holds: `four` takes 0.265 of `tree`'s instructions (`inst_executed`), limit 0.6. No claim is left.",
        ],
    );
}

#[test]
fn another_size() {
    assert_change("size_changed", 0, &[(MANIFEST_PATH, |text| text.replace("[4096]", "[8192]"))]);
    // A result that was not compared with anything does not count as right.
    assert_says(
        "size_changed",
        &[
            "## ! Passes, needs a reviewer: nothing compared, 3 cases gone, 3 cases new (",
            "\n- Axis `n`: `4096` → `8192`.",
            "\n- Gone: `tree[n = 4096]`, `two[n = 4096]`, `four[n = 4096]`: 3 cases.",
            "\n- New: `tree[n = 8192]`, `two[n = 8192]`, `four[n = 8192]`: 3 cases",
        ],
    );
}

#[test]
fn a_loosened_tolerance() {
    assert_change("tolerance_loosened", 0, &[(MANIFEST_PATH, |text| text.replace("rel = 1e-5", "rel = 1e-2"))]);
    let facts = [
        "## ! Passes, needs a reviewer: 1 check loosened (",
        "\n- Tolerance of `sum(sums)` loosened: `rel 1e-5` → `rel 0.01`. The results still meet the former tolerance",
        "\n- 3 cases: 3 same. All 3 results are correct, as before.",
    ];
    assert_says("tolerance_loosened", &facts);
}

/// The results are wrong by 1 %, which only the new tolerance allows.
#[test]
fn a_tolerance_loosened_to_let_a_wrong_result_pass() {
    let loosened = |text: &str| text.replace("rel = 1e-5", "rel = 1e-1");
    let wrong = |text: &str| text.replace("return *at;", "return *at * 1.01f;");
    assert_change("loosened_for_wrong", 0, &[(MANIFEST_PATH, loosened), ("kernels/load.cuh", wrong)]);
    let fact =
        "`rel 1e-5` → `rel 0.1`. The results would fail the former tolerance: their largest relative error is 0.01.";
    assert_says("loosened_for_wrong", &["## ! Passes, needs a reviewer: 1 check loosened (", fact]);
}

#[test]
fn a_removed_check() {
    let removed = |text: &str| {
        let [check, claim] = ["[[check]]", "[[claim]]"].map(|table| text.find(table).unwrap());
        format!("{}{}", &text[..check], &text[claim..])
    };
    assert_change("check_removed", 0, &[(MANIFEST_PATH, removed)]);
    let facts = [
        "## ! Passes, needs a reviewer: 1 check removed (",
        "\n- Check `sum(sums)` removed: `sum(sums) = sum(input)`.",
    ];
    assert_says("check_removed", &facts);
}

/// The header returns 1 % too much, which only the new manifest lets pass.
fn off(text: &str) -> String {
    text.replace("return *at;", "return *at * 1.01f;")
}

#[test]
fn inputs_on_which_a_wrong_kernel_is_right() {
    let zero = |text: &str| text.replace("fill = { uniform = [0, 1], seed = 7 }", "fill = 0");
    assert_change("input_zeroed", 0, &[(MANIFEST_PATH, zero), ("kernels/load.cuh", off)]);
    let facts = [
        "## ! Passes, needs a reviewer: 1 input changed (",
        "\n- Buffer `input`: `f32[n], uniform from 0 to 1, seed 7, access in` → `f32[n], all 0, access in`. ",
        "All 3 results are correct, as before, but by other checks or on other inputs.",
    ];
    assert_says("input_zeroed", &facts);
}

#[test]
fn another_file_of_inputs() {
    let of_file = |text: &str| text.replace("{ uniform = [0, 1], seed = 7 }", "{ raw = \"input.bin\" }");
    let base: [Edit; 2] = [(MANIFEST_PATH, of_file), ("experiments/input.bin", |_| "?".repeat(4 * 4096))];
    let change: [Edit; 2] = [("experiments/input.bin", |_| "\0".repeat(4 * 4096)), ("kernels/load.cuh", off)];
    assert_change_of("input_file", 0, &base, &change);
    let facts = [
        "## ! Passes, needs a reviewer: 1 input changed (",
        // The first digits of the SHA-256 of 16384 question marks and of as many zero bytes.
        "\n- Contents of `input.bin`: `f32[4096], a file with SHA-256 85e1901a7aac` → ",
        "4fe7b59af6de",
    ];
    assert_says("input_file", &facts);
}

/// All variants return too much, and `tree` supplies the expected value.
#[test]
fn an_expected_value_that_comes_from_the_kernel_itself() {
    let of_tree = |text: &str| text.replace("expect    = \"sum(input)\"", "expect    = { variant = \"tree\" }");
    assert_change("checked_by_itself", 0, &[(MANIFEST_PATH, of_tree), ("kernels/load.cuh", off)]);
    let facts = [
        "## ! Passes, needs a reviewer: 1 check changed (",
        "\n- Check `sum(sums)`: `sum(sums) = sum(input)` → `sum(sums) = the result of tree`. `tree` is checked against itself only.",
    ];
    assert_says("checked_by_itself", &facts);
}

/// The check compares only the elements that a binding selects, and the kernel is wrong in the rest.
#[test]
fn a_binding_that_narrows_a_check() {
    let bound = |text: &str| {
        let [actual, expect] = ["\"sum(sums)\"", "\"sum(input)\""];
        text.replace(actual, "\"sums[0..m]\"")
            .replace(expect, "\"constant[0..m]\"")
            .replace("{ uniform = [0, 1], seed = 7 }", "1")
            .replace("[axes]", "[let]\nm = \"n / 128\"\n\n[axes]")
            .replace(
                "[buffers.sums]",
                "[buffers.constant]\ntype = \"f32\"\nlen  = \"n / 128\"\nfill = 128\n\n[buffers.sums]",
            )
    };
    let narrowed = |text: &str| text.replace("m = \"n / 128\"", "m = 1");
    // Of 32 blocks, none has an index of 64, and half have one of 16.
    let right = |text: &str| text.replace("= held[0];", "= held[0] + float(blockIdx.x / 64);");
    let wrong = |text: &str| text.replace("/ 64", "/ 16");
    let base: [Edit; 2] = [(MANIFEST_PATH, bound), (KERNEL_PATH, right)];
    assert_change_of("binding_changed", 0, &base, &[(MANIFEST_PATH, narrowed), (KERNEL_PATH, wrong)]);
    let facts = ["## ! Passes, needs a reviewer: 1 binding changed (", "\n- Binding `m`: `n / 128` → `1`."];
    assert_says("binding_changed", &facts);
}

/// The buffer of expected values and the kernel change together: nothing shows what the base was on its own values.
#[test]
fn other_expected_values() {
    let base = |text: &str| {
        text.replace("\"sum(sums)\"", "\"sums\"")
            .replace("\"sum(input)\"", "\"wanted\"")
            .replace("{ uniform = [0, 1], seed = 7 }", "1")
            .replace(
                "[buffers.sums]",
                "[buffers.wanted]\ntype = \"f32\"\nlen  = \"n / 128\"\nfill = 128\n\n[buffers.sums]",
            )
    };
    let other = |text: &str| text.replace("fill = 128\n", "fill = 129\n");
    let more = |text: &str| text.replace("= held[0];", "= held[0] + 1;");
    assert_change_of("other_values", 0, &[(MANIFEST_PATH, base)], &[(MANIFEST_PATH, other), (KERNEL_PATH, more)]);
    let facts = [
        "## ! Passes, needs a reviewer: 1 input changed, 3 cases expect other values now (",
        "\n- Buffer `wanted`: ",
        "All 3 results are correct (before: not known, since the inputs changed).",
    ];
    assert_says("other_values", &facts);
    assert!(!fs::read_to_string(golden("other_values")).unwrap().contains("ixed"));
}

/// Two barriers fewer, and 50 shuffles of each value.
#[test]
fn more_of_some_work_and_less_of_other_work() {
    let mixed = |text: &str| {
        shuffled(text).replace(
            "    held[threadIdx.x] = own;",
            "    for (int k = 0; k < 50; ++k) own += __shfl_xor_sync(~0u, own, k & 31) * 0.0f;\n    held[threadIdx.x] = own;",
        )
    };
    assert_change("mixed_work", 0, &[(KERNEL_PATH, mixed)]);
    assert_says(
        "mixed_work",
        &[
            "## ! Passes, needs a reviewer: 3 cases with more instructions (+",
            " and fewer ",
            "\n### ↕ Mixed: 3 cases\n",
        ],
    );
}

/// Of the 227 KiB of shared memory of a multiprocessor, a block takes 200,000 bytes, so that one block of 4 warps remains
/// of the 64 warps.
#[test]
fn less_than_half_the_occupancy() {
    let shared = |text: &str| text.replace("block  = [128]", "block  = [128]\nshared = 200000");
    assert_change("occupancy", 0, &[(MANIFEST_PATH, shared)]);
    let facts = [
        "## ! Passes, needs a reviewer: occupancy falls by half or more in 1 case (100 % → 6 %) (",
        "\n- Setting `shared` added (`tree`): `200000`.",
    ];
    assert_says("occupancy", &facts);
}

/// The base variant, claims and expected values name the variant, and its kernel is slower.
#[test]
fn a_renamed_variant_whose_kernel_does_more_work() {
    let renamed = |text: &str| text.replace("\"tree\"", "\"simple\"");
    let twice = |text: &str| {
        text.replace("half];\n        __syncthreads();", "half];\n        __syncthreads();\n        __syncthreads();")
    };
    assert_change("renamed_slower", 4, &[(MANIFEST_PATH, renamed), (KERNEL_PATH, twice)]);
    let facts = [
        "## ✗ Fails: 3 cases do more work (",
        "\n- Variant `tree` renamed to `simple`.",
        "\n- More work: `simple`, `two`, `four`: ",
        "All 3 results are correct, as before. Claims: 1 held.",
    ];
    assert_says("renamed_slower", &facts);
    let page = fs::read_to_string(golden("renamed_slower")).unwrap();
    assert!(["Gone", "removed", "Baseline"].iter().all(|word| !page.contains(word)), "{page}");
}

#[test]
fn a_renamed_source_that_changed() {
    let repository = Repository::new();
    repository.write(MANIFEST_PATH, MANIFEST);
    repository.write(KERNEL_PATH, KERNEL);
    repository.write("kernels/load.cuh", HEADER);
    repository.commit("Sum blocks");
    repository.git(&["checkout", "-qb", "change"]);
    repository.git(&["mv", KERNEL_PATH, "kernels/total.cu"]);
    repository.edit(&[
        (MANIFEST_PATH, |text| text.replace("sum.cu", "total.cu")),
        ("kernels/total.cu", |text| text.replace("* EACH + k)", "* EACH + k / 2)")),
    ]);
    repository.commit("source_renamed");
    let options = ["--backend", "sim", "--against", "main", "--gate", "--lines", "--markdown", "page.md"];
    assert_eq!(repository.runner(&[&["run", MANIFEST_PATH], &options[..]].concat()), Some(1));
    repository.assert_page("source_renamed");
    let facts = ["**Source:** `kernels/sum.cu` → `kernels/total.cu`, 1 line changed", "\n- 9  ", "\n+ 9  "];
    assert_says("source_renamed", &facts);
}

/// The base is wrong as well, so that nothing fails newly.
#[test]
fn a_change_after_which_no_result_is_right() {
    assert_change_of(
        "all_wrong",
        0,
        &[("kernels/load.cuh", off)],
        &[(KERNEL_PATH, |text| text.replace("The sum", "A sum"))],
    );
    assert_says("all_wrong", &["## ! Passes, needs a reviewer: no result is right, 3 cases still wrong ("]);
}

#[test]
fn another_kind_of_expected_failure() {
    let expected = |text: &str| text.replace("block  = [64]", "block  = [64]\nfails  = [\"wrong\", \"compile_error\"]");
    let own = |text: &str| {
        text.replace("sum<2>", "sum_two")
            .replace("source = \"sum.cu\"\nkernel = \"sum_two\"", "source = \"two.cu\"\nkernel = \"sum_two\"")
    };
    let wrong: fn(&str) -> String =
        |_| "__global__ void sum_two(const float* input, float* sums) { sums[0] = input[0]; }\n".to_owned();
    let base: [Edit; 3] = [(MANIFEST_PATH, expected), (MANIFEST_PATH, own), ("kernels/two.cu", wrong)];
    assert_change_of("failure_kind", 0, &base, &[("kernels/two.cu", |text| text.replace("input[0]", "nothing"))]);
    assert_says("failure_kind", &["expected failure wrong → compile error"]);
}

#[test]
fn an_acceptance_that_does_not_cover_the_slowdown() {
    let accepted = |text: &str| {
        text.replace("[[claim]]", "[[accept]]\nby     = \"1%\"\nreason = \"bounds\"\ncommit = \"1a2b3c4\"\n\n[[claim]]")
    };
    let twice = |text: &str| {
        text.replace("half];\n        __syncthreads();", "half];\n        __syncthreads();\n        __syncthreads();")
    };
    assert_change("not_accepted", 4, &[(MANIFEST_PATH, accepted), (KERNEL_PATH, twice)]);
    assert_says("not_accepted", &["not accepted: barriers +", " exceeds the accepted +1.00 %"]);
}

#[test]
fn another_file_of_expected_values() {
    let of_file = |text: &str| {
        text.replace("\"sum(sums)\"", "\"sums\"")
            .replace("\"sum(input)\"", "{ raw = \"wanted.bin\" }")
            .replace("{ uniform = [0, 1], seed = 7 }", "0")
    };
    let base: [Edit; 2] = [(MANIFEST_PATH, of_file), ("experiments/wanted.bin", |_| "\0".repeat(4 * 32))];
    let change: [Edit; 2] = [
        ("experiments/wanted.bin", |_| "?".repeat(4 * 32)),
        (KERNEL_PATH, |text| text.replace("= held[0];", "= held[0] + 0.747058809f;")),
    ];
    assert_change_of("expected_file", 6, &base, &change);
    assert_says("expected_file", &["\n- Check `wanted.bin`: `SHA-256 38723a2e5e8a` → `SHA-256 65c84bfd7153`."]);
}

#[test]
fn a_changed_header() {
    let again = |_: &str| {
        "__device__ float load(const float* at) {\n    volatile const float* again = at;\n    float first = *again;\n    \
         return first == *again ? first : 0.0f;\n}\n"
            .to_owned()
    };
    assert_change("header_changed", 4, &[("kernels/load.cuh", again)]);
}

#[test]
fn another_input() {
    assert_change("new_input", 0, &[(MANIFEST_PATH, |text| text.replace("seed = 7", "seed = 8"))]);
    let facts = [
        "## ✓ Passes: no regression (",
        "seed 8, access in`. The kernels before and after were compared on the new contents.",
        "\n- 3 cases: 3 same. All 3 results are correct, as before.",
    ];
    assert_says("new_input", &facts);
}

/// Compares the records of an H100 with those after an update of the machine.
#[track_caller]
fn assert_update(name: &str, code: i32, options: &[&str], update: impl Fn(&mut Records)) {
    let base = fixture::calibrated(&fixture::regimes());
    let mut new = base.clone();
    update(&mut new);
    let repository = Repository::new();
    for (records, subject) in [(&base, "Measure"), (&new, name)] {
        repository.write("reports/regimes/h100/records.jsonl", &journal::records_text(records).unwrap());
        repository.commit(subject);
    }
    let page = ["compare", "HEAD^:reports", "HEAD:reports", "--markdown", "page.md"];
    let found = repository.runner(&[&page, options].concat());
    repository.assert_page(name);
    assert_eq!(found, Some(code), "{name}");
}

fn scale(time: &mut Estimate, factor: f64) {
    for end in [&mut time.point, &mut time.low, &mut time.high] {
        *end *= factor;
    }
}

#[test]
fn an_update_of_the_toolkit() {
    assert_update("toolkit_changed", 4, &[], |records| {
        records.environment.toolkit.build = Some("13.1.48".to_owned());
        for record in records.cases.iter_mut().filter(|record| record.case.key.variant == "variant2") {
            scale(&mut record.result.as_mut().unwrap().time, 1.08);
            record.launches[0].resources.registers = Some(48);
        }
    });
}

#[test]
fn an_update_of_the_driver() {
    assert_update("driver_changed", 0, &["--inform", "driver"], |records| {
        records.environment.driver = Some("590.10".to_owned());
        for record in records.cases.iter_mut().filter(|record| record.case.key.variant == "variant2") {
            scale(&mut record.result.as_mut().unwrap().time, 1.08);
        }
    });
}

#[test]
fn another_baseline() {
    let other = |text: &str| text.replace("baseline = \"tree\"", "baseline = \"two\"");
    assert_change("baseline_changed", 0, &[(MANIFEST_PATH, other)]);
    assert_says(
        "baseline_changed",
        &["## ✓ Passes: no regression, 1 baseline variant changed (", "\n- Baseline variant: `tree` → `two`. "],
    );
}

#[test]
fn an_added_option() {
    let fast = |text: &str| text.replace("block  = [64]", "block  = [64]\noptions = [\"--use_fast_math\"]");
    assert_change("option_added", 0, &[(MANIFEST_PATH, fast)]);
    assert_says(
        "option_added",
        &[
            "## ✓ Passes: no regression (",
            "\n- Compiler option `--use_fast_math` added (`two`). The compiled code changed",
        ],
    );
}

/// `four` executes 3,488 warp instructions and `tree` 13,184, a ratio of 0.26.
#[test]
fn a_tightened_claim() {
    assert_change("claim_tightened", 5, &[(MANIFEST_PATH, |text| text.replace("< 0.6 *", "< 0.2 *"))]);
    let facts = [
        "## ✗ Fails: 1 tightened claim broken (",
        "\n- Claim tightened, limit 0.6 → 0.2: `counter(\"inst_executed\", \"four\") < 0.2 ",
        "`four` takes 0.265 of `tree`'s instructions (`inst_executed`): the new claim is broken, the former still holds.",
    ];
    assert_says("claim_tightened", &facts);
    let page = fs::read_to_string(golden("claim_tightened")).unwrap();
    assert!(!page.contains("still broken") && !page.contains("removed"), "{page}");
}

#[test]
fn a_loosened_claim() {
    assert_change("claim_loosened", 0, &[(MANIFEST_PATH, |text| text.replace("< 0.6 *", "< 0.9 *"))]);
    assert_says(
        "claim_loosened",
        &[
            "## ! Passes, needs a reviewer: 1 claim loosened (",
            "\n- Claim loosened, limit 0.6 → 0.9: `counter(",
            "`four` takes 0.265 of `tree`'s instructions (`inst_executed`): the new claim holds, the former still holds.",
        ],
    );
}

#[test]
fn a_comment_in_a_header() {
    assert_change("header_comment", 0, &[("kernels/load.cuh", |text| format!("// Loads.\n{text}"))]);
    assert_says(
        "header_comment",
        &[
            "## ✓ Passes: no regression (",
            "Source changed (new load.cuh:1), but the compiled code of all 3 cases is identical.",
            "+ 1  // Loads.",
        ],
    );
}

/// Writes experiments with these names. Those named `other…` share a kernel; each of the rest has its own.
fn experiments(repository: &Repository, names: &[String]) {
    repository.write("kernels/load.cuh", HEADER);
    for name in names {
        // The shared kernel is compiled only once.
        let kernel = if name.starts_with("other") { "sum" } else { name };
        let manifest = MANIFEST.replace("\"sum\"", &format!("\"{name}\"")).replace("sum.cu", &format!("{kernel}.cu"));
        repository.write(&format!("experiments/{name}.toml"), &manifest);
        repository.write(&format!("kernels/{kernel}.cu"), KERNEL);
    }
    repository.commit("Sum blocks");
    repository.git(&["checkout", "-qb", "change"]);
}

/// Compares all experiments with the base, as the generated job does.
fn run_all(repository: &Repository, names: &[String]) -> Option<i32> {
    let manifests: Vec<String> = names.iter().map(|name| format!("experiments/{name}.toml")).collect();
    let manifests: Vec<&str> = manifests.iter().map(String::as_str).collect();
    let options = ["--backend", "sim", "--against", "main", "--gate", "--lines", "--markdown", "page.md"];
    repository.runner(&[&["run"], &manifests[..], &options].concat())
}

/// `reduce` has an extra barrier in each step, `unrolling` reads the wrong elements, and 24 experiments are unchanged.
#[test]
fn two_red_experiments_of_26() {
    let others = (1..=24).map(|number| format!("other{number:02}"));
    let names: Vec<String> = others.chain(["reduce".to_owned(), "unrolling".to_owned()]).collect();
    let repository = Repository::new();
    experiments(&repository, &names);
    let twice = KERNEL
        .replace("half];\n        __syncthreads();", "half];\n        __syncthreads();\n        __syncthreads();");
    repository.write("kernels/reduce.cu", &twice);
    repository.write("kernels/unrolling.cu", &KERNEL.replace("* EACH + k)", "* EACH + k / 2)"));
    repository.commit("two_of_26");
    assert_eq!(run_all(&repository, &names), Some(1));
    repository.assert_page("two_of_26");
    assert_says(
        "two_of_26",
        &[
            // `tree` has one element per thread, so `k / 2` does not change it.
            "## ✗ Fails: 2 of 26 experiments changed: `unrolling` 2 cases newly wrong, `reduce` 3 cases do more work (Simulated",
            "\n- Newly wrong in `unrolling`: `two`, `four`: ",
            "source changed: unrolling.cu:9.",
            "\n### ✗ Newly wrong: 2 cases\n",
            "\n### ▲ More work: 3 cases\n",
            "Unaffected: 24",
            "- other01, ",
            ", other24, Simulated H100: 3 same each\n",
        ],
    );
}

/// To meet the size limit, a comment drops rows, changes that fail nothing, and caveats, but never the verdict or
/// failures.
#[test]
fn what_is_red_is_kept_where_the_page_is_cut() {
    let names = ["calm".to_owned(), "reduce".to_owned()];
    let repository = Repository::new();
    experiments(&repository, &names);
    repository.write("kernels/reduce.cu", &KERNEL.replace("* EACH + k)", "* EACH + k / 2)"));
    repository.commit("cut");
    let manifests = ["experiments/calm.toml", "experiments/reduce.toml"];
    let options = ["--backend", "sim", "--against", "main", "--markdown", "page.md", "--markdown-limit"];
    for limit in [2500, 1500, 900, 300] {
        let limit_text = limit.to_string();
        repository.runner(&[&["run"], &manifests[..], &options, &[limit_text.as_str()]].concat());
        let page = fs::read_to_string(repository.0.path().join("page.md")).unwrap();
        assert!(page.len() <= limit, "{} of {limit}: {page}", page.len());
        assert!(page.starts_with("## ✗ Fails: 1 of 2 experiments changed: `reduce` 2 cases newly wrong ("), "{page}");
        assert_eq!(page.contains("### ✗ Newly wrong: 2 cases"), limit > 300, "{page}");
    }
}

#[test]
fn a_deleted_experiment() {
    let names = ["kept".to_owned(), "dropped".to_owned()];
    let repository = Repository::new();
    experiments(&repository, &names);
    fs::remove_file(repository.0.path().join("experiments/dropped.toml")).unwrap();
    repository.commit("experiment_deleted");
    assert_eq!(run_all(&repository, &names[..1]), Some(0));
    repository.assert_page("experiment_deleted");
    let facts = [
        "## ! Passes, needs a reviewer: 1 experiment deleted (",
        "\n- Experiment `experiments/dropped.toml` deleted (3 cases, 1 claim).\n",
    ];
    assert_says("experiment_deleted", &facts);
}

#[test]
fn a_deleted_report() {
    let records = fixture::calibrated(&fixture::regimes());
    let text = journal::records_text(&records).unwrap();
    let repository = Repository::new();
    for name in ["h100", "second"] {
        repository.write(&format!("reports/regimes/{name}/records.jsonl"), &text);
    }
    repository.commit("Measure");
    fs::remove_file(repository.0.path().join("reports/regimes/second/records.jsonl")).unwrap();
    repository.commit("report_deleted");
    let page = ["compare", "HEAD^:reports", "HEAD:reports", "--markdown", "page.md"];
    assert_eq!(repository.runner(&page), Some(0));
    repository.assert_page("report_deleted");
    let facts = [
        "## ! Passes, needs a reviewer: 1 report deleted (",
        "\n- Report deleted: `HEAD^:reports/regimes/second` (36 cases, no claims; measured on NVIDIA H100 80GB HBM3).\n",
    ];
    assert_says("report_deleted", &facts);
    assert_eq!(repository.runner(&[&page[..], &["--strict"]].concat()), Some(6));
}

/// The kernel is improved, but the GPU's report is left as it was, so nothing in the report proves the improvement. The
/// report comes from a run on the simulator, but its records name a GPU.
#[test]
fn a_report_of_a_gpu_that_was_not_measured_again() {
    const REPORT: &str = "reports/sum/nvidia-h100-80gb-hbm3";
    let repository = Repository::new();
    repository.write(MANIFEST_PATH, MANIFEST);
    repository.write(KERNEL_PATH, KERNEL);
    repository.write("kernels/load.cuh", HEADER);
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(repository.0.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    program(&["run", MANIFEST_PATH, "--backend", "sim", "--out", REPORT]);
    let file = repository.0.path().join(REPORT).join("records.jsonl");
    let mut records = journal::read_records(&file).unwrap();
    records.header.backend = BackendKind::Cuda;
    records.environment.device.backend = BackendKind::Cuda;
    records.environment.device.name = "NVIDIA H100 80GB HBM3".to_owned();
    // The simulator's code hashes cover PTX, so a GPU's records cannot contain them.
    records.cases.iter_mut().filter_map(|record| record.hashes.as_mut()).for_each(|hashes| hashes.code = None);
    fs::write(&file, journal::records_text(&records).unwrap()).unwrap();
    program(&["report", REPORT]);
    repository.commit("Measure");
    repository.write(KERNEL_PATH, &shuffled(KERNEL));
    repository.commit("Add the last elements in registers");

    let (code, page) = job_on_github(repository.0.path(), "HEAD^1");
    assert_eq!(code, 0, "{page}");
    // The records contain the version of the program that measured, so the commits' hashes depend on it.
    let id = |revision: &str| {
        let mut git = Command::new("git");
        let output = git.current_dir(repository.0.path()).args(["rev-parse", "--short=7", revision]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let page = page.replace(&id("HEAD^1"), "1111111").replace(&id("HEAD"), "2222222");
    snapshot::assert_is(&page, &golden("report_stale"));
    let facts = [
        "## ! Passes, needs a reviewer: `committed reports`: measured before this change\n",
        "`runner run MANIFEST`",
        "Stale: measured before kernels/sum.cu changed: sum on NVIDIA H100 80GB HBM3 (3 of 3 cases: tree, two, four).",
        "### `experiments`: ✓ no regression, 3 cases do less work (",
    ];
    assert_says("report_stale", &facts);
}
