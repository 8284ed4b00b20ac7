//! What samples consist of in each regime, and the A/A control.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::rig::{Said, buffer, case, device, group, kernel, launch, right, run};
use crate::{GroupCache, run_group};
use fake_backend::{Call, FakeKernel};
use runner_types::{
    Access, Allocation, BodyPlan, CaseJob, ElementType, Event, GroupJob, Measurement, Note, Outcome, Regime, Unit,
    Verdict,
};

fn copy_in(name: &str, regimes: &[Regime]) -> CaseJob {
    let mut job = case(name, ElementType::I32);
    job.measure.regimes = regimes.to_vec();
    job
}

fn measured(said: &Said, variant: &str, regime: Regime) -> Measurement {
    let of = |event: &Event| match event {
        Event::CaseMeasured { case, measurement } if case.key.variant == variant && measurement.regime == regime => {
            Some(measurement.clone())
        }
        _ => None,
    };
    said.events.iter().find_map(of).unwrap()
}

/// A kernel that takes this many nanoseconds.
fn taking(nanoseconds: f64) -> FakeKernel {
    kernel(right).taking(move |_| nanoseconds)
}

#[test]
fn a_case_is_measured_in_each_of_its_regimes() {
    let said = run(device(vec![("it", taking(50_000.0))]), &group(vec![copy_in("it", Regime::ALL)]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let shape = |regime| {
        let found = measured(&said, "it", regime);
        assert!(found.rounds.iter().all(|round| (round.whole - 50_000.0).abs() < 1e-6), "{regime}");
        (found.launches, found.sets, found.rounds.len(), found.working_set)
    };
    // Two arrays of 1000 integers; forty runs of 50 µs fill two milliseconds; the fake L2 is one megabyte, and there
    // are never more than 32 sets.
    assert_eq!(shape(Regime::Cold), (1, 1, 10, 8000));
    assert_eq!(shape(Regime::Warm), (40, 1, 10, 8000));
    assert_eq!(shape(Regime::Graph), (40, 1, 10, 8000));
    assert_eq!(shape(Regime::Rotate), (40, 32, 10, 8000));
    assert_eq!(shape(Regime::Host), (1, 1, 10, 8000));
    let clock = |regime| measured(&said, "it", regime).unit;
    assert_eq!((clock(Regime::Cold), clock(Regime::Host)), (Unit::DeviceNanoseconds, Unit::HostNanoseconds));
}

#[test]
fn memory_that_each_run_allocates_is_fresh_on_the_hosts_clock_and_stays_elsewhere() {
    let mut job = copy_in("it", &[Regime::Cold, Regime::Host]);
    let mut own = buffer("sums", ElementType::F64, 50, Access::Scratch);
    own.allocate = Allocation::EachRunAsync;
    job.buffers.push(own);
    job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "sums"])]);
    let said = run(device(vec![("it", taking(1000.0))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    // One allocation for each of the ten samples; none for the runs before them, and none in the other regime.
    assert_eq!(said.device.fresh(), [(400, Allocation::EachRunAsync); 10]);
}

#[test]
fn a_span_is_no_longer_than_a_queue_takes() {
    let said = run(device(vec![("it", taking(100.0))]), &group(vec![copy_in("it", &[Regime::Warm])]));
    // 384 operations, one of which is the lead-in run.
    assert_eq!(measured(&said, "it", Regime::Warm).launches, 383);
}

/// Distinct buffers that the kernel saw.
fn sets_seen(access: Access, regime: Regime) -> (BTreeSet<String>, Said) {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let body = {
        let seen = Arc::clone(&seen);
        move |call: &mut Call<'_>| {
            seen.lock().unwrap().insert(format!("{:?}", call.args()));
            right(call)
        }
    };
    let mut job = copy_in("it", &[regime]);
    job.buffers[0] = buffer("input", ElementType::I32, 1000, access);
    let said = run(device(vec![("it", kernel(body).taking(|_| 50_000.0))]), &group(vec![job]));
    let seen = seen.lock().unwrap().clone();
    (seen, said)
}

#[test]
fn a_run_that_consumes_its_input_has_a_copy_of_its_own_in_a_warm_span() {
    for regime in [Regime::Warm, Regime::Graph] {
        let (seen, said) = sets_seen(Access::InOut, regime);
        assert_eq!((seen.len(), measured(&said, "it", regime).sets), (32, 32));
        // The last set is for the untimed lead-in.
        assert_eq!(measured(&said, "it", regime).launches, 31);
        assert_eq!((said.outcome("it"), said.verdict("it")), (Outcome::Measured, Some(&Verdict::Pass)));
        assert_eq!(sets_seen(Access::In, regime).0.len(), 1);
    }
}

#[test]
fn rotating_sets_hold_the_first_ones_content() {
    let (seen, said) = sets_seen(Access::In, Regime::Rotate);
    assert_eq!(seen.len(), 32);
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let (seen, said) = sets_seen(Access::InOut, Regime::Rotate);
    assert_eq!((seen.len(), measured(&said, "it", Regime::Rotate).launches), (32, 32));
}

/// A run that increments an array, and is right only if the array was restored before.
#[test]
fn copies_that_are_consumed_are_restored_before_each_span() {
    let wrong = Arc::new(Mutex::new(0));
    let body = {
        let wrong = Arc::clone(&wrong);
        move |call: &mut Call<'_>| {
            let input = call.read(0)?;
            // The content is 1, 2, 3, ….
            *wrong.lock().unwrap() += u32::from(input[0] != 1);
            call.write(1, 0, &input)?;
            call.write(0, 0, &[9])
        }
    };
    let mut job = copy_in("it", &[Regime::Warm]);
    job.buffers[0] = buffer("input", ElementType::I32, 1000, Access::InOut);
    let said = run(device(vec![("it", kernel(body).taking(|_| 50_000.0))]), &group(vec![job]));
    assert_eq!((said.outcome("it"), *wrong.lock().unwrap()), (Outcome::Measured, 0));
}

