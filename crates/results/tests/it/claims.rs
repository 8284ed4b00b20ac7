//! Claims about results with known values and intervals.

use runner_results::analyse::{self, ClaimState, JudgedClaim};
use runner_types::{
    BackendKind, Claim, Counters, Event, GroupKey, Measurement, Note, Outcome, Regime, Round, Unit, Value,
};

use fixture::{Experiment, Run};

/// Seven samples: the median is the fourth, and the confidence interval is not empty.
const SPREAD: [f64; 7] = [70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0];

fn claim(text: &str) -> Claim {
    Claim { text: text.to_owned(), condition: None, regime: None, backend: None }
}

/// Two groups: `a` takes exactly 100 ns and 200 ns, `b` half of that, and the samples of `wide` vary.
fn run(claims: &[Claim]) -> Run {
    let experiment = Experiment {
        name: "claims",
        title: "Claims",
        question: "Which?",
        axes: &[("n", false)],
        variants: &["a", "b", "wide"],
        baseline: Some(("a", &[])),
        manifest: "",
    };
    let mut run = Run::new(&experiment, fixture::h100());
    run.header.claims = claims.to_vec();
    run.events.clear();
    run.start(fixture::h100());
    for (n, scale) in [(1, 1.0), (2, 2.0)] {
        measure(&mut run, "a", n, &[100.0 * scale; 7]);
        measure(&mut run, "b", n, &[50.0 * scale; 7]);
        measure(&mut run, "wide", n, &SPREAD.map(|sample| sample * scale));
    }
    run.finish(true);
    run
}

/// A case of 1000 bytes with these samples, and with `n` sectors.
fn measure(run: &mut Run, variant: &str, n: i64, samples: &[f64]) {
    let case = run.case(variant, &[("n", Value::Int(n))]);
    run.checked(&case, Vec::new());
    let rounds = samples.iter().enumerate();
    let rounds = rounds.map(|(i, whole)| Round { round: i as u32, whole: *whole, ..Round::default() }).collect();
    let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds);
    run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
    let counters = Counters([("gld_sectors".into(), n as f64)].into());
    run.events.push(Event::CaseCounted { case: case.clone(), counters, each: Vec::new(), lines: Vec::new() });
    run.settled(&case, Outcome::Measured, Some(1000));
}

fn judge(claim: Claim) -> JudgedClaim {
    let records = analyse::records(&run(&[claim]).events).unwrap();
    analyse::claims(&records).remove(0)
}

fn state(text: &str) -> ClaimState {
    judge(claim(text)).state
}

#[test]
fn exact_results_hold_or_break_a_claim_at_the_very_number() {
    // The samples have no spread, so the speedup is exactly 2.
    assert_eq!(state("speedup(\"b\", \"a\") >= 2"), ClaimState::Held);
    assert_eq!(state("speedup(\"b\", \"a\") > 2"), ClaimState::Broken);
    assert_eq!(state("speedup(\"a\", \"b\") == 0.5"), ClaimState::Held);
    assert_eq!(state("counter(\"gld_sectors\", \"a\") != 3"), ClaimState::Held);
    // 1000 bytes in 50 ns and in 100 ns are 20 and 10 GB/s; the peak memory bandwidth is 3352 GB/s.
    assert_eq!(state("bandwidth(\"b\") >= 10"), ClaimState::Held);
    assert_eq!(state("bandwidth(\"b\") >= 10.01"), ClaimState::Broken);
    assert_eq!(state("fraction_of_peak(\"b\") < 0.00597"), ClaimState::Held);
    // 0.1 µs and 0.2 µs.
    assert_eq!(state("time(\"a\") <= 0.2"), ClaimState::Held);
    assert_eq!(state("time(\"a\") - 2 * time(\"b\") == 0"), ClaimState::Held);
}

#[test]
fn an_interval_on_both_sides_of_the_number_decides_nothing() {
    assert_eq!(state("time(\"wide\") > 0.1"), ClaimState::Undecided);
    let first = |text: &str| Claim { condition: Some("n == 1".to_owned()), ..claim(text) };
    assert_eq!(judge(first("time(\"wide\") == 0.1")).state, ClaimState::Undecided);
    assert_eq!(state("time(\"wide\") > 0.01"), ClaimState::Held);
    assert_eq!(state("time(\"wide\") > 10"), ClaimState::Broken);
    // The divisor may be zero.
    assert_eq!(judge(first("1 / (time(\"wide\") - 0.1) > 0")).state, ClaimState::NotApplicable);
}

/// A claim stays undecided, whichever side of the number the point estimate is on.
#[test]
fn no_relation_is_decided_by_the_point_of_an_interval() {
    let first = |text: &str| judge(Claim { condition: Some("n == 1".to_owned()), ..claim(text) });
    let time = first("time(\"wide\") > 0").groups[0].left;
    assert!(time.low < time.point && time.point < time.high, "{time:?}");
    for number in [time.low.midpoint(time.point), time.point.midpoint(time.high)] {
        for relation in ["<", "<=", ">", ">=", "==", "!="] {
            let text = format!("time(\"wide\") {relation} {number}");
            assert_eq!(first(&text).state, ClaimState::Undecided, "{text} of {time:?}");
        }
    }
}

