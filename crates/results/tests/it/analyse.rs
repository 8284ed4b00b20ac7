//! Estimates and ratios compared with numbers computed by hand, and the outcome of every planned case.

use runner_results::analyse::{self, BaselineState, Bound, bound, intensity, share_of_roof};
use runner_types::{
    Case, CaseRecord, Ceilings, Estimate, Event, Measurement, Outcome, Records, Regime, Roof, Round, RunHeader, Spread,
    Unit, Value, Verdict, WorkAmount,
};

use fixture::{Experiment, Run};

/// Three variants over one axis.
fn run() -> Run {
    let experiment = Experiment {
        name: "steps",
        title: "Steps",
        question: "Which?",
        axes: &[("n", false)],
        variants: &["a", "b", "c"],
        baseline: Some(("a", &[])),
        manifest: "",
    };
    Run::new(&experiment, fixture::h100())
}

fn at(n: i64) -> [(&'static str, Value); 1] {
    [("n", Value::Int(n))]
}

/// Checks, measures and settles a case with these samples, one per round.
fn measure(run: &mut Run, case: &Case, unit: Unit, samples: &[f64]) {
    run.checked(case, Vec::new());
    let rounds = samples.iter().enumerate();
    let rounds = rounds.map(|(i, whole)| Round { round: i as u32, whole: *whole, ..Round::default() }).collect();
    let measurement = Measurement::from_rounds(Regime::Cold, unit, rounds);
    run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
    run.settled(case, Outcome::Measured, None);
}

fn records(run: &Run) -> Records {
    analyse::records(&run.events).unwrap()
}

fn find<'a>(records: &'a Records, variant: &str) -> &'a CaseRecord {
    records.cases.iter().find(|r| r.case.key.variant == variant).unwrap()
}

const RAMP: [f64; 9] = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0];

/// Lower end of the confidence interval of [`RAMP`]. Of nine samples, the second and the second to last cover 492/512,
/// the third and the third to last 420/512. By Hettmansperger and Sheather, the end lies 7 I / (2 + 5 I) of the way
/// from the second sample to the third, with I = (492 − 0.95 · 512) / 72.
const LOW: f64 = 222.790_697_674_418_6;
const HIGH: f64 = 1000.0 - LOW;

fn is_near(found: (f64, f64, f64), expected: (f64, f64, f64)) -> bool {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    near(found.0, expected.0) && near(found.1, expected.1) && near(found.2, expected.2)
}

#[test]
fn the_time_is_the_median_and_its_interval_lies_between_two_order_statistics() {
    let mut run = run();
    let case = run.case("a", &at(1));
    measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP);
    let records = records(&run);
    let result = find(&records, "a").result.clone().unwrap();
    assert!(is_near((result.time.point, result.time.low, result.time.high), (500.0, LOW, HIGH)), "{:?}", result.time);
    assert_eq!((result.time.confidence, result.samples), (0.95, 9));
}

#[test]
fn a_ratio_within_rounds_is_blind_to_what_drifts_between_them() {
    let mut run = run();
    for (variant, factor) in [("a", 1.0), ("b", 0.5), ("c", 0.25)] {
        let case = run.case(variant, &at(1));
        measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP.map(|s| s * factor));
    }
    let records = records(&run);
    let c = find(&records, "c").result.as_ref().unwrap();
    let (base, step) = (c.against_baseline.as_ref().unwrap(), c.against_previous.as_ref().unwrap());
    // The samples drift by a factor of nine, yet both ratios are exact.
    assert!(is_near((base.speedup.point, base.speedup.low, base.speedup.high), (4.0, 4.0, 4.0)), "{base:?}");
    assert!(is_near((step.speedup.point, step.speedup.low, step.speedup.high), (2.0, 2.0, 2.0)), "{step:?}");
    assert_eq!(step.against, "b");
    assert_eq!(find(&records, "a").result.as_ref().unwrap().against_baseline, None);
}

