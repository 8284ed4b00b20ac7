//! Experiments whose cases are meant to fail: the report says how they ended, and ranks none of them.

use runner_results::analyse;
use runner_types::{Failure, Outcome, Records, Regime, Unit};

use fixture::{Experiment, Run};

/// One group of cases with these outcomes; a measured case at index i takes i + 1 µs.
fn ended(outcomes: Vec<Outcome>, baseline: Option<&str>) -> Records {
    let names: Vec<String> = (0..outcomes.len()).map(|i| format!("v{i}")).collect();
    let variants: Vec<&str> = names.iter().map(String::as_str).collect();
    let experiment = Experiment {
        name: "mistakes",
        title: "Mistakes",
        question: "Which are caught?",
        axes: &[],
        variants: &variants,
        baseline: baseline.map(|name| (name, &[][..])),
        manifest: "",
    };
    let mut run = Run::new(&experiment, fixture::h100());
    for (i, (variant, outcome)) in variants.iter().zip(outcomes).enumerate() {
        let case = run.case(variant, &[]);
        if outcome == Outcome::Measured {
            run.checked(&case, Vec::new());
            run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, 1000.0 * (i + 1) as f64, &[]);
        }
        run.settled(&case, outcome, None);
    }
    run.finish(true);
    analyse::records(&run.events).unwrap()
}

fn as_expected(end: Outcome) -> Outcome {
    Outcome::FailedAsExpected { end: Box::new(end) }
}

fn trap() -> Outcome {
    Outcome::Trap { message: "read past the end".to_owned() }
}

fn invalid() -> Outcome {
    Outcome::Invalid { limit: "2048 threads per block, the device allows 1024".to_owned() }
}

/// Sentences of the report's summary.
fn sentences(records: &Records) -> Vec<String> {
    let files = runner_report::files(records).unwrap();
    let (_, report) = files.iter().find(|(path, _)| path.ends_with("report.md")).unwrap();
    let lines = report.lines().skip_while(|line| !line.starts_with("- "));
    lines.take_while(|line| line.starts_with("- ")).map(str::to_owned).collect()
}

#[test]
fn where_most_cases_are_to_fail_the_summary_says_that_they_did() {
    let records =
        ended(vec![Outcome::Measured, as_expected(trap()), as_expected(trap()), as_expected(invalid())], None);
    let expected = [
        "- **All 4 cases ended as expected**: 3 fail as the manifest states (1 invalid, 2 traps), 1 is right.",
        "- 1 of 4 cases measured, every result right before and after the timing; 3 failed as expected. Device: NVIDIA H100 80GB HBM3.",
    ];
    assert_eq!(sentences(&records), expected);
    let summary = analyse::summary(&records);
    assert!(summary.standings.is_empty() && summary.groups.iter().all(|group| group.best.is_empty()));
}

#[test]
fn an_expected_failure_that_passed_or_failed_otherwise_is_counted_out() {
    let harmless = Outcome::DidNotFail { fails: vec![Failure::Trap] };
    let wrong_way = Outcome::Crashed { message: "killed by SIGSEGV".to_owned() };
    let records = ended(vec![as_expected(trap()), harmless, wrong_way, Outcome::Measured, Outcome::Measured], None);
    let first = "- **3 of 5 cases ended as expected**: 1 fails as the manifest states (1 trap), 2 are right.";
    assert_eq!(sentences(&records)[0], first);
}

#[test]
fn an_excluded_case_is_no_expected_failure() {
    let excluded = Outcome::Excluded { why: "later".to_owned() };
    let records = ended(vec![excluded.clone(), as_expected(trap()), excluded], None);
    let first = "- **The only case ended as expected**: 1 fails as the manifest states (1 trap).";
    assert_eq!(sentences(&records)[0], first);
}

#[test]
fn a_comparison_with_a_few_expected_failures_in_it_stays_one() {
    let few = vec![Outcome::Measured, Outcome::Measured, Outcome::Measured, as_expected(trap())];
    assert!(sentences(&ended(few, Some("v2")))[0].starts_with("- **`v0`** is the fastest: "));
    // A baseline requires a comparison.
    let half = vec![Outcome::Measured, Outcome::Measured, as_expected(trap()), as_expected(trap())];
    assert!(sentences(&ended(half, Some("v1")))[0].starts_with("- **`v0`** is the fastest: "));
    // Unlike above, these failures are not expected.
    let broken = vec![Outcome::Measured, trap(), trap(), trap()];
    assert!(sentences(&ended(broken, Some("v1")))[0].starts_with("- **`v0`** is the fastest: "));
}
