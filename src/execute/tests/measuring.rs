//! Rounds, stopping rules, and the ways in which a device ends a case.

use std::collections::BTreeSet;

use super::rig::{N, Said, call, case, device, group, kernel, right, run, run_one};
use crate::backend::DeviceError;
use crate::backend::fake::{Call, FakeDevice, FakeKernel, device_info};
use crate::model::{
    Activity, BodyPlan, Capabilities, Counters, ElementType, Event, GroupJob, Outcome, Phase, RefFunction, Unit,
};

/// Alternates between two times: `spread` of the smaller apart.
fn noisy(spread: f64) -> FakeKernel {
    kernel(right).taking(move |nth| if nth % 2 == 0 { 1000.0 } else { 1000.0 * (1.0 + spread) })
}

fn pair(first: FakeKernel, second: FakeKernel) -> Said {
    let cases = vec![case("first", ElementType::I32), case("second", ElementType::I32)];
    run(device(vec![("first", first), ("second", second)]), &group(cases))
}

fn samples(said: &Said, variant: &str) -> usize {
    said.measurement(variant).unwrap().rounds.len()
}

fn seeded(seed: u64) -> Vec<String> {
    let names = ["a", "b", "c", "d"];
    let kernels = names.iter().map(|name| (*name, kernel(right))).collect();
    let cases = names.iter().map(|name| case(name, ElementType::I32)).collect();
    let said = run(device(kernels), &GroupJob { seed, ..group(cases) });
    said.device.launched().to_vec()
}

#[test]
fn every_round_has_every_variant_once_in_an_order_of_its_own() {
    let launched = seeded(7);
    // Four checks and four warm-ups come first; ten rounds of equal times suffice, the baseline adds at most one.
    let rounds: Vec<&[String]> = launched[8..].chunks(4).take(10).collect();
    for round in &rounds {
        assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 4, "{round:?}");
    }
    assert!(rounds.iter().collect::<BTreeSet<_>>().len() > 3, "ten rounds in hardly any orders: {rounds:?}");
}

#[test]
fn the_seed_fixes_the_order() {
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));
}

#[test]
fn equal_times_end_at_the_least_number_of_samples() {
    let said = run_one(right);
    assert_eq!(samples(&said, "it"), 10);
    assert_eq!(said.measurement("it").unwrap().unit, Unit::DeviceNanoseconds);
}

#[test]
fn what_stays_noisy_ends_at_the_most_samples_and_says_what_was_reached() {
    let said = pair(kernel(right), noisy(0.5));
    assert_eq!(samples(&said, "second"), 40);
    // Half of 1000..1500 around the median of both, 1250.
    assert_eq!(said.outcome("second"), Outcome::Unstable { reached: 0.2 });
}

#[test]
fn noise_within_the_precision_is_no_noise() {
    let said = pair(kernel(right), noisy(0.005));
    assert_eq!(said.outcome("second"), Outcome::Measured);
    assert_eq!(samples(&said, "second"), 10);
}

#[test]
fn the_baseline_goes_on_until_the_last_variant_stops() {
    let said = pair(kernel(right), noisy(0.5));
    let rounds = |variant| said.measurement(variant).unwrap().rounds.iter().map(|r| r.round).collect::<BTreeSet<_>>();
    assert!(rounds("first").is_superset(&rounds("second")));
    assert!(rounds("first").len() <= 41);
    assert_eq!(said.outcome("first"), Outcome::Measured);
}

#[test]
fn a_variant_that_is_no_baseline_stops_when_it_may() {
    let said = pair(noisy(0.5), kernel(right));
    assert_eq!((samples(&said, "first"), samples(&said, "second")), (40, 10));
}

#[test]
fn the_budget_of_device_time_ends_the_samples() {
    let mut job = case("it", ElementType::I32);
    job.measure.budget = 20e-6;
    let said = run(device(vec![("it", noisy(0.5))]), &group(vec![job]));
    // 1000 and 1500 ns in turn: the sixteenth sample completes 20 µs.
    assert_eq!(samples(&said, "it"), 16);
}

#[test]
fn too_few_samples_for_an_interval_are_unstable_however_equal() {
    let mut job = case("it", ElementType::I32);
    job.measure.max_samples = 3;
    job.measure.min_samples = 1;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(samples(&said, "it"), 3);
    assert_eq!(said.outcome("it"), Outcome::Unstable { reached: 0.0 });
}

#[test]
fn a_clock_that_gives_no_number_ends_the_case() {
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        let said = pair(kernel(right), kernel(right).taking(move |_| wrong));
        assert!(matches!(said.outcome("second"), Outcome::LaunchError { message } if message.contains("clock")));
        assert_eq!(said.outcome("first"), Outcome::Measured);
    }
}

#[test]
fn a_failure_in_a_timed_launch_costs_its_case_alone() {
    let errors: [(DeviceError, Outcome); 4] = [
        (DeviceError::Trap("at line 3".to_owned()), Outcome::Trap { message: "at line 3".to_owned() }),
        (DeviceError::InvalidLaunch("too large".to_owned()), Outcome::Invalid { limit: "too large".to_owned() }),
        (
            DeviceError::Driver { call: "launch", message: "no".to_owned() },
            Outcome::LaunchError { message: "launch: no".to_owned() },
        ),
        (DeviceError::OutOfMemory { needed: 2, available: 1 }, Outcome::OutOfMemory { needed: 2, available: 1 }),
    ];
    for (error, outcome) in errors {
        for failing in [0, 1, 6] {
            let error = error.clone();
            let body = move |call: &mut Call<'_>| if call.nth == failing { Err(error.clone()) } else { right(call) };
            let said = pair(kernel(right), kernel(body));
            assert_eq!(said.outcome("second"), outcome);
            assert!(said.measurement("second").is_none());
            assert_eq!(said.outcome("first"), Outcome::Measured);
            assert_eq!(said.result, Ok(()));
        }
    }
}

