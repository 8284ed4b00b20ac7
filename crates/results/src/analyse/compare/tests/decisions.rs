//! Decisions about times and counts, with intervals calculated by hand.

use super::fixture::{SPREAD, change, compared, counted, estimate, in_regime, launch, records, timed};
use crate::analyse::PairedRatio;
use crate::analyse::compare::time::paired;
use crate::analyse::compare::{CountedBy, DifferenceKind, Kind, LEAST_THRESHOLD, Options, Pair, Undecided, compare};
use runner_types::{BackendKind, CaseRecord, Dim3, Estimate, NoiseFloor, Note, Processes, Records, Regime, Spread};

const Z: f64 = 1.959_963_984_540_054;

fn threshold(percent: f64) -> Options {
    Options { threshold: Some(percent / 100.0), ..Options::default() }
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got} instead of {expected}");
}

/// Quantiles from tables have seven digits.
fn close_to_table(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-6, "{got} instead of {expected}");
}

/// Process error at 1 ms: √(5e-5² + 1e-3²) per side, √2 times that for the difference. Sample half-widths of 0.3 % and
/// 0.4 % combine to 0.5 %. One comparison needs no multiple-testing correction. A calibration has 4 degrees of freedom
/// per side. The total error, mostly from samples, has 144 degrees of freedom, hence the factor 1.976575 at 95 %.
#[test]
fn the_interval_adds_samples_and_processes_of_both_sides() {
    let found = change(timed(1, 1e6, 0.003), timed(1, 1.05e6, 0.004), &Options::default());
    let time = found.time.unwrap();
    let interval = time.interval.unwrap();
    let [of_base, of_new] = [1e6, 1.05e6].map(|ns| (SPREAD.nanoseconds / ns).hypot(SPREAD.relative));
    let half = 1.976_575 * (0.005 / Z).hypot(of_base.hypot(of_new));
    close_to_table(interval.low, 1.05 * (-half).exp());
    close_to_table(interval.high, 1.05 * half.exp());
    close(interval.confidence, 0.95);
    assert_eq!(found.kind, Kind::Slower);
}

/// Five launches have four gaps of 80 ns each, which add up as independent errors to 160 ns per side. With two streams,
/// a gap counts as 200 ns, and a library call as 300 ns in total. "Same" uses an interval of 90 %: 1.859548 standard
/// errors for eight degrees of freedom.
#[test]
fn the_gaps_between_launches_differ_from_process_to_process() {
    let mut streams = vec![launch(); 5];
    streams[4].stream = 1;
    for (launches, gaps) in [(vec![launch(); 5], 160.0), (streams, 400.0), (Vec::new(), 300.0)] {
        let case = CaseRecord { launches, ..timed(1, 20_000.0, 0.0) };
        let interval = change(case.clone(), case, &Options::default()).time.unwrap().interval.unwrap();
        let side = (SPREAD.nanoseconds / 20_000.0).hypot(SPREAD.relative).hypot(gaps / 20_000.0);
        close_to_table(interval.high, (1.859_548 * side * 2.0_f64.sqrt()).exp());
    }
}

/// Records of a device without variation between processes.
fn exact(cases: Vec<CaseRecord>) -> Records {
    let mut records = records(cases);
    records.environment.machine.spread = Some(Spread { nanoseconds: 0.0, relative: 0.0, processes: 5 });
    records
}