#[test]
fn the_step_before_is_shown_where_there_are_steps_from_a_baseline() {
    let mut run = run();
    for variant in ["a", "b"] {
        let case = run.case(variant, &at(1));
        measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP);
    }
    let changed = |change: fn(&mut RunHeader)| {
        let mut events = run.events.clone();
        for event in &mut events {
            if let Event::RunStarted { header, .. } = event {
                change(header);
            }
        }
        analyse::records(&events).unwrap()
    };
    let step = |records: &Records| find(records, "b").result.as_ref().unwrap().against_previous.is_some();
    let told = |records: &Records| {
        let files = runner_report::files(records).unwrap();
        let text = |name: &str| files.iter().find(|(path, _)| path.ends_with(name)).unwrap().1.as_str();
        let table = text("results.csv");
        let place = table.lines().next().unwrap().split(',').position(|name| name == "step_speedup_against").unwrap();
        let is_in_table = table.lines().skip(1).any(|line| line.split(',').nth(place) == Some("a"));
        assert_eq!(is_in_table, text("report.md").contains("× step before"));
        assert_eq!(records.header.baseline.is_some(), text("report.md").contains("A speedup is"));
        is_in_table
    };
    let steps = changed(|_| ());
    assert!(step(&steps) && told(&steps));
    for change in [|header: &mut RunHeader| header.steps = false, |header: &mut RunHeader| header.baseline = None] {
        let records = changed(change);
        assert!(!step(&records) && !told(&records));
        // The ratio is not shown either if records of an earlier version contain it.
        let mut earlier = steps.clone();
        change(&mut earlier.header);
        earlier.cases.iter_mut().flat_map(|case| &mut case.result).for_each(|result| result.against_baseline = None);
        assert!(step(&earlier) && !told(&earlier));
    }
}

#[test]
fn different_clocks_are_compared_by_medians_with_the_extremes_of_both() {
    let mut run = run();
    let device = run.case("a", &at(1));
    measure(&mut run, &device, Unit::DeviceNanoseconds, &RAMP);
    let host = run.case("b", &at(1));
    measure(&mut run, &host, Unit::HostNanoseconds, &RAMP.map(|s| s * 10.0));
    let last = run.case("c", &at(1));
    measure(&mut run, &last, Unit::DeviceNanoseconds, &RAMP);
    let records = records(&run);
    let ratio = find(&records, "b").result.as_ref().unwrap().against_baseline.clone().unwrap().speedup;
    assert!(is_near((ratio.point, ratio.low, ratio.high), (0.1, LOW / HIGH / 10.0, HIGH / LOW / 10.0)), "{ratio:?}");
    assert!((ratio.confidence - 0.9).abs() < 1e-12);
    // The variant timed with the host's clock is not a step: c is compared with a.
    assert_eq!(find(&records, "b").result.as_ref().unwrap().against_previous, None);
    assert_eq!(find(&records, "c").result.as_ref().unwrap().against_previous.as_ref().unwrap().against, "a");
    // The variant timed with the host's clock cannot win either.
    assert_eq!(analyse::summary(&records).groups[0].best[0].tied, [2]);
}

#[test]
fn too_few_samples_admit_what_their_range_is_worth() {
    let mut run = run();
    for (variant, samples) in [("a", [4.0, 5.0, 6.0]), ("b", [1.0, 2.0, 3.0])] {
        let case = run.case(variant, &at(1));
        measure(&mut run, &case, Unit::DeviceNanoseconds, &samples);
    }
    let records = records(&run);
    let b = find(&records, "b").result.clone().unwrap();
    assert_eq!((b.time.low, b.time.high, b.time.confidence), (1.0, 3.0, 0.75));
    let ratio = b.against_baseline.unwrap().speedup;
    assert_eq!((ratio.point, ratio.low, ratio.high, ratio.confidence), (2.5, 4.0 / 3.0, 6.0, 0.5));
}

#[test]
fn samples_of_different_sessions_are_not_paired() {
    let mut run = run();
    let a = run.case("a", &at(1));
    measure(&mut run, &a, Unit::DeviceNanoseconds, &RAMP);
    run.events.push(Event::GroupStarted { ordinal: 0, key: a.group.clone(), cases: 2 });
    let b = run.case("b", &at(1));
    measure(&mut run, &b, Unit::DeviceNanoseconds, &RAMP.map(|s| s / 2.0));
    let ratio = find(&records(&run), "b").result.clone().unwrap().against_baseline.unwrap().speedup;
    assert!(is_near((ratio.point, ratio.low, ratio.high), (2.0, 2.0 * LOW / HIGH, 2.0 * HIGH / LOW)), "{ratio:?}");
}

