//! Kernels as users have them, described in one manifest: output of another compiler, and every form of data, reference
//! and argument that a manifest supports. See `any_kernel/experiments/any_kernel.toml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::gpu::first;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/any_kernel")
}

fn runner(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(folder).args(["--color", "never"]).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

fn text_of_failure(output: &Output) -> String {
    assert_ne!(output.status.code(), Some(0), "{}", text(output));
    text(output)
}

/// Runs a manifest on a backend and requires every case to be right. Returns the report.
fn run(name: &str, backend: &str) -> String {
    let reports = tempfile::tempdir().unwrap();
    let out = reports.path().join("report");
    let out = out.to_str().unwrap();
    let manifest = format!("experiments/{name}.toml");
    let arguments = ["run", &manifest, "--backend", backend, "--allow-host-code", "--quiet", "--out", out];
    let output = runner(&folder(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = std::fs::read_to_string(reports.path().join("report/report.md")).unwrap();
    assert!(!report.contains("mismatch"), "{report}");
    report
}

#[test]
fn structs_with_addresses_and_arrays_are_passed_by_value_on_the_simulator() {
    let report = run("arguments", "sim");
    assert!(report.contains("6 of 6 cases passed"), "{report}");
}

#[test]
fn a_field_that_a_struct_lacks_or_that_is_of_another_size_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = "struct Inner { int rows; };\nstruct Outer { float *y; Inner shape, more[2], last; };\n\
                  __global__ void k(Outer outer) { outer.y[0] = outer.shape.rows; }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let ran = |argument: &str| {
        let text = format!(
            "[experiment]\nname = \"x\"\n[buffers.y]\ntype = \"f32\"\nlen = 1\n\
             [[variant]]\nname = \"a\"\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\nargs = [{argument}]\n"
        );
        std::fs::write(folder.path().join("x.toml"), text).unwrap();
        let output = runner(folder.path(), &["run", "x.toml", "--backend", "sim", "--out", "report"]);
        text_of_failure(&output)
    };
    let said = ran("{ y = \"y\", shape = { row = \"i32(1)\" } }");
    assert!(said.contains("args[0] of k: class \"Inner\" has no member \"row\""), "{said}");
    let said = ran("{ y = \"y\", shape = { rows = \"i64(1)\" } }");
    assert!(said.contains("the field `shape.rows` has 4 bytes in the kernel's struct, but 8 are passed"), "{said}");
    let said = ran("{ y = \"y\", more = [{ rows = \"i32(1)\" }, { rows = \"i32(1)\" }, { rows = \"i32(1)\" }] }");
    assert!(said.contains("`more[2].rows` is beyond the end of `more` in the kernel's struct"), "{said}");
}

#[test]
#[ignore = "needs a GPU"]
fn structs_with_addresses_and_arrays_are_passed_by_value_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    run("arguments", "cuda");
}

#[test]
fn headers_of_libraries_are_there_on_the_simulator() {
    assert!(run("random", "sim").contains("2 of 2 cases passed"));
}

#[test]
#[ignore = "needs a GPU"]
fn headers_of_libraries_are_there_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    assert!(run("random", "cuda").contains("2 of 2 cases measured"));
}

#[test]
fn a_program_whose_kernels_launch_kernels_is_right_on_the_simulator() {
    assert!(run("launches", "sim").contains("2 of 2 cases passed"));
}

#[test]
#[ignore = "needs a GPU"]
fn a_program_whose_kernels_launch_kernels_is_right_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    assert!(run("launches", "cuda").contains("2 of 2 cases measured"));
}

#[test]
fn tensor_cores_multiply_as_the_host_does_on_the_simulator() {
    assert!(run("tensor_cores", "sim").contains("7 of 7 cases passed"));
}

#[test]
#[ignore = "needs a GPU"]
fn tensor_cores_multiply_as_the_host_does_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    assert!(run("tensor_cores", "cuda").contains("7 of 7 cases measured"));
}

