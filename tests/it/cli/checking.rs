//! What a check accepts and what it reports, through the real binary, on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A folder with the sources and manifests of these tests.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/checking");
    for entry in fs::read_dir(fixtures).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// Exit code, and standard output and error combined.
fn runner(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["--color", "never"])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

/// Runs a manifest on the simulator and writes its report to `MANIFEST.out`.
fn run(folder: &TempDir, manifest: &str, arguments: &[&str]) -> (Option<i32>, String) {
    run_on("sim", folder, manifest, arguments)
}

pub fn run_on(backend: &str, folder: &TempDir, manifest: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let out = format!("{manifest}.out");
    runner(folder, &[&["run", manifest, "--backend", backend, "--offline", "--out", &out], arguments].concat())
}

#[track_caller]
pub fn expect(said: (Option<i32>, String), code: i32, words: &[&str]) -> String {
    let (ended, text) = said;
    assert_eq!(ended, Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
    text
}

#[test]
fn scratch_memory_that_another_variant_wrote_was_never_written() {
    let folder = folder();
    let never = "which was never written";
    expect(run(&folder, "counter.toml", &[]), 1, &["forgets_to", never]);
    expect(run(&folder, "counter.toml", &["--variant", "forgets_to"]), 1, &[never]);
    expect(run(&folder, "counter.toml", &["--variant", "zeroes_the_counter"]), 0, &[]);
    expect(run(&folder, "copies.toml", &[]), 1, &["cheat", never]);
}

#[test]
fn variables_and_the_heap_are_those_of_a_new_process_for_every_variant() {
    let words = ["3 of 4 cases passed", "wrong, copies_a_variable: out against 2 * x: element 1 is 0.0, expected 2.0"];
    expect(run(&folder(), "state.toml", &[]), 1, &words);
}

#[test]
fn a_case_that_is_checked_on_one_set_of_inputs_says_so_in_its_row_and_in_a_note() {
    let folder = folder();
    let note = "checked on one set of inputs, since another launch would take more than about a second";
    expect(run(&folder, "skipped.toml", &["--variant", "burn"]), 0, &[note, "--thorough", "1 of 2"]);
    let read = |name: &str| fs::read_to_string(folder.path().join("skipped.toml.out").join(name)).unwrap();
    assert_eq!(read("report.md").matches(note).count(), 1, "{}", read("report.md"));
    let table = read("results.csv");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (heads, cells) = (lines.next().unwrap(), lines.next().unwrap());
    let place = heads.iter().position(|head| *head == "input_sets").unwrap();
    assert_eq!(cells[place], "1");

    // If all sets of inputs are checked, the column is omitted.
    let second = "on a second set of inputs";
    let out = ["--variant", "constant"];
    let said = expect(run(&folder, "skipped.toml", &out), 1, &[second]);
    assert!(!said.contains("one set of inputs") && !read("results.csv").contains("input_sets"), "{said}");
    expect(run(&folder, "skipped.toml", &["--variant", "burn", "--thorough"]), 1, &[second]);
}

#[test]
fn a_reference_in_cpp_is_checked_on_one_set_of_inputs_and_on_two_on_request() {
    let folder = folder();
    let note = "how long the reference in Python or C++ takes is unknown";
    expect(run(&folder, "skipped_function.toml", &["--allow-host-code"]), 0, &[note]);
    let thorough = ["--allow-host-code", "--thorough"];
    expect(run(&folder, "skipped_function.toml", &thorough), 1, &["on a second set of inputs"]);
}

#[test]
fn a_result_that_is_rounded_correctly_below_the_normal_values_passes() {
    expect(run(&folder(), "subnormals.toml", &[]), 0, &["5 of 5 cases passed"]);
}

#[test]
fn nan_is_outside_of_the_fraction_of_wrong_elements() {
    let words = ["NaN or infinity in 8 of the elements, which `fraction` does not allow"];
    expect(run(&folder(), "fraction.toml", &[]), 1, &words);
}

#[test]
fn two_orders_of_one_sum_agree_by_default_and_a_wrong_one_names_what_is_allowed() {
    let folder = folder();
    let tried = |kernels: &[&str]| {
        let kernels = kernels.iter().flat_map(|kernel| ["-k", kernel]).collect::<Vec<_>>();
        runner(&folder, &[&["try", "orders.cu", "--backend", "sim", "--n", "2**14"], kernels.as_slice()].concat())
    };
    expect(tried(&["forward", "backward"]), 0, &["✓ pass"]);
    let said =
        expect(tried(&["forward", "wrong_sign"]), 1, &["1e-5 relative or ", " absolute is allowed", "--tolerance"]);
    // A sum of four values of variance 3/4 has standard deviation sqrt(3). Half of the sums exceed 0.674 * sqrt(3) =
    // 1.17 in magnitude.
    let allowed = said.split("relative or ").nth(1).unwrap().split(' ').next().unwrap();
    assert!((1.1e-5..1.3e-5).contains(&allowed.parse::<f64>().unwrap()), "{said}");
    let manifest = expect(run(&folder, "orders.toml", &[]), 1, &["2 of 4 cases passed", "1e-5 relative or "]);
    assert!(manifest.contains("wrong, wrong_sign") && manifest.contains("wrong, zeros"), "{manifest}");
}