#[test]
fn groups_that_run_side_by_side_keep_their_rounds() {
    let mut run = run();
    let [a, b] = ["a", "b"].map(|v| run.case(v, &at(1)));
    let other = run.case("a", &at(2));
    run.events.push(Event::GroupStarted { ordinal: 0, key: a.group.clone(), cases: 2 });
    measure(&mut run, &a, Unit::DeviceNanoseconds, &RAMP);
    run.events.push(Event::GroupStarted { ordinal: 1, key: other.group.clone(), cases: 1 });
    measure(&mut run, &b, Unit::DeviceNanoseconds, &RAMP.map(|s| s / 2.0));
    let ratio = find(&records(&run), "b").result.clone().unwrap().against_baseline.unwrap().speedup;
    assert_eq!((ratio.point, ratio.low, ratio.high), (2.0, 2.0, 2.0));
}

#[test]
fn every_planned_case_has_a_record_in_the_manifests_order_whatever_became_of_the_run() {
    let mut run = run();
    let cases: Vec<Case> = ["a", "b", "c"].map(|v| run.case(v, &at(1))).into();
    run.events.push(Event::CasesPlanned { todo: cases.clone(), held: Vec::new() });
    measure(&mut run, &cases[2], Unit::DeviceNanoseconds, &RAMP);
    run.checked(&cases[1], vec![fixture::launch("k", cases_grid(), cases_grid(), 8)]);
    let records = records(&run);
    let outcomes: Vec<(&str, String)> = records
        .cases
        .iter()
        .map(|r| {
            let why = if let Outcome::NotRun { why, .. } = &r.outcome { why.clone() } else { String::new() };
            (r.outcome.name(), why)
        })
        .collect();
    let expected = [
        ("not_run", "the run ended before this case".to_owned()),
        ("not_run", "the run ended while it was measured".to_owned()),
        ("measured", String::new()),
    ];
    assert_eq!(outcomes, expected);
    assert!(!records.header.complete);
}

fn cases_grid() -> runner_types::Dim3 {
    runner_types::Dim3::new(4, 1, 1)
}

#[test]
fn a_run_is_complete_only_if_it_ended_and_left_no_case_out() {
    let mut run = run();
    let case = run.case("a", &at(1));
    measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP);
    assert!(!records(&run).header.complete);
    run.finish(true);
    assert!(records(&run).header.complete);
    let late = run.case("b", &at(1));
    run.settled(&late, Outcome::not_run("the deadline"), None);
    assert!(!records(&run).header.complete);
}

#[test]
fn a_case_found_wrong_after_timing_has_no_measurement() {
    let mut run = run();
    let case = run.case("a", &at(1));
    run.checked(&case, Vec::new());
    run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, 500.0, &[]);
    run.settled(&case, Outcome::Wrong { mismatch: fixture::mismatch() }, None);
    let records = records(&run);
    assert_eq!(find(&records, "a").result, None);
    assert_eq!(find(&records, "a").verdict, Verdict::Mismatch(fixture::mismatch()));
}

#[test]
fn resuming_keeps_what_is_held_voids_what_is_planned_again_and_forgets_what_left_the_manifest() {
    let mut run = run();
    let [kept, again, gone] = ["a", "b", "c"].map(|v| run.case(v, &at(1)));
    for case in [&kept, &again, &gone] {
        measure(&mut run, case, Unit::DeviceNanoseconds, &RAMP);
    }
    run.start(fixture::h100());
    // In the current manifest, the kept case comes second.
    let moved = Case { ordinal: 1, ..kept };
    run.events.push(Event::CasesPlanned { todo: vec![Case { ordinal: 0, ..again }], held: vec![moved] });
    let names: Vec<(String, &str)> =
        records(&run).cases.iter().map(|r| (r.case.key.variant.clone(), r.outcome.name())).collect();
    assert_eq!(names, [("b".to_owned(), "not_run"), ("a".to_owned(), "measured")]);
}