#[test]
fn defines_take_the_place_of_the_sources_own_and_lines_keep_their_numbers() {
    assert!(run("sized", "sim").contains("2 of 2 cases passed"));
}

#[test]
fn textures_and_surfaces_are_right_on_the_simulator_and_their_cases_are_shown() {
    assert!(run("textures", "sim").contains("3 of 3 cases passed"));
    assert!(run("surfaces", "sim").contains("2 of 2 cases passed"));
    let output =
        runner(&folder(), &["show", "experiments/surfaces.toml", "blur", "--backend", "sim", "--allow-host-code"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("blurred"), "{}", text(&output));
}

#[test]
#[ignore = "needs a GPU"]
fn textures_and_surfaces_are_right_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    assert!(run("textures", "cuda").contains("3 of 3 cases measured, every result right"));
    assert!(run("surfaces", "cuda").contains("2 of 2 cases measured, every result right"));
}

#[test]
fn every_case_is_right_on_the_simulator() {
    assert!(run("any_kernel", "sim").contains("triton"));
}

#[test]
#[ignore = "needs a GPU"]
fn every_case_is_right_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    assert!(run("any_kernel", "cuda").contains("triton"));
}

#[test]
fn slices_fractions_norms_and_tensors_are_checked_on_the_simulator() {
    let report = run("checks", "sim");
    assert!(report.contains("0.0100 of the elements are wrong, but only 0.009 may be"), "{report}");
    let norms = "the relative error in the Frobenius norm is 1.00e-2, but only 9.9e-3 is allowed; \
                 the relative error in the maximum norm is 1.00e-1, but only 9.9e-2 is allowed";
    assert!(report.contains(norms), "{report}");
}

#[test]
fn a_check_compares_the_elements_that_its_mask_selects() {
    let report = run("checks", "sim");
    // The first mask selects three elements in each of four rows. `golden` has seven elements other than -1. The third
    // mask selects the same twelve as the first.
    for (mask, compared) in [("index % 8 < 3", 12), ("golden != -1", 7), ("index < 3 || mask", 12)] {
        let note = report.lines().find(|line| {
            line.contains(&format!("where {mask}")) || line.contains(&format!("where {}", mask.replace('|', "\\|")))
        });
        assert!(
            note.is_some_and(|note| note.contains(&format!("{compared} of 32 elements were compared"))),
            "{mask}: {report}"
        );
    }
    let wrong = "element 11 is -875836469 (never written), expected 22";
    assert!(report.contains(wrong) && report.contains("1 of 13 elements is wrong"), "{report}");
}

#[test]
#[ignore = "needs a GPU"]
fn slices_fractions_norms_and_tensors_are_checked_on_a_gpu() {
    let (device, _turn) = first::device();
    drop(device);
    run("checks", "cuda");
}

#[test]
fn a_variant_has_conditions_failures_and_a_sanitizer_of_one_backend() {
    let report = run("backends", "sim");
    assert!(
        report.contains("the sanitizer is off for this variant: the value that is read does not matter"),
        "{report}"
    );
    assert!(report.contains("the sanitizer (race) is off for this variant: any value is right"), "{report}");
    assert!(
        report.contains("the sanitizer (race, uninitialised) is off for this variant: multiplied by 0"),
        "{report}"
    );
    assert!(report.contains("requires n > 64"), "{report}");
    assert!(report.contains("2 failed as expected"), "{report}");
    assert!(report.contains("was never written"), "{report}");
}

