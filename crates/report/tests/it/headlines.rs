//! What a report says first: what is best, how certain that is, and what is ranked at all.

use std::path::Path;

use runner_results::analyse::{self, Basis};
use runner_types::{Claim, Estimate, Outcome, Records, Regime, ResultError, Spread, Unchecked, Unit, Value, Verdict};

use fixture::{Axes, Experiment, Run};

/// Two groups of three variants, measured without noise. `times` are in nanoseconds, by group.
fn records(times: [[f64; 3]; 2], baseline: Option<&str>) -> Records {
    let experiment = Experiment {
        name: "steps",
        title: "Steps",
        question: "Which?",
        axes: &[("n", false)],
        variants: &["a", "b", "c"],
        baseline: baseline.map(|name| (name, &[] as Axes<'_>)),
        manifest: "",
    };
    let mut run = Run::new(&experiment, fixture::h100());
    for (n, times) in (1..).zip(times) {
        for (variant, time) in ["a", "b", "c"].into_iter().zip(times) {
            let case = run.case(variant, &[("n", Value::Int(n))]);
            run.checked(&case, Vec::new());
            run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, time, &[]);
            run.settled(&case, Outcome::Measured, None);
        }
    }
    run.finish(true);
    let mut records = analyse::records(&run.events).unwrap();
    for (record, time) in records.cases.iter_mut().zip(times.concat()) {
        record.result.as_mut().unwrap().time = exact(time);
    }
    records
}

fn exact(time: f64) -> Estimate {
    Estimate { point: time, low: time * 0.999, high: time * 1.001, confidence: 0.95 }
}

/// Sentences before the claims, without markup.
fn headline(records: &Records) -> Vec<String> {
    let files = runner_report::files(records).unwrap();
    let (_, page) = files.iter().find(|(path, _)| path == Path::new("report.md")).unwrap();
    let lines = page.lines().skip_while(|line| !line.starts_with("- "));
    lines.take_while(|line| line.starts_with("- ")).map(|line| line.replace(['*', '`'], "")).collect()
}

#[test]
fn a_tie_is_no_win() {
    let records = records([[2000.0, 1000.0, 1001.0], [2000.0, 1000.0, 1500.0]], Some("a"));
    let summary = analyse::summary(&records);
    let counts: Vec<_> = summary.standings.iter().map(|s| (s.alone, s.tied)).collect();
    assert_eq!(counts, [(0, 0), (1, 1), (0, 1)]);
    let said = headline(&records);
    assert!(said[0].starts_with("- b is the fastest in 1 of 2 groups, tied in the other 1: "), "{said:?}");
}

#[test]
fn a_difference_that_another_process_may_not_find_is_a_tie() {
    let mut records = records([[2000.0, 1000.0, 1010.0], [2000.0, 1000.0, 1010.0]], Some("a"));
    assert!(analyse::summary(&records).groups[0].best[0].tied.is_empty());
    // The interval of the ratio is 1.96 · √2 · 0.5 % = 1.39 %, more than the 1 % between b and c.
    records.environment.machine.spread = Some(Spread { nanoseconds: 0.0, relative: 0.005, processes: 5 });
    assert_eq!(analyse::summary(&records).groups[0].best[0].tied, [2]);
}

#[test]
fn where_cases_do_different_work_the_highest_rate_is_the_best() {
    let mut records = records([[1000.0, 1500.0, 3000.0], [1000.0, 1500.0, 3000.0]], Some("a"));
    for (record, bytes) in records.cases.iter_mut().zip([1000, 6000, 3000, 1000, 6000, 3000]) {
        record.work.bytes = Some(bytes);
    }
    let summary = analyse::summary(&records);
    assert_eq!(summary.groups[0].basis, Basis::Bandwidth);
    assert_eq!(summary.groups[0].best[0].index, 1);
    // b moves six times as many bytes as the baseline, and takes 1.5 times as long.
    let b = summary.standings[1].speedup.unwrap();
    let by_time = records.cases[1].result.as_ref().unwrap().against_baseline.as_ref().unwrap().speedup.point;
    assert!((b.geomean.point / (6.0 * by_time) - 1.0).abs() < 1e-9, "{b:?}");
    assert!(
        headline(&records)[0].starts_with("- b has the highest rate in all 2 groups: "),
        "{:?}",
        headline(&records)
    );
}

#[test]
fn an_unchecked_result_is_never_the_best() {
    let mut records = records([[2000.0, 1000.0, 1500.0], [2000.0, 1000.0, 1500.0]], Some("a"));
    for record in records.cases.iter_mut().filter(|record| record.case.key.variant == "b") {
        record.verdict = Verdict::Unchecked(Unchecked::NoCheck);
    }
    assert!(
        headline(&records)[0].starts_with("- c is the fastest of the checked variants in all 2 groups"),
        "{:?}",
        headline(&records)
    );
}

#[test]
fn without_a_baseline_and_work_nothing_is_ranked() {
    let mut records = records([[2000.0, 1000.0, 1500.0], [2000.0, 1000.0, 1500.0]], None);
    let said = headline(&records);
    assert_eq!(
        said[0],
        "- 6 of 6 cases measured, every result right before and after the timing. Device: NVIDIA H100 80GB HBM3."
    );
    assert!(said[1].starts_with("- The times are not ranked"), "{said:?}");
    for record in &mut records.cases {
        record.work.bytes = Some(1 << 20);
    }
    assert!(headline(&records)[0].starts_with("- b is the fastest in all 2 groups"), "{:?}", headline(&records));
}

#[test]
fn an_experiment_whose_claims_are_about_errors_states_exactness() {
    let mut records = records([[2000.0, 1000.0, 1500.0], [2000.0, 1000.0, 1500.0]], Some("a"));
    for (record, ulp) in records.cases.iter_mut().zip([9.0, 3.0, 0.5, 230.0, 2.0, 0.25]) {
        record.error = Some(ResultError { ulp, ..ResultError::default() });
    }
    let claim = |text: &str| Claim { text: text.to_owned(), condition: None, backend: None, regime: None };
    records.header.claims = vec![claim("error_ulp(\"c\") < error_ulp(\"a\")")];
    let said = headline(&records);
    assert_eq!(said[0], "- c is the most accurate: at most 0.500 ulp from the reference.");
    assert_eq!(said[1], "- The least accurate is a: 230 ulp at n = 2.");
    records.header.claims.push(claim("speedup(\"b\", \"a\") > 1"));
    assert!(headline(&records)[0].starts_with("- b is the fastest"), "{:?}", headline(&records));
}

#[test]
fn unstable_cases_are_named_and_the_worst_case_is_too() {
    let mut records = records([[2000.0, 1000.0, 4000.0], [2000.0, 1000.0, 8000.0]], Some("a"));
    records.cases[0].outcome = Outcome::Unstable { reached: 0.031 };
    records.cases[4].outcome = Outcome::Unstable { reached: 0.02 };
    records.cases[3].outcome = Outcome::Unstable { reached: 0.02 };
    let said = headline(&records);
    assert!(said.contains(&"- The slowest is c at n = 2, which takes 8.00 times as long as b.".to_owned()), "{said:?}");
    let last = "- Unstable: a (2 rows), b; intervals of up to ± 3.10 % of the median.";
    assert_eq!(said.last().map(String::as_str), Some(last));

    // The range of four samples covers the median with a probability of 1 − 2·2⁻⁴.
    records.cases[4].result.as_mut().unwrap().time.confidence = 0.875;
    let last =
        "- Unstable: a (2 rows), b; intervals of up to ± 3.10 % of the median, too few samples within the time limit.";
    assert_eq!(headline(&records).last().map(String::as_str), Some(last));
}

#[test]
fn where_most_steps_gain_the_largest_is_stated() {
    let records = records([[4000.0, 2000.0, 1000.0], [4000.0, 2000.0, 1000.0]], Some("a"));
    let said = headline(&records);
    let steps = said.iter().find(|line| line.contains("than the previous one")).unwrap();
    assert!(steps.starts_with("- 2 of 2 steps are faster than the previous one, most of all c 2.018×."), "{steps}");
}

#[test]
fn a_page_of_any_matrix_stays_below_the_size_that_is_rendered() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reports/reduce/nvidia-h100-80gb-hbm3/records.jsonl");
    let mut records = runner_results::journal::read_records(Path::new(path)).unwrap();
    let shipped = std::mem::take(&mut records.cases);
    let copy = |i: usize| {
        let mut record = shipped[i % shipped.len()].clone();
        record.case.ordinal = i as u64;
        let n = Value::Int(1000 + (i / 12) as i64);
        record.case.key.axes[0].1 = n.clone();
        record.case.group.0[0].1 = n;
        record
    };
    records.cases = (0..6_000).map(copy).collect();
    let size = |records: &Records| {
        let files = runner_report::files(records).unwrap();
        let (_, page) = files.into_iter().find(|(path, _)| path == Path::new("report.md")).unwrap();
        assert!(page.len() < 512 * 1024, "{} bytes", page.len());
        page
    };
    let page = size(&records);
    assert!(page.contains("of 500 groups are left out to keep this page small: results.csv has every row"));
    // One group of all cases, each of which failed for its own reason.
    for (i, record) in records.cases.iter_mut().enumerate() {
        record.case.group.0.clear();
        record.outcome = Outcome::Crashed { message: format!("for reason {i}") };
        record.result = None;
    }
    assert!(size(&records).contains("more rows have other reasons: see results.csv"));
}