/// The base has a half-width of 1 % or 3 % at 95 %, and the threshold is 2 %: ln 1.02 = 0.019803.
#[test]
fn a_time_is_called_where_it_is_beyond_the_threshold_and_its_interval_leaves_out_no_change() {
    let kind = |half: f64, point: f64| {
        let (base, new) = (exact(vec![timed(1, 1e6, half)]), exact(vec![timed(1, 1e6 * point.exp(), 0.0)]));
        compared(&base, &new, &threshold(2.0)).changes().next().unwrap().kind
    };
    for (half, point, up, down) in [
        (0.01, 0.0199, Kind::Slower, Kind::Faster),
        (0.01, 0.0197, Kind::Same, Kind::Same),
        (0.03, 0.0301, Kind::Slower, Kind::Faster),
        (0.03, 0.0299, Kind::Ambiguous, Kind::Ambiguous),
        // The half-width at 90 % is 0.025178; twice the threshold is 0.039605.
        (0.03, 0.0143, Kind::Same, Kind::Same),
        (0.03, 0.0145, Kind::Ambiguous, Kind::Ambiguous),
    ] {
        assert_eq!((kind(half, point), kind(half, -point)), (up, down), "{half} {point}");
    }
}

#[test]
fn the_threshold_is_the_largest_of_half_a_percent_the_noise_and_what_processes_differ_by() {
    let threshold = |nanoseconds: f64, noise: f64| {
        let mut new = records(vec![timed(1, nanoseconds, 0.001)]);
        new.header.noise = vec![NoiseFloor { regime: Regime::Cold, width: noise, comparisons: 5 }];
        let base = records(vec![timed(1, nanoseconds, 0.001)]);
        compared(&base, &new, &Options::default()).changes().next().unwrap().time.clone().unwrap().threshold.unwrap()
    };
    close(threshold(1e6, 0.002), LEAST_THRESHOLD);
    close(threshold(1e6, 0.03), 0.03);
    // 50 ns are 2.5 % of 2 µs.
    close(threshold(2e3, 0.0), Z * std::f64::consts::SQRT_2 * 0.025_f64.hypot(0.001));
}

/// 5 % is clearly slower; 2.5 % is within the variation between GPUs of one model.
#[test]
fn between_two_gpus_of_a_model_less_than_three_percent_is_no_change() {
    let kind = |gpus: [Option<&str>; 2], factor: f64, options: &Options| {
        let report_of = |gpu: Option<&str>, nanoseconds: f64| {
            let mut records = records(vec![timed(1, nanoseconds, 0.0001)]);
            records.environment.machine.gpu = gpu.map(str::to_owned);
            records
        };
        let compared = compared(&report_of(gpus[0], 1e6), &report_of(gpus[1], 1e6 * factor), options);
        (compared.changes().next().unwrap().kind, compared.reports[0].may_be_two_gpus)
    };
    let (one, two, unknown) = ([Some("a"), Some("a")], [Some("a"), Some("b")], [None, None]);
    let own = Options::default();
    assert_eq!(kind(one, 1.025, &own), (Kind::Slower, false));
    assert_eq!(kind(two, 1.025, &own), (Kind::Same, true));
    assert_eq!(kind(unknown, 1.025, &own), (Kind::Same, true));
    assert_eq!(kind(two, 1.05, &own), (Kind::Slower, true));
    // A smaller threshold does not by itself make two GPUs comparable.
    assert_eq!(kind(two, 1.025, &threshold(1.0)).0, Kind::Same);
    assert_eq!(kind(one, 1.025, &threshold(1.0)).0, Kind::Slower);
    let as_one = Options { allow: vec![DifferenceKind::Gpu], ..threshold(1.0) };
    assert_eq!(kind(two, 1.025, &as_one).0, Kind::Slower);
}

#[test]
fn more_comparisons_need_more_confidence() {
    let report = |count: i64, factor: f64| {
        records((0..count).map(|n| timed(n, if n == 0 { 1e6 * factor } else { 1e6 }, 0.01)).collect())
    };
    let kind = |count: i64| {
        let (base, new) = (report(count, 1.0), report(count, 1.045));
        let comparison = compared(&base, &new, &Options::default());
        assert_eq!(comparison.tests, count as usize);
        comparison.changes().next().unwrap().kind
    };
    assert_eq!((kind(1), kind(1000)), (Kind::Slower, Kind::Slower));
    // The standard error is 0.735 %, so 2 % is 2.7 standard errors. One comparison needs 1.96, a thousand need 4.06.
    let narrow = |count: i64| {
        let (base, new) = (report(count, 1.0), report(count, 1.02));
        compared(&base, &new, &Options::default()).changes().next().unwrap().kind
    };
    assert_eq!((narrow(1), narrow(1000)), (Kind::Slower, Kind::Ambiguous));
}