#[test]
fn only_the_cases_for_which_a_condition_holds_are_expected_to_fail() {
    let report = run("conditions", "sim");
    assert!(report.contains("3 of 6 cases passed"), "{report}");
    assert!(report.contains("3 failed as expected"), "{report}");
    let project = tempfile::tempdir().unwrap();
    for name in ["experiments/conditions.toml", "kernels/conditions.cu"] {
        std::fs::create_dir_all(project.path().join(name).parent().unwrap()).unwrap();
        std::fs::copy(folder().join(name), project.path().join(name)).unwrap();
    }
    let manifest = project.path().join("experiments/conditions.toml");
    let run_replacing = |from: &str, to: &str| {
        let original = std::fs::read_to_string(folder().join("experiments/conditions.toml")).unwrap();
        std::fs::write(&manifest, original.replace(from, to)).unwrap();
        let output = runner(project.path(), &["run", "experiments/conditions.toml", "--backend", "sim", "--quiet"]);
        (output.status.code(), text(&output))
    };
    // One case that should pass is wrong, and one that should fail passes.
    let (code, said) = run_replacing("n % 32 != 0", "n == 32");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("floor[n = 48]") && said.contains("floor[n = 32]"), "{said}");
    let (code, said) =
        run_replacing("fails  = { wrong = \"n % 32 != 0\" }", "let = { m = \"n\" }\nfails = { wrong = \"m > 32\" }");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("a condition of `fails` may only use axes, and `m` is not one"), "{said}");
}

#[test]
fn one_case_is_shown_with_its_buffers_and_what_is_wrong_in_its_surroundings() {
    let kept = tempfile::tempdir().unwrap();
    let dump = kept.path().to_str().unwrap();
    let show = |manifest: &str, case: &str| {
        let arguments = ["show", manifest, case, "--backend", "sim", "--dump", dump];
        let output = runner(&folder(), &arguments);
        (output.status.code(), text(&output))
    };
    let (code, said) = show("experiments/counting.toml", "until[limit = 3]");
    assert_eq!(code, Some(0), "{said}");
    // After three swaps, `x` holds what started out as `next`.
    assert!(said.contains("\n  next  1 i32  2\n") && said.contains("\n  x  1 i32  3\n"), "{said}");
    let x = std::fs::read(kept.path().join("counting/until[limit=3]/x.npy")).unwrap();
    assert_eq!(x[x.len() - 4..], 3_i32.to_le_bytes());
    let (_, said) = show("experiments/checks.toml", "more than a fraction");
    assert!(said.contains("  values  1000 f32  10.0 10.0 10.0 10.0 10.0 10.0 … "), "{said}");
    assert!(
        said.contains("check 0: element, got, expected\n>        0  11.0  10.0\n         1  10.0  10.0\n"),
        "{said}"
    );
    let (code, said) = show("experiments/counting.toml", "until");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`until` names 2 cases; name one of\n  until[limit = 3]\n  until[limit = 4]"), "{said}");
}

