//! Host functions are timed and checked like kernels, and one that fails affects only its own row.

use runner_process::programs::Programs;
use runner_types::{CaseRecord, Note, Outcome};

use super::bench::{Bench, bench, fixture};
use super::left::Left;

/// A bench on which host functions can be built.
fn bench_with_nvcc() -> Bench {
    Programs::of_this_machine().find("nvcc").expect("nvcc");
    bench()
}

#[track_caller]
fn launch_error(left: &Left, variant: &str, n: &str) -> String {
    match left.at(variant, n).outcome {
        Outcome::LaunchError { message } => message,
        other => panic!("`{variant}` is {other:?}\n{}", left.story()),
    }
}

#[test]
#[ignore = "needs a GPU"]
fn host_functions_are_measured_like_kernels_and_cost_no_row_but_their_own() {
    let bench = bench_with_nvcc();
    let left = bench.run(&fixture("plugins.toml"), "out", &["--allow-host-code"]);
    left.expect_code(1);
    for n in ["1000", "1048577"] {
        let mismatch = left.mismatch("bad_wrong", n);
        assert_eq!(mismatch.index, n.parse::<u64>().unwrap() - 1, "{}", left.story());
        let error = launch_error(&left, "bad_returns_an_error", n);
        assert!(error.contains("`returns_an_error` returned 1 (CUDA_ERROR_INVALID_VALUE"), "{error}");
        let error = launch_error(&left, "bad_returns_its_own_error", n);
        assert!(error.contains("returned 77 (the moon is in the wrong quarter)"), "{error}");
        let error = launch_error(&left, "bad_cannot_prepare", n);
        assert!(error.contains("`cannot_prepare_prepare` returned 2 (CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
        let error = launch_error(&left, "bad_kills_the_context", n);
        assert!(error.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
        let crashed = left.at("bad_crashes", n).outcome;
        assert!(matches!(crashed, Outcome::Crashed { .. }), "{crashed:?}\n{}", left.story());
    }
    let records = left.records();
    for variant in ["right", "with_storage"] {
        // Two sizes in four regimes.
        let of = left.find_all(variant);
        assert_eq!(of.len(), 8, "{variant}\n{}", left.story());
        let compared = |record: &CaseRecord| record.result.as_ref().is_some_and(|r| r.against_baseline.is_some());
        assert!(of.iter().all(compared), "{variant}\n{}", left.story());
    }
    left.expect_sound(&["right", "with_storage"]);
    assert!(records.environment.host_compiler.is_some_and(|name| name.starts_with("nvcc 1")), "{}", left.story());
}

#[test]
#[ignore = "needs a GPU"]
fn a_function_that_waits_is_timed_without_a_gate_and_its_row_says_so() {
    let bench = bench_with_nvcc();
    let left = bench.run(&fixture("plugins_waiting.toml"), "out", &["--allow-host-code"]);
    left.expect_code(0);
    left.expect_sound(&["right", "waits"]);
    let notes = |variant: &str| left.find_all(variant).into_iter().flat_map(|record| record.notes).collect::<Vec<_>>();
    let waits = |variant: &str| notes(variant).iter().filter(|note| matches!(note, Note::NotGated { .. })).count();
    assert_eq!((waits("right"), waits("waits")), (0, 1), "{}", left.story());
}