/// Ten of twenty times changed by 2.2 standard errors, with a p-value of 0.028. For a single change, p must be below
/// 0.05 / 20; for ten together, below 10 · 0.05 / 20.
#[test]
fn many_changes_need_less_confidence_than_one() {
    let error = 0.01 / Z;
    let kinds = |changed: i64| {
        let base = exact((0..20).map(|n| timed(n, 1e6, 0.01)).collect());
        let factor = |n: i64| if n < changed { (2.25 * error).exp() } else { 1.0 };
        let new = exact((0..20).map(|n| timed(n, 1e6 * factor(n), 0.0)).collect());
        let compared = compared(&base, &new, &Options::default());
        compared.changes().filter(|change| change.kind == Kind::Slower).count()
    };
    assert_eq!((kinds(1), kinds(10)), (0, 10));
}

/// A time that is 3 % slower. Its standard error downwards is 1 % or 1.6 %, so no change is 3 or 1.9 standard errors
/// away.
#[test]
fn the_side_of_an_interval_that_faces_no_change_decides() {
    let kind = |[below, above]: [f64; 2]| {
        let point = 1e6 * 0.03_f64.exp();
        let time =
            Estimate { point, low: point * (-Z * below).exp(), high: point * (Z * above).exp(), confidence: 0.95 };
        let slower = in_regime(super::fixture::case(1), Regime::Cold, time);
        compared(&exact(vec![timed(1, 1e6, 0.0)]), &exact(vec![slower]), &Options::default())
            .changes()
            .next()
            .unwrap()
            .kind
    };
    assert_eq!((kind([0.01, 0.016]), kind([0.016, 0.01])), (Kind::Slower, Kind::Ambiguous));
}

/// A time from five processes whose medians have this standard deviation.
fn of_five(n: i64, nanoseconds: f64, deviation: f64) -> CaseRecord {
    let mut case = timed(n, nanoseconds, 0.0);
    if let Some(result) = &mut case.result {
        result.processes = Some(Processes { count: 5, deviation });
    }
    case
}

/// The calibration states 50 ns and 0.1 %, together 1.005 % of 5 µs. With one process per side, the ratio's standard
/// error is 1.42 %, times 2.306 at 95 %. With five processes that vary by 0.5 %, the variance (in %²) is (1.01 + 0.25)
/// / 2 / 5 per side: a standard error of 0.502 %, times 2.120 for 16 degrees of freedom.
#[test]
fn several_processes_find_a_change_of_two_percent_in_five_microseconds() {
    let (one, five) = (timed(1, 5e3, 0.0), of_five(1, 5e3, 0.005));
    // 1.96 standard errors are 2.8 %, the smallest change that one process can detect.
    assert_eq!(change(one, timed(1, 5.1e3, 0.0), &Options::default()).kind, Kind::Same);
    let found = change(five, of_five(1, 5.1e3, 0.005), &Options::default());
    assert_eq!(found.kind, Kind::Slower);
    let interval = found.time.unwrap().interval.unwrap();
    let of = |nanoseconds: f64| ((50.0 / nanoseconds).powi(2) + 1e-6 + 2.5e-5) / 10.0;
    close_to_table(interval.high / 1.02, (2.119_905 * (of(5e3) + of(5.1e3)).sqrt()).exp());
}