#[test]
fn a_case_is_shown_by_row_and_column() {
    let show = |case: &str, options: &[&str]| {
        let arguments = [&["show", "experiments/checks.toml", case, "--backend", "sim"], options].concat();
        let output = runner(&folder(), &arguments);
        (output.status.code(), text(&output))
    };
    // 0, 0.5, 1, … in rows of four, plus the bias 1, -1, 2, -2.
    let (code, said) = show("add", &["--shape", "out=3x4", "--element", "out[1.., 1..3]", "--element", "out[7]"]);
    assert_eq!(code, Some(0), "{said}");
    let out =
        "\n  out  3x4 f32\n    [0, 0]  1.0 -0.5 3.0 -0.5\n    [1, 0]  3.0 1.5 5.0 1.5\n    [2, 0]  5.0 3.5 7.0 3.5\n";
    assert!(said.contains(out), "{said}");
    assert!(said.contains("\n  out[1, 1..3]  1.5 5.0\n  out[2, 1..3]  3.5 7.0\n  out[1, 3]  1.5\n"), "{said}");
    // Every 100th element is wrong.
    let (_, said) = show("more than a fraction", &["--shape", "100x10"]);
    assert!(said.contains("\n  values  100x10 f32\n    [0, 0]  10.0 10.0"), "{said}");
    assert!(said.contains("    …\n    [97, 0]  10.0"), "{said}");
    assert!(said.contains("expected\n>        0 [0, 0]  11.0  10.0\n         1 [0, 1]  10.0  10.0\n"), "{said}");
    for (option, value, problem) in [
        ("--shape", "out=3x5", "--shape out=3x5: `out` does not have 15 elements, but 12"),
        ("--shape", "7x7", "--shape 7x7: no buffer has 49 elements"),
        ("--shape", "other=3x4", "--shape other=3x4: the case has no buffer `other`"),
        ("--element", "other[0]", "--element: the case has no buffer `other`; it has bias, out, weight"),
        ("--element", "out[12]", "--element out[12]: 12..13 is not within 0..12"),
    ] {
        let (code, said) = show("add", &[option, value]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn a_run_keeps_what_its_cases_left_and_lists_the_slowest() {
    let kept = tempfile::tempdir().unwrap();
    let (outputs, out) = (kept.path().join("outputs"), kept.path().join("report"));
    let arguments = [
        "run",
        "experiments/counting.toml",
        "--backend",
        "sim",
        "--slowest",
        "2",
        "--keep-outputs",
        outputs.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    let output = runner(&folder(), &arguments);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let slowest = said.split_once("slowest cases, excluding compilation:\n").unwrap().1;
    assert_eq!(slowest.lines().take_while(|line| line.contains(" s  ")).count(), 2, "{said}");
    let last = |file: &str| {
        let bytes = std::fs::read(outputs.join("counting/repeat[limit=4]").join(file)).unwrap();
        i32::from_le_bytes(*bytes.last_chunk::<4>().unwrap())
    };
    assert_eq!((last("x.npy"), last("check0.actual.npy"), last("check1.actual.npy")), (4, 4, 3));
    assert!(outputs.join("counting/until[limit=3]/check0.expected.npy").is_file());
}

#[test]
fn launches_have_attributes_on_the_simulator() {
    run("attributes", "sim");
}

#[test]
#[ignore = "needs a GPU"]
fn launches_have_attributes_on_a_gpu() {
    let (device, _turn) = first::device();
    drop(device);
    run("attributes", "cuda");
}

/// Algorithms that need many launches; each is checked against its own reference.
const OF_MANY_LAUNCHES: [&str; 5] = ["bfs", "gauss", "radix", "jacobi", "counting"];

#[test]
fn algorithms_of_many_launches_are_right_on_the_simulator() {
    for name in OF_MANY_LAUNCHES {
        run(name, "sim");
    }
}

#[test]
fn a_loop_that_reaches_its_bound_says_what_its_condition_reads() {
    let report = run("counting", "sim");
    let reached =
        |limit: u32| format!("`done == 1` does not hold after {} iterations (`at_most`): `done` is 0", limit - 1);
    assert!(report.contains(&reached(3)) && report.contains(&reached(4)), "{report}");
    assert!(report.contains("the loop ended after 3 iterations"), "{report}");
}

#[test]
#[ignore = "needs a GPU"]
fn algorithms_of_many_launches_are_right_on_a_gpu() {
    let (device, _turn) = first::device();
    drop(device);
    for name in OF_MANY_LAUNCHES {
        let report = run(name, "cuda");
        let reads = report.contains("the host reads the condition after each, which takes ");
        assert_eq!(reads, ["bfs", "jacobi", "counting"].contains(&name), "{report}");
    }
}

#[test]
fn an_entry_of_tritons_cache_becomes_a_source_and_a_manifest_that_runs() {
    let project = tempfile::tempdir().unwrap();
    let cache = folder().join("triton_cache");
    let output = runner(project.path(), &["import", "triton", cache.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let manifest = std::fs::read_to_string(project.path().join("experiments/softmax.toml")).unwrap();
    let launch = "source = \"softmax.ptx\"\nkernel = \"softmax\"\ngrid   = [\"ceil_div(n, 1024)\"]\nblock  = [128]\n\
                  shared = 16\nargs   = [\"out_ptr\", \"in_ptr\", \"i32(n)\", \"null\", \"null\"]\n";
    assert!(manifest.ends_with(launch), "{manifest}");
    // The kernel stores through one pointer and loads through the other.
    assert!(manifest.contains("[buffers.out_ptr]\ntype   = \"f32\"\nlen    = \"n\"\naccess = \"out\"\n"), "{manifest}");
    assert!(manifest.contains("fill   = { uniform = [0.0, 1.0] }\naccess = \"in\"\n"), "{manifest}");
    let again = runner(project.path(), &["import", "triton", cache.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2), "files that exist are kept");
    let run = ["run", "experiments/softmax.toml", "--backend", "sim", "--quiet", "--set", "n=1024"];
    let output = runner(project.path(), &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn a_folder_without_a_kernel_of_triton_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let output = runner(empty.path(), &["import", "triton", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains(". has no Triton kernel (a .ptx with its .json)"), "{}", text(&output));
}

fn counters(records: &str, variant: &str) -> serde_json::Value {
    let lines = records.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut own = lines.filter(|line| line["variant"] == variant);
    own.next().unwrap()["counters"].clone()
}

#[test]
fn the_counts_of_a_sampled_convolution_are_those_of_all_its_blocks() {
    let reports = tempfile::tempdir().unwrap();
    let out = reports.path().join("report");
    // A grid of 18 × 18 blocks, of which 256 run.
    let sizes = ["--set", "n=288", "--set", "taps=5"];
    let arguments = ["run", "experiments/sampled.toml", "--backend", "sim", "--quiet", "--out", out.to_str().unwrap()];
    let output = runner(&folder(), &[&arguments[..], &sizes].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let records = std::fs::read_to_string(out.join("records.jsonl")).unwrap();
    let (whole, sample) = (counters(&records, "whole"), counters(&records, "sample"));
    let counted = whole.as_array().unwrap();
    assert!(counted.iter().any(|count| count.as_f64() > Some(3e5)), "{whole}");
    assert_eq!(whole, sample);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    for note in [
        "counts are estimates: 256 of 324 blocks ran, each weighted by the number of blocks that it represents",
        "65536 of 82944 elements were compared",
    ] {
        assert!(report.contains(note), "{report}");
    }
    assert!(report.contains(r"| `sample` | \~"), "{report}");
}

#[test]
fn a_sampled_case_is_judged_by_what_its_blocks_wrote() {
    let report = run("sampled_ends", "sim");
    for said in [
        "16320 of 65472 elements were compared",
        "element 709 is 775, expected 774, off by 1; 122 of 16320 elements are wrong",
        "the sampled blocks changed none of its elements",
        "simulate: an access through which blocks communicate (a sample of them cannot run without the others) in kernel `histogram` at",
        "never written",
    ] {
        assert!(report.contains(said), "{said}\n{report}");
    }
}

/// Runs the manifest whose variants are linked from several sources.
fn run_linked(backend: &str) {
    let report = run("linked", backend);
    assert!(report.contains("2 failed as expected"), "{report}");
    // Both linkers name the symbol and one of the files.
    for (symbol, file) in [("factor", "linked_scale.cu"), ("factor", "linked_again.cu")] {
        let says = |line: &str| line.contains("compile error: ") && line.contains(symbol) && line.contains(file);
        assert!(report.lines().any(says), "{symbol} {file}\n{report}");
    }
}

#[test]
fn sources_are_linked_on_the_simulator() {
    run_linked("sim");
}

#[test]
#[ignore = "needs a GPU"]
fn sources_are_linked_on_a_gpu() {
    // Keeps the guard so that no other test times anything meanwhile.
    let (device, _turn) = first::device();
    drop(device);
    run_linked("cuda");
}