#[test]
fn a_lost_context_settles_its_case_and_no_other() {
    for failing in [0, 1, 6] {
        let body = move |call: &mut Call<'_>| {
            if call.nth == failing { Err(DeviceError::ContextLost("illegal address".to_owned())) } else { right(call) }
        };
        let said = pair(kernel(right), kernel(body));
        assert_eq!(said.result.as_ref().unwrap_err().message, "illegal address");
        assert_eq!(said.outcome("second"), Outcome::LaunchError { message: "illegal address".to_owned() });
        assert!(said.outcomes("first").is_empty());
        assert!(!said.events.iter().any(|event| matches!(event, Event::GroupFinished { .. })));
    }
}

#[test]
fn a_write_far_outside_loses_the_context() {
    let said = run_one(|call| call.write(1, 1 << 40, &[0]));
    assert!(said.result.is_err());
    assert!(matches!(said.outcome("it"), Outcome::LaunchError { message } if message.contains("illegal memory")));
}

#[test]
fn a_device_without_a_clock_checks_and_counts() {
    let mut info = device_info();
    info.capabilities = Capabilities { has_clock: false, has_counters: true };
    let body = |call: &mut Call<'_>| {
        call.counters.0.insert("loads".to_owned(), 32.0);
        call.printed.push_str("hello\n");
        call.notes.push("a race".to_owned());
        right(call)
    };
    let said = run(FakeDevice::new(info).with_kernel("it", kernel(body)), &group(vec![case("it", ElementType::I32)]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    assert!(said.measurement("it").is_none());
    assert_eq!(said.device.launched().len(), 1);
    let counted = Counters([("loads".to_owned(), 32.0)].into());
    let has = |wanted: &dyn Fn(&Event) -> bool| assert_eq!(said.events.iter().filter(|e| wanted(e)).count(), 1);
    has(&|e| matches!(e, Event::CaseCounted { counters, .. } if *counters == counted));
    has(&|e| matches!(e, Event::CasePrinted { text, .. } if text == "hello\n"));
    has(&|e| matches!(e, Event::CaseNote { text, .. } if text == "a race"));
}

#[test]
fn every_step_is_announced_with_its_limit() {
    let said = run_one(right);
    let steps: Vec<(Activity, f64)> = said
        .events
        .iter()
        .filter_map(|event| match event {
            Event::CaseActive { activity, limit, .. } => Some((*activity, *limit)),
            _ => None,
        })
        .collect();
    assert_eq!(steps[1], (Activity::Checking, 30.0));
    assert_eq!(steps.iter().filter(|step| **step == (Activity::Measuring, 30.0)).count(), 11);
    // The host's own work: ten seconds more, and 8000 bytes at 50 MB/s.
    let host = 30.0 + 10.0 + 8000.0 / 50e6;
    assert_eq!((steps[0], steps[2]), ((Activity::Preparing, host), (Activity::Checking, host)));
    assert_eq!(steps.last(), Some(&(Activity::Rechecking, host)));
}

#[test]
fn a_group_begins_and_ends_and_says_where_the_time_went() {
    let said = run_one(right);
    assert!(matches!(said.events.first(), Some(Event::GroupStarted { cases: 1, .. })));
    assert!(matches!(said.events.last(), Some(Event::GroupFinished { .. })));
    let phases = |event: &Event| match event {
        Event::PhaseSpent { phase, .. } => Some(*phase),
        _ => None,
    };
    let phases: BTreeSet<Phase> = said.events.iter().filter_map(phases).collect();
    assert_eq!(phases, BTreeSet::from([Phase::Transfer, Phase::Check, Phase::Measure]));
}

#[test]
fn the_host_is_timed_by_its_own_clock_and_its_result_checked() {
    let mut host = case("host", ElementType::I32);
    host.body = BodyPlan::Cpu(call(RefFunction::Copy, "input"));
    let said = run(device(vec![("it", kernel(right))]), &group(vec![case("it", ElementType::I32), host]));
    let measurement = said.measurement("host").unwrap();
    assert_eq!(measurement.unit, Unit::HostNanoseconds);
    assert!((10..=40).contains(&measurement.rounds.len()));
    assert!(matches!(said.outcome("host"), Outcome::Measured | Outcome::Unstable { .. }));
}

#[test]
fn a_host_function_that_is_not_what_the_check_expects_is_wrong() {
    let mut host = case("host", ElementType::I32);
    host.checks[0].actual = call(RefFunction::Sum, "out");
    host.checks[0].expect = crate::model::ExpectPlan::Reference(call(RefFunction::Sum, "input"));
    host.checks[0].text = "sum(out)".to_owned();
    host.body = BodyPlan::Cpu(call(RefFunction::Max, "input"));
    let mismatch = run(device(vec![]), &group(vec![host])).mismatch("host");
    // The numbers from 1 to 1000.
    let sum = (N * (N + 1) / 2).to_string();
    assert_eq!((mismatch.what.as_str(), mismatch.expected, mismatch.got.as_str()), ("sum(out)", sum, "1000"));
}