/// Fifty rows whose five processes vary by a quarter of the stated deviation. For five values, the median sample
/// variance is (1 − 2 / 36)³ = 0.842 of the true one. The estimate from a hundred such values, with four degrees of
/// freedom each, may be too low by 1.645 / √800.
#[test]
fn processes_of_the_runs_say_how_much_processes_differ() {
    let deviation = 0.25 * (50.0_f64 / 5e3).hypot(0.001);
    let report = |shift: f64| records((0..50).map(|n| of_five(n, 5e3 * shift, deviation)).collect());
    let found = compared(&report(1.0), &report(1.0), &Options::default());
    let interval = found.changes().next().unwrap().time.clone().unwrap().interval.unwrap();
    let scaled = deviation / (1.0 - 2.0 / 36.0_f64).powf(1.5) * (1.0 + 1.644_854 / 800.0_f64.sqrt());
    let variance = f64::midpoint(scaled.powi(2), deviation.powi(2)) / 5.0;
    close_to_table(interval.high, (1.745_884 * (2.0 * variance).sqrt()).exp());
    // All rows have unchanged code and are 1 % slower. The processes of each side show that this is not noise.
    assert!(compared(&report(1.0), &report(1.01), &Options::default()).changes().all(|row| row.kind == Kind::Slower));
}

/// Times from the same rounds that clearly differ by 3 % are a change, unless the run's A/A control differs by as much.
#[test]
fn the_noise_of_a_run_is_a_threshold_for_times_of_its_rounds() {
    let sides = [timed(1, 1e6, 0.0), timed(1, 1.03e6, 0.0)];
    let threshold = |noise: Option<f64>| {
        let speedup = Estimate { point: 1.0 / 1.03, low: 0.9708, high: 0.9709, confidence: 0.95 };
        let (_, evidence) =
            paired([&sides[0], &sides[1]], &PairedRatio { speedup, noise }, &Options::default()).unwrap();
        evidence.unwrap().threshold()
    };
    for (noise, expected) in [(None, LEAST_THRESHOLD), (Some(0.002), LEAST_THRESHOLD), (Some(0.04), 0.04)] {
        close(threshold(noise), expected);
    }
}

/// Host times vary by 14 % between processes, so the ratio of two has a standard error of 19.8 %.
#[test]
fn times_of_the_host_are_judged_by_how_much_hosts_differ() {
    let host = |nanoseconds: f64| in_regime(super::fixture::case(1), Regime::Host, estimate(nanoseconds, 0.001));
    let kind = |factor: f64, options: &Options| change(host(1e6), host(1e6 * factor), options).kind;
    assert_eq!(kind(29.0, &Options::default()), Kind::Slower);
    assert_eq!(kind(1.0 / 29.0, &Options::default()), Kind::Faster);
    // With eight degrees of freedom, 95 % is 2.306 standard errors: a factor of 1.58.
    assert_eq!((kind(1.5, &Options::default()), kind(1.6, &Options::default())), (Kind::Ambiguous, Kind::Slower));
    // The medians differ by more than the threshold, but that is not enough.
    assert_eq!(kind(1.4, &threshold(5.0)), Kind::Ambiguous);
    assert_eq!(kind(2.0, &threshold(5.0)), Kind::Slower);
    // A time that may have changed by 50 % is not called the same.
    assert_eq!(kind(1.0001, &Options::default()), Kind::Ambiguous);
    // Equal values come from a copy.
    assert_eq!(kind(1.0, &Options::default()), Kind::Same);
}

/// A single sample has no interval, so it cannot be judged whether its time changed; but a copy has no change.
#[test]
fn a_time_without_an_interval_is_the_same_as_its_copy() {
    let sample = |nanoseconds: f64| {
        let mut record = timed(1, nanoseconds, 0.0);
        record.result.as_mut().unwrap().time.confidence = 0.0;
        record
    };
    let kind = |new: f64| change(sample(1e6), sample(new), &Options::default()).kind;
    assert_eq!((kind(1e6), kind(1.000_1e6)), (Kind::Same, Kind::Ambiguous));
}