#[test]
fn a_group_that_starts_again_forgets_the_unsettled_half_of_its_first_attempt() {
    let mut run = run();
    let case = run.case("a", &at(1));
    let start = Event::GroupStarted { ordinal: 0, key: case.group.clone(), cases: 1 };
    run.events.push(start.clone());
    run.checked(&case, Vec::new());
    run.measured(&case, Regime::Warm, Unit::DeviceNanoseconds, 900.0, &[]);
    run.events.push(start);
    measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP);
    let regimes: Vec<Regime> = records(&run).cases.iter().map(|r| r.result.as_ref().unwrap().regime).collect();
    assert_eq!(regimes, [Regime::Cold]);
}

#[test]
fn each_regime_has_a_record_and_is_compared_with_its_like() {
    let mut run = run();
    for (variant, cold, warm) in [("a", 800.0, 400.0), ("b", 400.0, 100.0)] {
        let case = run.case(variant, &at(1));
        run.checked(&case, Vec::new());
        for (regime, time) in [(Regime::Warm, warm), (Regime::Cold, cold)] {
            let rounds = (0..9).map(|round| Round { round, whole: time, ..Round::default() }).collect();
            let measurement = Measurement::from_rounds(regime, Unit::DeviceNanoseconds, rounds);
            run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
        }
        run.settled(&case, Outcome::Measured, None);
    }
    let records = records(&run);
    let speedups: Vec<(Regime, Option<f64>)> = records
        .cases
        .iter()
        .filter_map(|r| r.result.as_ref())
        .map(|r| (r.regime, r.against_baseline.as_ref().map(|ratio| ratio.speedup.point)))
        .collect();
    let expected = [(Regime::Cold, None), (Regime::Warm, None), (Regime::Cold, Some(2.0)), (Regime::Warm, Some(4.0))];
    assert_eq!(speedups, expected);
    assert_eq!(analyse::summary(&records).cases, 2);
}

/// The ratio of the medians is 4000 / 1500; the ratios within rounds are 4, 4000 / 1500 and 4.
#[test]
fn a_case_that_ran_alone_is_compared_by_medians() {
    for alone in [false, true] {
        let mut run = run();
        for (variant, times) in [("a", [2000.0, 4000.0, 8000.0]), ("b", [500.0, 1500.0, 2000.0])] {
            let case = run.case(variant, &at(1));
            run.checked(&case, Vec::new());
            let sample = |round: u32| Round { round, whole: times[round as usize % 3], ..Round::default() };
            let rounds = (0..9).map(sample).collect();
            let alone = alone && variant == "b";
            let measurement =
                Measurement { alone, ..Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds) };
            run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
            run.settled(&case, Outcome::Measured, None);
        }
        let speedup = find(&records(&run), "b").result.clone().unwrap().against_baseline.unwrap().speedup;
        let by_medians = 4000.0 / 1500.0;
        assert_eq!((speedup.point / by_medians - 1.0).abs() < 1e-9, alone, "{speedup:?}");
        assert_eq!(speedup.confidence < 0.95, alone, "{speedup:?}");
    }
}

/// `a` and `b` take 4000 and 1000 ns in each of nine rounds, on a machine whose processes differ by 30 ns and 0.1 %.
fn where_processes_differ(regime: Regime, launches: u32, unit: Unit) -> Option<Estimate> {
    let mut run = run();
    let Event::RunStarted { environment, .. } = &mut run.events[0] else { panic!("a run starts") };
    environment.machine.spread = Some(Spread { nanoseconds: 30.0, relative: 0.001, processes: 5 });
    for (variant, time) in [("a", 4000.0), ("b", 1000.0)] {
        let case = run.case(variant, &at(1));
        run.checked(&case, Vec::new());
        let rounds = (0..9).map(|round| Round { round, whole: time, ..Round::default() }).collect();
        let measurement = Measurement { launches, ..Measurement::from_rounds(regime, unit, rounds) };
        run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
        run.settled(&case, Outcome::Measured, None);
    }
    let ratio = find(&records(&run), "b").result.clone().unwrap().against_baseline.unwrap();
    assert!(is_near((ratio.speedup.point, ratio.speedup.low, ratio.speedup.high), (4.0, 4.0, 4.0)), "{ratio:?}");
    ratio.reproducible
}