#[test]
fn all_copies_are_given_back() {
    let mut device = device(vec![("it", taking(50_000.0))]);
    let before = runner_backend::Device::memory_free(&device);
    let job = group(vec![copy_in("it", Regime::ALL)]);
    run_group(&mut device, &job, &mut GroupCache::default(), &mut |_| ()).unwrap();
    assert_eq!(runner_backend::Device::memory_free(&device), before);
}

#[test]
fn a_cold_sample_is_the_mean_of_as_many_runs_as_hide_the_clocks_step() {
    // An eighth of 1 % of 5 µs is 6.25 ns; six runs hide a step of 32 ns.
    for (nanoseconds, launches) in [(5000.0, 6), (40_000.0, 1), (100.0, 32)] {
        let device = device(vec![("it", taking(nanoseconds))]).with_tick(32.0);
        let said = run(device, &group(vec![copy_in("it", &[Regime::Cold])]));
        assert_eq!(measured(&said, "it", Regime::Cold).launches, launches, "{nanoseconds} ns");
    }
}

#[test]
fn the_baseline_has_a_control_where_anything_is_compared_with_it() {
    let names = ["a", "b", "c"];
    let kernels = names.map(|name| (name, kernel(right))).to_vec();
    let all = [Regime::Cold];
    let said = run(device(kernels.clone()), &group(names.map(|name| copy_in(name, &all)).to_vec()));
    let baseline = measured(&said, "a", Regime::Cold);
    assert!((9..=11).contains(&baseline.control.len()), "{}", baseline.control.len());
    assert!(measured(&said, "b", Regime::Cold).control.is_empty());
    // Each position of a round is taken once.
    let mut places: Vec<(u32, u32)> =
        baseline.rounds.iter().chain(&baseline.control).map(|r| (r.round, r.place)).collect();
    places.extend(
        ["b", "c"].iter().flat_map(|name| measured(&said, name, Regime::Cold).rounds).map(|r| (r.round, r.place)),
    );
    let first_nine: BTreeSet<_> = places.iter().filter(|(round, _)| *round < 9).copied().collect();
    assert_eq!(first_nine.len(), 36);
    let alone = run(device(kernels), &group(vec![copy_in("a", &all)]));
    assert!(measured(&alone, "a", Regime::Cold).control.is_empty());
}