/// 200 ns and 0.3 % are assumed for each side.
#[test]
fn a_device_that_is_not_calibrated_is_assumed_to_differ_more() {
    let uncalibrated = |nanoseconds| {
        let mut records = records(vec![timed(1, nanoseconds, 0.001)]);
        records.environment.machine.spread = None;
        records
    };
    let found = |base: f64, new: f64| {
        let compared = compared(&uncalibrated(base), &uncalibrated(new), &Options::default());
        let change = compared.changes().next().unwrap();
        (change.kind, change.time.as_ref().unwrap().threshold.unwrap())
    };
    assert_eq!(found(1e6, 2e6).0, Kind::Slower);
    assert_eq!(found(1e6, 1.005e6).0, Kind::Same);
    let (kind, threshold) = found(4e3, 4e3 + 1e-7);
    assert_eq!(kind, Kind::Ambiguous);
    close(threshold, Z * std::f64::consts::SQRT_2 * 0.05_f64.hypot(0.003));
}

/// Kernels of 4 µs with unchanged code differ by 5 ns, although the calibration allows 50 ns between processes. One
/// with changed source is 5 % slower.
#[test]
fn rows_of_unchanged_code_say_how_much_these_processes_differ() {
    let report = |controls: i64, shift: f64, changed: f64| {
        let mut cases: Vec<CaseRecord> =
            (0..controls).map(|n| timed(n, 4e3 + shift * if n % 2 == 0 { 1.0 } else { -1.0 }, 0.0001)).collect();
        cases.push(timed(1000, changed, 0.0001));
        records(cases)
    };
    let last = |controls: i64, factor: f64| {
        let (base, mut new) = (report(controls, 0.0, 4e3), report(controls, 5.0, 4e3 * factor));
        let changed = new.cases.last_mut().unwrap();
        "another".clone_into(&mut changed.hashes.as_mut().unwrap().source);
        let compared = compared(&base, &new, &Options::default());
        let change = compared.changes().last().unwrap();
        (change.kind, change.time.as_ref().unwrap().threshold.unwrap())
    };
    let [base, new] = [4e3, 4.2e3].map(|ns| (SPREAD.nanoseconds / ns).hypot(SPREAD.relative));
    let stated = Z * base.hypot(new);
    let (kind, threshold) = last(39, 1.05);
    assert_eq!(kind, Kind::Ambiguous);
    close(threshold, stated);
    // The stated variation is reduced to a quarter at most.
    let (kind, threshold) = last(60, 1.05);
    assert_eq!(kind, Kind::Slower);
    close(threshold, LEAST_THRESHOLD.max(stated / 4.0));
}

/// Every row is 20 % slower although no code changed. The machine is the cause, which must not hide any change.
#[test]
fn rows_of_unchanged_code_hide_no_change_of_all_rows() {
    let report = |factor: f64| records((0..100).map(|n| timed(n, 1e5 * factor, 0.001)).collect());
    let found = compared(&report(1.0), &report(1.2), &Options::default());
    assert!(found.changes().all(|change| change.kind == Kind::Slower));
}

/// All long rows of unchanged code take 0.7 % longer, because of a different SM clock. The last row has different code.
#[test]
fn the_pace_of_a_run_is_no_change_and_hides_none() {
    let report = |pace: f64, changed: f64| {
        let scatter = |n: i64| 1.0 + 1e-4 * (n % 3) as f64;
        let mut cases: Vec<CaseRecord> = (0..20).map(|n| timed(n, 1e5 * scatter(n) * pace, 1e-4)).collect();
        cases.push(timed(20, 1e5 * pace * changed, 1e-4));
        records(cases)
    };
    let kinds = |pace: f64, changed: f64| {
        let (base, mut new) = (report(1.0, 1.0), report(pace, changed));
        "another".clone_into(&mut new.cases.last_mut().unwrap().hashes.as_mut().unwrap().source);
        let compared = compared(&base, &new, &Options::default());
        let slower = compared.changes().take(20).filter(|change| change.kind == Kind::Slower).count();
        let last = compared.changes().last().unwrap();
        (slower, last.kind, last.time.as_ref().unwrap().ratio, compared.reports[0].pace)
    };
    let (slower, kind, ratio, pace) = kinds(1.007, 1.03);
    assert_eq!((slower, kind, pace.unwrap().rows), (0, Kind::Slower, 20));
    close(pace.unwrap().slower, 0.007);
    close(ratio, 1.03);
    // Since the clock changed by 0.7 %, a change of 0.6 % may come from the clock.
    assert_eq!(kinds(1.007, 1.006).1, Kind::Same);
    // If the clock is unchanged, there is no pace; and 2 % is too large to be one.
    assert_eq!(kinds(1.0, 1.006).3, None);
    assert_eq!((kinds(1.02, 1.0).0, kinds(1.02, 1.0).3), (20, None));
}