/// In a cold run, 30 ns are 0.75 % and 3 % of the times. Together with 0.1 % each, this is 0.756 637 % and 3.001 666 %,
/// combined 3.095 567 %. The factor is the exponential of 1.959 964 times that, 1.062 550.
#[test]
fn a_speedup_reaches_as_far_as_processes_differ() {
    let wide = where_processes_differ(Regime::Cold, 32, Unit::DeviceNanoseconds).unwrap();
    let factor = 1.062_550;
    assert!((wide.low * factor / 4.0 - 1.0).abs() < 1e-6 && (wide.high / factor / 4.0 - 1.0).abs() < 1e-6, "{wide:?}");
    assert_eq!((wide.point, wide.confidence), (4.0, 0.95));
}

/// Divided by 32 runs, 30 ns are 0.023 4375 % and 0.093 75 %. Together with 0.1 % each, this is 0.102 710 % and 0.137
/// 073 %, combined 0.171 285 %.
#[test]
fn events_around_many_runs_share_what_processes_differ_by() {
    let wide = where_processes_differ(Regime::Warm, 32, Unit::DeviceNanoseconds).unwrap();
    assert!((wide.high / 4.0 - 1.003_363).abs() < 1e-6, "{wide:?}");
}

#[test]
fn how_far_the_hosts_times_of_processes_differ_is_unknown() {
    assert_eq!(where_processes_differ(Regime::Cold, 1, Unit::HostNanoseconds), None);
}

#[test]
fn each_launch_of_a_sequence_has_its_own_estimate() {
    let mut run = run();
    let case = run.case("a", &at(1));
    let rounds = (1..=9).map(|i| {
        let first = f64::from(i) * 10.0;
        Round { round: i, whole: first + 5.0, each: vec![first, 5.0], ..Round::default() }
    });
    let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds.collect());
    run.checked(&case, Vec::new());
    run.events.push(Event::CaseMeasured { case: case.clone(), measurement });
    run.settled(&case, Outcome::Measured, None);
    let each = find(&records(&run), "a").result.clone().unwrap().each;
    let shown: Vec<(f64, f64, f64)> = each.iter().map(|e| (e.point, e.low, e.high)).collect();
    assert!(is_near(shown[0], (50.0, LOW / 10.0, HIGH / 10.0)), "{shown:?}");
    assert_eq!(shown[1..], [(5.0, 5.0, 5.0)]);
}