/// The groups have 1 and 2 sectors. If both break a claim, one is further off; if both hold it, one has less margin.
#[test]
fn the_group_that_decides_is_the_one_furthest_off_or_with_the_least_room() {
    let decisive = |text: &str| {
        let judged = judge(claim(text));
        (judged.state, judged.decisive().unwrap().left.point)
    };
    assert_eq!(decisive("counter(\"gld_sectors\", \"a\") < 1"), (ClaimState::Broken, 2.0));
    assert_eq!(decisive("counter(\"gld_sectors\", \"a\") < 4"), (ClaimState::Held, 2.0));
    assert_eq!(decisive("counter(\"gld_sectors\", \"a\") > 0"), (ClaimState::Held, 1.0));
    assert_eq!(decisive("counter(\"gld_sectors\", \"a\") > 2"), (ClaimState::Broken, 1.0));
}

#[test]
fn one_group_breaks_a_claim_and_is_shown() {
    let judged = judge(claim("counter(\"gld_sectors\", \"a\") == 1"));
    assert_eq!((judged.state, judged.count(), judged.groups.len()), (ClaimState::Broken, 1, 2));
    let group = judged.decisive().unwrap();
    assert_eq!(group.key, GroupKey(vec![("n".to_owned(), Value::Int(2))]));
    assert_eq!((group.left.point, group.regime), (2.0, None));
}

#[test]
fn a_condition_chooses_the_groups() {
    let only = |condition: &str| Claim {
        condition: Some(condition.to_owned()),
        ..claim("counter(\"gld_sectors\", \"a\") == 1")
    };
    assert_eq!(judge(only("n < 2")).state, ClaimState::Held);
    assert_eq!(judge(only("n >= 2")).state, ClaimState::Broken);
    let none = judge(only("n > 5"));
    assert_eq!((none.state, none.unjudged[0].0.as_str()), (ClaimState::NotApplicable, "no group matches its `where`"));
}

#[test]
fn what_a_run_cannot_judge_is_not_applicable_with_its_reason() {
    for (text, why) in [
        ("counter(\"gst_sectors\", \"a\") == 0", "rerun with `--counters` for `gst_sectors`"),
        ("error_ulp(\"a\") < 1", "no error was recorded for `a`: set `error = true` in [check]"),
        ("speedup(\"c\", \"a\") > 1", "`c` was not run"),
        ("time(\"a\") +", "it cannot be parsed"),
    ] {
        let judged = judge(claim(text));
        assert_eq!(judged.state, ClaimState::NotApplicable, "{text}");
        assert!(judged.unjudged[0].0.starts_with(why), "{text}: {:?}", judged.unjudged);
    }
    let elsewhere = Claim { backend: Some(BackendKind::Sim), ..claim("time(\"a\") > 0") };
    assert_eq!(judge(elsewhere).unjudged[0].0, "it applies to `--backend sim` only");
    let regime = Claim { regime: Some(Regime::Warm), ..claim("time(\"a\") > 0") };
    assert_eq!(judge(regime).unjudged[0].0, "`a` was not timed");
}

#[test]
fn counts_of_a_sample_of_the_blocks_judge_no_claim() {
    let mut run = run(&[claim("counter(\"gld_sectors\", \"a\") == 1")]);
    let case = run.case("a", &[("n", Value::Int(1))]);
    run.events.push(Event::CaseNote { case, note: Note::Sampled { ran: 256, of: 1000 } });
    let judged = analyse::claims(&analyse::records(&run.events).unwrap()).remove(0);
    let why = "counts of `a` are estimates: only a sample of its blocks ran";
    assert!(judged.unjudged.iter().any(|(reason, _)| reason == why), "{:?}", judged.unjudged);
}

#[test]
fn the_report_says_first_which_claims_are_broken() {
    let claims = [
        claim("speedup(\"b\", \"a\") >= 2"),
        claim("time(\"wide\") > 0.1"),
        Claim { condition: Some("n > 1".to_owned()), ..claim("counter(\"gld_sectors\", \"a\") == 1") },
        claim("error_ulp(\"a\") < 1"),
        claim("error_ulp(\"a\") < 2"),
    ];
    let records = analyse::records(&run(&claims).events).unwrap();
    let files = runner_report::files(&records).unwrap();
    let (_, report) = files.last().unwrap();
    let lines: Vec<&str> = report.lines().skip_while(|line| !line.starts_with("**Claims:**")).take(7).collect();
    assert_eq!(lines[0], "**Claims:** 1 broken, 1 undecided, 1 held, 2 not judged.");
    assert_eq!(lines[2], "- ✗ **broken**: `counter(\"gld_sectors\", \"a\") == 1` where `n > 1`: 2");
    assert!(
        lines[3].starts_with("- ? undecided: `time(\"wide\") > 0.1`: in 1 of 2 groups: 0.100 (0.0"),
        "{}",
        lines[3]
    );
    assert_eq!(lines[4], "- ✓ held: `speedup(\"b\", \"a\") >= 2`: in all 2 groups; closest: 2 at n = 1, cold");
    let why = "no error was recorded for `a`: set `error = true` in [check]";
    let why = why.replace('[', "\\[").replace(']', "\\]");
    assert_eq!(lines[5], format!("- – not judged ({why}): `error_ulp(\"a\") < 1`, `error_ulp(\"a\") < 2`"));
}

#[test]
fn claims_survive_the_records() {
    let records = analyse::records(&run(&[claim("speedup(\"b\", \"a\") >= 2")]).events).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &records);
    let again = runner_results::journal::read_records(&dir.path().join("records.jsonl")).unwrap();
    assert_eq!(analyse::claims(&again), analyse::claims(&records));
}