#[test]
fn a_time_of_a_single_sample_is_ambiguous() {
    let single = |point| Estimate { point, low: point, high: point, confidence: 0.0 };
    let case = |point| in_regime(super::fixture::case(1), Regime::Cold, single(point));
    assert_eq!(change(case(1e6), case(2e6), &Options::default()).kind, Kind::Ambiguous);
}

#[test]
fn times_that_reach_zero_are_ambiguous() {
    let case = |point, low| {
        let time = Estimate { point, low, high: 60.0, confidence: 0.95 };
        in_regime(super::fixture::case(1), Regime::Cold, time)
    };
    for (base, new) in [(case(20.0, -5.0), case(50.0, 40.0)), (case(0.0, -5.0), case(50.0, 40.0))] {
        assert_eq!(change(base.clone(), new.clone(), &threshold(1.0)).kind, Kind::Ambiguous);
        assert_eq!(change(new, base, &threshold(1.0)).kind, Kind::Ambiguous);
    }
}

/// Intervals whose ends are out of order or NaN, or with a confidence above 1. The other case is decided as if these
/// intervals did not exist.
#[test]
fn a_time_without_a_sound_interval_is_incomparable_and_hides_no_regression() {
    let unsound = [(3e6, 1e6, 0.95), (0.9e6, f64::INFINITY, 0.95), (0.9e6, 1.1e6, 1.5), (f64::NAN, 1.1e6, 0.95)];
    for (low, high, confidence) in unsound {
        let time = Estimate { point: 2e6, low, high, confidence };
        let bad = in_regime(super::fixture::case(1), Regime::Cold, time);
        let base = records(vec![timed(1, 1e6, 0.001), timed(2, 1e6, 0.001)]);
        let new = records(vec![bad, timed(2, 2e6, 0.001)]);
        let found = compared(&base, &new, &Options::default());
        let kinds: Vec<Kind> = found.changes().map(|change| change.kind).collect();
        assert_eq!(kinds, [Kind::Incomparable, Kind::Slower], "{time:?}");
    }
}

fn simulated(counts: &[(&str, f64)]) -> Records {
    simulated_case(counted(1, counts))
}

fn simulated_case(case: CaseRecord) -> Records {
    let mut records = records(vec![case]);
    records.header.backend = BackendKind::Sim;
    records.environment.device.backend = BackendKind::Sim;
    records
}