#[test]
fn the_summary_counts_wins_and_takes_the_geometric_mean_over_groups() {
    let mut run = run();
    // b is 2 and 8 times as fast as a; c is faster than b in the first group only.
    for (n, times) in [(1, [800.0, 400.0, 200.0]), (2, [800.0, 100.0, 200.0])] {
        for (variant, time) in ["a", "b", "c"].iter().zip(times) {
            let case = run.case(variant, &at(n));
            measure(&mut run, &case, Unit::DeviceNanoseconds, &[time; 9]);
        }
    }
    let summary = analyse::summary(&records(&run));
    let b = summary.standings.iter().find(|s| s.contender == "b").unwrap();
    let range = b.speedup.unwrap();
    assert!((range.geomean.point - 4.0).abs() < 1e-12);
    assert!(is_near((range.least, range.greatest, 1.0), (2.0, 8.0, 1.0)), "{range:?}");
    assert_eq!((range.groups, b.alone, b.tied), (2, 1, 0));
    assert_eq!(summary.standings.iter().map(|s| s.alone).collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn a_group_says_what_became_of_its_baseline() {
    let faults = analyse::summary(&records(&fixture::faults()));
    assert_eq!(faults.groups[0].baseline, BaselineState::Failed(2));
    let mut run = run();
    let case = run.case("b", &at(1));
    measure(&mut run, &case, Unit::DeviceNanoseconds, &RAMP);
    assert_eq!(analyse::summary(&records(&run)).groups[0].baseline, BaselineState::Absent);
}

#[test]
fn events_without_a_run_have_no_records() {
    let error = analyse::records(&[]).unwrap_err().to_string();
    assert!(error.contains("has no run"), "{error}");
}

/// Ceilings in round numbers: the ridge point is 20 operations per byte.
const CEILINGS: Ceilings =
    Ceilings { read: 3e12, write: None, copy: 2.5e12, l2_read: 6e12, fma_f32: 60e12, fma_f64: 30e12, fma_f16: 120e12 };

fn work(bytes: u64, flops: f64) -> WorkAmount {
    WorkAmount { bytes: Some(bytes), flops: Some(flops) }
}

fn exactly(nanoseconds: f64) -> Estimate {
    Estimate { point: nanoseconds, low: nanoseconds, high: nanoseconds, confidence: 0.95 }
}

#[test]
fn the_ridge_divides_what_memory_bounds_from_what_arithmetic_does() {
    assert_eq!(intensity(&work(4, 1.0)), Some(0.25));
    assert_eq!(bound(&work(1000, 19_000.0), &CEILINGS), Some(Bound::Memory));
    assert_eq!(bound(&work(1000, 21_000.0), &CEILINGS), Some(Bound::Arithmetic));
    assert_eq!(bound(&WorkAmount { bytes: Some(1000), flops: None }, &CEILINGS), None);
}

/// 3 GB at 3 TB/s take 1 ms; 120 billion operations at 60 TFLOP/s take 2 ms. Taking 4 ms, they reach a quarter and a
/// half of the roof.
#[test]
fn the_share_of_the_roof_is_the_least_time_over_the_time_taken() {
    let share = |work: WorkAmount, unit| share_of_roof(&work, &exactly(4e6), unit, &CEILINGS);
    let device = Unit::DeviceNanoseconds;
    assert_eq!(share(WorkAmount { bytes: Some(3_000_000_000), flops: None }, device), Some(0.25));
    assert_eq!(share(work(3_000_000_000, 120e9), device), Some(0.5));
    assert_eq!(share(work(3_000_000_000, 120e9), Unit::HostNanoseconds), None);
    assert_eq!(share(WorkAmount::default(), device), None);
}

/// Measures `a` at 100 µs and `b` at the given time, each with `bytes` of work, on a device whose ceilings may be
/// known.
fn timed_against_the_roof(bytes: u64, nanoseconds: f64, ceilings: Option<Ceilings>) -> Records {
    let mut run = run();
    if let Some(Event::RunStarted { environment, .. }) = run.events.first_mut() {
        environment.machine.ceilings = ceilings;
    }
    for (variant, time) in [("a", 100_000.0), ("b", nanoseconds)] {
        let case = run.case(variant, &at(1));
        run.checked(&case, Vec::new());
        run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, time, &[]);
        run.settled(&case, Outcome::Measured, Some(bytes));
    }
    run.finish(true);
    records(&run)
}

/// The data-sheet bandwidth is 3352 GB/s. L2 holds 52.4 MB of the 268.4 MB; the rest takes at least 64.4 µs.
#[test]
fn a_time_that_the_memory_cannot_reach_fails_its_row_and_gives_no_speedup() {
    let records = timed_against_the_roof(268_435_456, 50_000.0, None);
    let suspect = find(&records, "b");
    let Outcome::Suspect { nanoseconds, least, roof: Roof::Memory } = suspect.outcome else {
        panic!("{:?}", suspect.outcome)
    };
    assert!((nanoseconds / 50_000.0 - 1.0).abs() < 0.01, "{nanoseconds}");
    assert!((least - 64_438.0).abs() < 10.0, "{least}");
    assert!(suspect.outcome.is_failure() && suspect.result.is_none(), "{suspect:?}");
    assert_eq!(find(&records, "a").outcome, Outcome::Measured);
}

#[test]
fn a_time_that_the_memory_can_reach_with_a_full_cache_is_no_suspect() {
    assert_eq!(find(&timed_against_the_roof(268_435_456, 66_000.0, None), "b").outcome, Outcome::Measured);
    assert_eq!(find(&timed_against_the_roof(268_435_456, 66_000.0, Some(CEILINGS)), "b").outcome, Outcome::Measured);
    // 33.6 MB fit into L2, for which the data sheet states no bandwidth. With the known 6 TB/s each way, they take 2.8
    // µs.
    assert_eq!(find(&timed_against_the_roof(33_554_432, 1000.0, None), "b").outcome, Outcome::Measured);
    let records = timed_against_the_roof(33_554_432, 1000.0, Some(CEILINGS));
    assert!(matches!(find(&records, "b").outcome, Outcome::Suspect { roof: Roof::L2, .. }));
}