#[test]
fn a_control_ends_with_a_baseline_that_fails() {
    use runner_backend::DeviceError;
    let failing = kernel(|call: &mut Call<'_>| match call.nth {
        0..8 => right(call),
        _ => Err(DeviceError::Trap { message: "enough".to_owned(), printed: String::new() }),
    });
    let kernels = vec![("a", failing), ("b", kernel(right))];
    let job = GroupJob { ..group(vec![copy_in("a", &[Regime::Cold]), copy_in("b", &[Regime::Cold])]) };
    let said = run(device(kernels), &job);
    assert_eq!(said.outcome("a"), Outcome::Trap { message: "enough".to_owned() });
    assert_eq!(said.outcome("b"), Outcome::Measured);
}

#[test]
fn what_is_odd_about_samples_is_noted() {
    let notes = |nanoseconds: fn(u32) -> f64| {
        let mut job = copy_in("it", &[Regime::Cold]);
        job.measure.min_samples = 40;
        let said = run(device(vec![("it", kernel(right).taking(nanoseconds))]), &group(vec![job]));
        said.notes("it")
    };
    assert_eq!(notes(|_| 1000.0), Vec::<Note>::new());
    // Forty samples, starting with the second launch after the check, each 2 ns above the previous one.
    let drifting = notes(|nth| 1000.0 + 2.0 * f64::from(nth));
    let [Note::Trend { regime: Regime::Cold, drift }] = drifting.as_slice() else { panic!("{drifting:?}") };
    assert!((drift - 0.075).abs() < 0.0005, "{drift}");
    let two = notes(|nth| if nth % 4 == 0 { 1200.0 } else { 1000.0 + f64::from(nth % 3) });
    let [Note::Bimodal { regime: Regime::Cold, share, slower }] = two.as_slice() else { panic!("{two:?}") };
    assert!((share - 0.25).abs() < 1e-9 && (0.19..0.20).contains(slower), "{two:?}");
}

#[test]
fn a_case_beyond_hope_is_given_up() {
    let mut job = copy_in("it", &[Regime::Cold]);
    (job.measure.max_samples, job.measure.precision) = (2000, 0.0001);
    let restless = |nth: u32| if nth.is_multiple_of(2) { 1000.0 } else { 1200.0 };
    let said = run(device(vec![("it", kernel(right).taking(restless))]), &group(vec![job]));
    assert_eq!(measured(&said, "it", Regime::Cold).rounds.len(), 60);
    assert!(matches!(said.outcome("it"), Outcome::Unstable { .. }));
}

/// With a precision of 1 %, a tick of 32 ns averaged over the runs of a sample may be an eighth of that: 8 runs of a
/// 3.2 µs kernel, and 4 of a 6.4 µs one.
#[test]
fn short_kernels_of_a_group_have_samples_of_the_same_number_of_runs() {
    let times = [("base", 3200.0), ("slower", 6400.0), ("long", 1e6)];
    let kernels = times.map(|(name, time)| (name, kernel(right).taking(move |_| time))).to_vec();
    let jobs = times.map(|(name, _)| case(name, ElementType::I32)).to_vec();
    let said = run(device(kernels).with_tick(32.0), &group(jobs));
    let launches = times.map(|(name, _)| said.measurement(name).unwrap().launches);
    assert_eq!(launches, [8, 8, 1]);
}