#[test]
fn counts_of_the_simulator_that_decide_say_more_or_less_work_beyond_one_per_cent() {
    let kind = |base: &[(&str, f64)], new: &[(&str, f64)]| {
        compared(&simulated(base), &simulated(new), &Options::default()).changes().next().unwrap().kind
    };
    let base = [("inst_executed", 1000.0), ("gld_sectors", 1024.0), ("branch", 8.0)];
    let with = |changed: (&'static str, f64)| {
        let mut counts = base;
        for (name, count) in &mut counts {
            if *name == changed.0 {
                *count = changed.1;
            }
        }
        counts
    };
    assert_eq!(kind(&base, &base), Kind::Same);
    // A change of one per cent is at the threshold.
    assert_eq!(kind(&base, &with(("gld_sectors", 1034.0))), Kind::Same);
    assert_eq!(kind(&base, &with(("gld_sectors", 1035.0))), Kind::MoreWork);
    assert_eq!(kind(&base, &with(("gld_sectors", 1013.0))), Kind::LessWork);
    // Counts that follow from others decide nothing, nor do ratios.
    assert_eq!(kind(&base, &with(("branch", 16.0))), Kind::Same);
    assert_eq!(kind(&[("gld_efficiency", 50.0)], &[("gld_efficiency", 40.0)]), Kind::Same);
    // 23.5 % fewer load requests and 4.8 % fewer instructions are less work, although one count rose by 0.4 %.
    let base = [("inst_executed", 1000.0), ("gld_requests", 200.0), ("gst_sectors", 1000.0)];
    let less = [("inst_executed", 952.0), ("gld_requests", 153.0), ("gst_sectors", 1004.0)];
    assert_eq!(kind(&base, &less), Kind::LessWork);
    assert_eq!(kind(&less, &base), Kind::MoreWork);
    // If one deciding count rises and another falls, people must judge.
    let mixed = [("inst_executed", 952.0), ("gld_requests", 153.0), ("gst_sectors", 1104.0)];
    assert_eq!(kind(&base, &mixed), Kind::Mixed);
    // Times have the same threshold. Any increase from zero exceeds it.
    let options = Options { threshold: Some(0.1), ..Options::default() };
    let decided = |new: &[(&str, f64)]| {
        compared(&simulated(&[("barriers", 0.0), ("inst_executed", 1000.0)]), &simulated(new), &options)
            .changes()
            .next()
            .map(|change| change.kind)
    };
    assert_eq!(decided(&[("barriers", 0.0), ("inst_executed", 1090.0)]), Some(Kind::Same));
    assert_eq!(decided(&[("barriers", 1.0), ("inst_executed", 1000.0)]), Some(Kind::MoreWork));
}

/// A mask replaces a remainder: 5 % more PTX instructions, 45 % fewer machine instructions.
#[test]
fn counts_of_the_ptx_decide_nothing() {
    let judged = |base: CaseRecord, new: CaseRecord| {
        let change =
            compared(&simulated_case(base), &simulated_case(new), &Options::default()).changes().next().cloned();
        change.map(|change| (change.kind, change.undecided)).unwrap()
    };
    let both = |machine: f64, ptx: f64| counted(1, &[("inst_executed", machine), ("ptx_inst_executed", ptx)]);
    assert_eq!(judged(both(127_360.0, 100_000.0), both(70_016.0, 105_300.0)), (Kind::LessWork, vec![]));
    assert_eq!(judged(both(70_016.0, 105_300.0), both(127_360.0, 100_000.0)), (Kind::MoreWork, vec![]));
    // A record from an older version has only PTX counts.
    let old = counted(1, &[("ptx_inst_executed", 100_000.0)]);
    assert_eq!(judged(old.clone(), both(70_016.0, 105_300.0)), (Kind::Undecided, vec![Undecided::Older]));
    // Some machine instructions have no count.
    let mut partly = counted(1, &[("ptx_inst_executed", 90_000.0)]);
    partly.notes.push(Note::Underived { kernel: "k".to_owned(), unknown: 3, of: 90 });
    let why = Undecided::Instructions { kernel: "k".to_owned(), unknown: 3, of: 90 };
    assert_eq!(judged(both(70_016.0, 105_300.0), partly.clone()), (Kind::Undecided, vec![why]));
    // The same code with the same PTX counts has the same machine code counts.
    assert_eq!(judged(partly.clone(), partly), (Kind::Same, vec![]));
}

#[test]
fn a_count_that_rose_fails_although_another_is_not_known() {
    let kind = |new: &[(&str, f64)]| {
        let base =
            [("inst_executed", 100.0), ("ptx_inst_executed", 90.0), ("gld_sectors", 8.0), ("ptx_gld_sectors", 8.0)];
        compared(&simulated(&base), &simulated(new), &Options::default()).changes().next().unwrap().kind
    };
    let ptx = [("ptx_inst_executed", 90.0), ("ptx_gld_sectors", 8.0)];
    let with = |machine: &[(&'static str, f64)]| kind(&[machine, &ptx].concat());
    assert_eq!(with(&[("inst_executed", 150.0)]), Kind::MoreWork);
    assert_eq!(with(&[("inst_executed", 50.0)]), Kind::Undecided);
    assert_eq!(with(&[("inst_executed", 50.0), ("gld_sectors", 8.0)]), Kind::LessWork);
}

#[test]
fn counts_of_the_hardware_inform_and_decide_only_if_asked() {
    let report = |count: f64| records(vec![counted(1, &[("gld_sectors", count)])]);
    let change = |new: f64, gate_counters: bool| {
        let options = Options { gate_counters, ..Options::default() };
        compared(&report(1000.0), &report(new), &options).changes().next().unwrap().clone()
    };
    let found = change(1100.0, false);
    assert_eq!((found.kind, found.counters.len()), (Kind::Same, 1));
    assert_eq!(change(1100.0, true).kind, Kind::MoreWork);
    // A counter that measures time does not explain a time.
    let timed = |nanoseconds: f64| records(vec![counted(1, &[("gpu_time", nanoseconds), ("branch", 8.0)])]);
    assert!(compared(&timed(1e3), &timed(2e3), &Options::default()).changes().all(|change| change.counters.is_empty()));
    // A small difference is within the tolerance of 1 %.
    assert_eq!((change(1005.0, true).kind, change(1005.0, true).counters.len()), (Kind::Same, 0));
}

#[test]
fn counters_of_a_profile_beside_a_report_explain_its_times() {
    let profile = |count: f64| {
        let mut records = records(vec![counted(1, &[("gld_sectors", count)])]);
        records.environment.timing_method = None;
        records
    };
    let (base, new) = (records(vec![timed(1, 1e6, 0.001)]), records(vec![timed(1, 1.5e6, 0.001)]));
    let (few, many) = (profile(1000.0), profile(1500.0));
    let pairs = [Pair { base: &few, new: &many }, Pair { base: &base, new: &new }];
    let found = compare(&pairs, &Options::default());
    let slower = &found.reports[1].changes[0];
    assert_eq!((slower.kind, slower.counted_by), (Kind::Slower, Some(CountedBy::Hardware)));
    assert_eq!((slower.counters[0].base, slower.counters[0].new), (1000.0, 1500.0));
    assert_eq!(found.reports[0].changes[0].kind, Kind::Same);
}

#[test]
fn estimates_are_compared_with_those_of_the_same_blocks_only() {
    let sampled = |count: f64, width: u32| {
        let mut case = counted(1, &[("inst_executed", count)]);
        case.launches[0].grid = Dim3::new(width, 512 / width, 1);
        case.notes.push(Note::Sampled { ran: 256, of: 512 });
        simulated_case(case)
    };
    let judged = |base: &Records, new: &Records| {
        let change = compared(base, new, &Options::default()).changes().next().unwrap().clone();
        let differences: Vec<DifferenceKind> = change.differences.iter().map(|found| found.what).collect();
        (change.kind, change.counted_by, differences)
    };
    let base = sampled(1000.0, 512);
    assert_eq!(judged(&base, &sampled(1000.0, 512)), (Kind::Same, Some(CountedBy::Sample), vec![]));
    assert_eq!(judged(&base, &sampled(1020.0, 512)), (Kind::MoreWork, Some(CountedBy::Sample), vec![]));
    // First a different grid with the same number of blocks, then counts of all blocks.
    let whole = simulated(&[("inst_executed", 1000.0)]);
    for other in [sampled(1000.0, 256), whole] {
        assert_eq!(judged(&base, &other), (Kind::Incomparable, None, vec![DifferenceKind::Sample]));
    }
}
