//! Rounds, and the ways in which a device ends a case.

use std::sync::{Arc, Mutex};

use super::rig::{N, Said, buffer, call, case, copies, device, group, kernel, launch, right, run};
use crate::Lost;
use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_backend::DeviceError;
use runner_types::{
    Access, BlockPlan, BodyPlan, Capabilities, CaseJob, Counters, Dim3, ElementType, Event, ExpectPlan, FillPlan,
    GridPlan, GroupJob, KernelResources, LaunchPlan, LaunchRecord, Mismatch, Note, Outcome, RefExpr, RefFunction,
    Regime, Unit, Value, Verdict,
};

pub fn copy(name: &str) -> CaseJob {
    case(name, ElementType::I32)
}

/// A correct kernel whose launch `n` takes `nanoseconds(n)`: 0 is the check, 1 the warm-up.
pub fn timed(nanoseconds: impl Fn(u32) -> f64 + Send + Sync + 'static) -> FakeKernel {
    kernel(right).taking(nanoseconds)
}

pub fn samples(said: &Said, variant: &str) -> Vec<f64> {
    said.measurement(variant).unwrap().rounds.iter().map(|round| round.whole).collect()
}

pub fn rounds(said: &Said, variant: &str) -> Vec<u32> {
    said.measurement(variant).unwrap().rounds.iter().map(|round| round.round).collect()
}

/// Launches after the checks and the warm-ups of `cases` cases.
fn order_of(said: &Said, cases: usize) -> Vec<&str> {
    said.device.launched()[3 * cases..].iter().map(String::as_str).collect()
}

fn three(seed: u64) -> Said {
    let kernels = ["a", "b", "c"].map(|name| (name, kernel(right))).to_vec();
    let job = GroupJob { seed, ..group(["a", "b", "c"].map(copy).to_vec()) };
    run(device(kernels), &job)
}

#[test]
fn every_round_holds_each_variant_once_in_an_order_of_its_own() {
    let said = three(7);
    // Nine rounds of the three cases and the A/A control. In the tenth round, the baseline and its control may end
    // before the others have run.
    let order = order_of(&said, 3);
    let rounds: Vec<&[&str]> = order[..36].chunks_exact(4).collect();
    for round in &rounds {
        let mut names = round.to_vec();
        names.sort_unstable();
        assert_eq!(names, ["a", "a", "b", "c"]);
    }
    assert!(rounds.iter().any(|round| *round != rounds[0]), "all rounds have one order: {rounds:?}");
    for first in ["a", "b", "c"] {
        assert!(rounds.iter().any(|round| round[0] == first), "{first} never begins: {rounds:?}");
    }
}

#[test]
fn the_seed_fixes_the_order() {
    assert_eq!(three(7).device.launched(), three(7).device.launched());
    assert_ne!(three(7).device.launched(), three(8).device.launched());
}

#[test]
fn samples_of_one_round_carry_its_number() {
    let said = three(7);
    let ten: Vec<u32> = (0..10).collect();
    assert_eq!(rounds(&said, "b"), ten);
    assert_eq!(rounds(&said, "c"), ten);
    assert_eq!(rounds(&said, "a")[..10], ten);
}

#[test]
fn warm_up_launches_are_run_and_not_recorded() {
    for warmup in [0, 5] {
        let mut job = copy("it");
        job.measure.warmup = warmup;
        let cold = move |nth| if nth <= warmup + 1 { 9e6 } else { 1000.0 };
        let said = run(device(vec![("it", timed(cold))]), &group(vec![job]));
        assert_eq!(samples(&said, "it"), vec![1000.0; 10]);
        assert_eq!(said.device.launched().len(), 2 + warmup as usize + 10);
    }
}

/// A case that copies `input` to `middle` and `middle` to `out`.
fn sequence(name: &str) -> CaseJob {
    let mut job = copy(name);
    job.buffers.push(buffer("middle", ElementType::I32, N, Access::Scratch));
    let mut second = launch("second", &["middle", "out"]);
    second.grid = GridPlan::Fixed([2, 3, 1]);
    job.body = BodyPlan::Launches(vec![launch("first", &["input", "middle"]), second]);
    job
}

#[test]
fn a_sequence_reports_each_of_its_launches() {
    let kernels = vec![("first", timed(|nth| 300.0 + f64::from(nth))), ("second", timed(|_| 700.0))];
    let said = run(device(kernels), &group(vec![sequence("it")]));
    let measurement = said.measurement("it").unwrap();
    for (nth, round) in (3..).zip(&measurement.rounds) {
        assert_eq!(round.each, [300.0 + f64::from(nth), 700.0]);
        assert_eq!(round.whole, 1000.0 + f64::from(nth));
    }
    let records = launches(&said, "it");
    let grids: Vec<(&str, Dim3)> = records.iter().map(|record| (record.label.as_str(), record.grid)).collect();
    assert_eq!(grids, [("first", Dim3::new(4, 1, 1)), ("second", Dim3::new(2, 3, 1))]);
    assert_eq!(said.device.launched()[..2], ["first", "second"]);
}

#[test]
fn a_single_launch_reports_itself_once() {
    let said = run(device(vec![("it", kernel(right))]), &group(vec![copy("it")]));
    assert!(said.measurement("it").unwrap().rounds.iter().all(|round| round.each.is_empty()));
}

#[test]
fn a_copy_by_the_driver_is_measured_and_checked_as_a_kernel_is() {
    let mut job = copy("memcpy");
    job.body = BodyPlan::Memcpy(vec![("input".to_owned(), "out".to_owned())]);
    let said = run(device(vec![]), &group(vec![job.clone()]));
    assert_eq!((said.outcome("memcpy"), said.verdict("memcpy")), (Outcome::Measured, Some(&Verdict::Pass)));
    job.buffers[1].len = N - 1;
    let said = run(device(vec![]), &group(vec![job]));
    let message = "the copy from `input` has 4000 bytes, but `out` has 3996 bytes".to_owned();
    assert_eq!(said.outcome("memcpy"), Outcome::Unresolved { message });
}

/// A case on the host: `function` of `input`, checked against its sum.
fn on_the_host(function: RefFunction) -> CaseJob {
    let mut job = copy("cpu");
    job.body = BodyPlan::Cpu(call(function, "input"));
    job.checks[0].text = "sum(out)".to_owned();
    job.checks[0].actual = call(RefFunction::Sum, "out");
    job.checks[0].expect = ExpectPlan::Reference(call(RefFunction::Sum, "input"));
    job.measure.max_samples = 12;
    job
}

#[test]
fn a_function_of_the_host_is_timed_on_the_hosts_clock_and_checked() {
    let said = run(device(vec![]), &group(vec![on_the_host(RefFunction::Sum)]));
    assert_eq!(said.verdict("cpu"), Some(&Verdict::Pass));
    let measurement = said.measurement("cpu").unwrap();
    assert_eq!((measurement.regime, measurement.unit), (Regime::Cold, Unit::HostNanoseconds));
    assert!((10..=12).contains(&measurement.rounds.len()));
    assert!(measurement.rounds.iter().all(|round| round.whole > 0.0 && round.whole < 1e9));
    assert!(matches!(said.outcome("cpu"), Outcome::Measured | Outcome::Unstable { .. }));
    assert!(said.device.launched().is_empty());
}

#[test]
fn every_function_of_the_host_agrees_with_its_reference() {
    for element in [ElementType::U8, ElementType::I64, ElementType::F16, ElementType::F64] {
        for function in RefFunction::ALL {
            let of_integers = matches!(function, RefFunction::And | RefFunction::Or | RefFunction::Histogram);
            let of_floats = matches!(
                function,
                RefFunction::Softmax
                    | RefFunction::Exp
                    | RefFunction::Gelu
                    | RefFunction::GeluTanh
                    | RefFunction::LayerNorm
            );
            if element.is_float() && of_integers || !element.is_float() && of_floats {
                continue;
            }
            let mut job = case("cpu", element);
            job.buffers.iter_mut().for_each(|buffer| buffer.len = 12);
            let integers: &[i64] = match function {
                RefFunction::Matmul => &[3, 3, 4],
                RefFunction::Transpose => &[3, 4],
                RefFunction::Histogram => &[10],
                RefFunction::Softmax => &[4],
                RefFunction::LayerNorm => &[12],
                RefFunction::Convolution => &[3, 4, 3, 4],
                RefFunction::Slice => &[2, 7],
                _ => &[],
            };
            let expression = RefExpr::Call {
                function,
                buffers: vec![RefExpr::Buffer("input".to_owned()); function.buffers()],
                integers: integers.to_vec(),
            };
            job.body = BodyPlan::Cpu(expression.clone());
            job.checks[0].expect = ExpectPlan::Reference(expression);
            let said = run(device(vec![]), &group(vec![job]));
            assert_eq!(said.verdict("cpu"), Some(&Verdict::Pass), "{} of {element}", function.name());
        }
    }
}

#[test]
fn a_function_of_the_host_that_is_not_what_the_check_expects_is_wrong() {
    let said = run(device(vec![]), &group(vec![on_the_host(RefFunction::Max)]));
    let Mismatch { expected, got, error, .. } = said.mismatch("cpu");
    // 1 + 2 + … + 1000.
    assert_eq!((expected.as_str(), got.as_str(), error), ("500500", "1000", Some(499_500.0)));
}

#[test]
fn a_host_function_that_is_no_work_is_refused() {
    let mut job = copy("cpu");
    job.body = BodyPlan::Cpu(RefExpr::Buffer("input".to_owned()));
    let said = run(device(vec![]), &group(vec![job]));
    assert!(matches!(said.outcome("cpu"), Outcome::Unresolved { message } if message.contains("times a function")));
}

fn clockless() -> FakeDevice {
    let mut info = device_info();
    info.capabilities = Capabilities { has_clock: false, has_counters: true };
    FakeDevice::new(info)
}

#[test]
fn a_device_without_a_clock_counts_and_times_nothing() {
    let counts = |call: &mut Call<'_>| {
        call.counters = Counters([("loads".into(), 250.0)].into());
        call.printed = "hello".to_owned();
        call.notes.push(Note::Text("reads uninitialised memory".to_owned()));
        right(call)
    };
    let cases = vec![copy("it"), on_the_host(RefFunction::Sum)];
    let said = run(clockless().with_kernel("it", kernel(counts)), &group(cases));
    for variant in ["it", "cpu"] {
        assert_eq!(said.outcome(variant), Outcome::Measured);
        assert_eq!(said.verdict(variant), Some(&Verdict::Pass));
        assert!(said.measurement(variant).is_none());
    }
    assert_eq!(said.device.launched(), ["it"]);
    let reported: Vec<&Event> = said.events.iter().filter(|event| is_saying(event)).collect();
    let [Event::CasePrinted { text, .. }, Event::CaseNote { note, .. }, Event::CaseCounted { counters, .. }] =
        reported.as_slice()
    else {
        panic!("{reported:?}")
    };
    assert_eq!((text.as_str(), note), ("hello", &Note::Text("reads uninitialised memory".to_owned())));
    assert_eq!(counters.0.get("loads"), Some(&250.0));
}

fn is_saying(event: &Event) -> bool {
    matches!(event, Event::CasePrinted { .. } | Event::CaseNote { .. } | Event::CaseCounted { .. })
}

#[test]
fn a_device_with_a_clock_counts_nothing() {
    let said = run(device(vec![("it", kernel(right))]), &group(vec![copy("it")]));
    let is_saying = |event: &&Event| is_saying(event) && !matches!(event, Event::CaseNote { .. });
    assert_eq!((said.events.iter().find(is_saying), said.notes("it")), (None, Vec::new()));
}

/// A kernel that fails with `error` from launch `from` on.
fn failing(from: u32, error: DeviceError) -> FakeKernel {
    kernel(move |call| if call.nth >= from { Err(error.clone()) } else { right(call) })
}

/// Runs `first`, a kernel that fails at launch `from` and later, and `last`.
fn spoiled_beside(from: u32, error: DeviceError) -> Said {
    let kernels = vec![("first", kernel(right)), ("bad", failing(from, error)), ("last", kernel(right))];
    run(device(kernels), &group(["first", "bad", "last"].map(copy).to_vec()))
}

#[test]
fn a_lost_context_ends_its_case_and_the_group() {
    // In the check, in the second launch, in the warm-up, in the fourth sample.
    for from in [0, 1, 2, 6] {
        let said = spoiled_beside(from, DeviceError::ContextLost("an illegal address".to_owned()));
        let message = "an illegal address".to_owned();
        assert_eq!(said.result, Err(Lost { message: message.clone() }));
        assert_eq!(said.outcome("bad"), Outcome::LaunchError { message });
        for other in ["first", "last"] {
            assert!(said.outcomes(other).is_empty(), "{other} has an outcome");
            assert!(said.measurement(other).is_none());
        }
        assert!(!said.events.iter().any(|event| matches!(event, Event::GroupFinished { .. })));
    }
}

#[test]
fn a_write_past_all_guard_zones_loses_the_context() {
    let far = kernel(|call: &mut Call<'_>| call.write(1, 1 << 30, &[0]));
    let said = run(device(vec![("it", far)]), &group(vec![copy("it")]));
    assert!(
        matches!(said.outcome("it"), Outcome::LaunchError { message } if message.contains("illegal memory access"))
    );
    assert!(said.result.is_err());
}

#[test]
fn what_else_a_device_refuses_ends_its_case_alone() {
    let limit = "too many registers".to_owned();
    let message = "a fault at line 7".to_owned();
    for (error, outcome) in [
        (DeviceError::InvalidLaunch(limit.clone()), Outcome::Invalid { limit }),
        (DeviceError::Trap { message: message.clone(), printed: String::new() }, Outcome::Trap { message }),
        (DeviceError::OutOfMemory { needed: 5, available: 3 }, Outcome::OutOfMemory { needed: 5, available: 3 }),
        (
            DeviceError::Driver { call: "launch", message: "no".to_owned() },
            Outcome::LaunchError { message: "launch: no".to_owned() },
        ),
    ] {
        for from in [0, 1, 2, 6] {
            let said = spoiled_beside(from, error.clone());
            assert_eq!(said.result, Ok(()));
            assert_eq!(said.outcome("bad"), outcome, "from launch {from}");
            assert!(said.measurement("bad").is_none());
            for other in ["first", "last"] {
                assert_eq!(said.outcome(other), Outcome::Measured, "{other}, {error} from launch {from}");
                assert_eq!(samples(&said, other)[..10], [1000.0; 10]);
            }
        }
    }
}

#[test]
fn a_clock_that_says_no_time_is_a_launch_error() {
    for time in [f64::NAN, f64::INFINITY, -1.0] {
        let said = run(device(vec![("it", timed(move |_| time))]), &group(vec![copy("it")]));
        let outcome = said.outcome("it");
        assert!(matches!(&outcome, Outcome::LaunchError { message } if message.contains("clock")), "{outcome:?}");
    }
}

#[test]
fn a_case_larger_than_the_memory_leaves_it_to_the_others() {
    let mut large = copy("large");
    large.buffers[0] = buffer("small", ElementType::I32, 500, Access::In);
    large.buffers[1].len = 1 << 30;
    large.body = BodyPlan::Launches(vec![launch("large", &["small", "out"])]);
    let kernels = ["first", "large", "last"].map(|name| (name, kernel(right))).to_vec();
    let said = run(device(kernels), &group(vec![copy("first"), large, copy("last")]));
    // Finally it is tried alone: 256 MiB then hold only a buffer of 2000 bytes between two guard zones of 64 KiB.
    let available = (256 << 20) - 2000 - 131_072;
    assert_eq!(said.outcome("large"), Outcome::OutOfMemory { needed: (4 << 30) + 131_072, available });
    assert_eq!(said.outcome("first"), Outcome::Measured);
    assert_eq!(said.outcome("last"), Outcome::Measured);
}

fn launches<'s>(said: &'s Said, variant: &str) -> &'s [LaunchRecord] {
    let checked = said.events.iter().find_map(|event| match event {
        Event::CaseChecked { case, launches, .. } if case.key.variant == variant => Some(launches),
        _ => None,
    });
    checked.unwrap()
}

/// Runs one launch modified by `change`; returns its record, and the shape that the kernel saw.
fn shaped(change: impl Fn(&mut LaunchPlan)) -> (LaunchRecord, (Dim3, Dim3)) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shapes = Arc::clone(&seen);
    let body = move |call: &mut Call<'_>| {
        shapes.lock().unwrap().push((call.grid, call.block));
        right(call)
    };
    let said = run(device(vec![("it", kernel(body))]), &group(vec![launched(change)]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|shape| *shape == seen[0]));
    (launches(&said, "it")[0].clone(), seen[0])
}

fn launched(change: impl Fn(&mut LaunchPlan)) -> CaseJob {
    let mut job = copy("it");
    let mut plan = launch("it", &["input", "out"]);
    change(&mut plan);
    job.body = BodyPlan::Launches(vec![plan]);
    job
}

#[test]
fn occupancy_chooses_the_block_and_fills_the_device_with_blocks() {
    let (record, seen) = shaped(|plan| {
        plan.block = BlockPlan::Occupancy;
        plan.grid = GridPlan::Occupancy;
    });
    // The fake device recommends 256; 2048 threads per SM are 8 blocks, on 4 SMs 32.
    assert_eq!(seen, (Dim3::new(32, 1, 1), Dim3::new(256, 1, 1)));
    assert_eq!((record.grid, record.block), seen);
    let occupancy = record.occupancy.unwrap();
    assert_eq!((occupancy.blocks_per_sm, occupancy.fraction), (8, 1.0));
}

#[test]
fn the_resident_grid_follows_a_block_that_is_given() {
    let (record, seen) = shaped(|plan| {
        plan.block = BlockPlan::Fixed([768, 1, 1]);
        plan.grid = GridPlan::Occupancy;
    });
    // Two blocks of 768 fit the 2048 threads of an SM.
    assert_eq!(seen, (Dim3::new(8, 1, 1), Dim3::new(768, 1, 1)));
    assert_eq!(record.occupancy.unwrap().fraction, 0.75);
}

#[test]
fn a_grid_is_worked_out_after_the_block_that_occupancy_chose() {
    let (_, seen) = shaped(|plan| {
        plan.block = BlockPlan::Occupancy;
        let dims = vec!["ceil_div(n, occupancy_block)".to_owned(), "rows".to_owned()];
        let scope = [("n".to_owned(), Value::Int(1000)), ("rows".to_owned(), Value::Int(3))].into();
        plan.grid = GridPlan::AfterBlock { dims, scope };
    });
    assert_eq!(seen, (Dim3::new(4, 3, 1), Dim3::new(256, 1, 1)));
}

#[test]
fn a_grid_expression_without_a_value_is_unresolved_and_says_why() {
    for (text, part) in [("n / (occupancy_block - 256)", "zero"), ("0 - n", "-1000"), ("m", "m")] {
        let job = launched(|plan| {
            plan.block = BlockPlan::Occupancy;
            let scope = [("n".to_owned(), Value::Int(1000))].into();
            plan.grid = GridPlan::AfterBlock { dims: vec![text.to_owned()], scope };
        });
        let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
        let Outcome::Unresolved { message } = said.outcome("it") else { panic!("{:?}", said.outcome("it")) };
        assert!(message.starts_with(&format!("grid `{text}`: ")) && message.contains(part), "{message}");
    }
}

#[test]
fn an_occupancy_grid_of_a_kernel_that_fits_no_sm_is_invalid() {
    let mut info = device_info();
    info.max_threads_per_sm = 512;
    let job = launched(|plan| {
        plan.block = BlockPlan::Fixed([1024, 1, 1]);
        plan.grid = GridPlan::Occupancy;
    });
    let said = run(FakeDevice::new(info).with_kernel("it", kernel(right)), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Invalid { limit: "no block of 1024 threads fits on an SM".to_owned() });
    assert!(said.device.launched().is_empty());
}

#[test]
fn what_the_device_knows_of_a_kernel_is_recorded() {
    let resources =
        KernelResources { registers: Some(40), shared_static: Some(512), local: Some(8), ..KernelResources::default() };
    let said = run(device(vec![("it", kernel(right).with_resources(resources))]), &group(vec![copy("it")]));
    assert_eq!(launches(&said, "it")[0].resources, resources);
}

#[test]
fn a_case_that_was_not_compiled_and_an_unknown_kernel_are_launch_errors() {
    let job = launched(|plan| plan.compiled = None);
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::LaunchError { message: "`it` was not compiled".to_owned() });
    let said = run(device(vec![]), &group(vec![copy("it")]));
    assert!(matches!(said.outcome("it"), Outcome::LaunchError { message } if message.contains("no kernel `it`")));
}

#[test]
fn a_case_without_content_for_its_input_is_unresolved() {
    let mut job = copy("it");
    job.buffers[0].fill = None;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job.clone()]));
    let Outcome::Unresolved { message } = said.outcome("it") else { panic!() };
    assert_eq!(message, "buffer `input` has no content before the launch: give it a fill");
    job.buffers[0].fill = Some(FillPlan::Constant(Value::Float(0.5)));
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    let Outcome::Unresolved { message } = said.outcome("it") else { panic!() };
    assert_eq!(message, "buffer `input`: its fill has 0.5, which is not a value of i32");
}

#[test]
fn a_group_says_where_its_time_went_and_what_it_is_about_to_do() {
    let mut job = copy("it");
    job.checks.push(copies(ElementType::I32));
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert!(matches!(said.events.first(), Some(Event::GroupStarted { cases: 1, .. })));
    assert!(matches!(said.events.last(), Some(Event::GroupFinished { .. })));
    assert!(said.events.iter().any(|event| matches!(event, Event::PhaseSpent { .. })));
    for event in &said.events {
        if let Event::CaseActive { limit, .. } = event {
            assert!(*limit >= 30.0, "the manifest's time limit is 30 s: {limit}");
        }
    }
}

#[test]
fn a_group_of_no_cases_begins_and_ends() {
    let job = GroupJob { baseline: None, ..group(vec![]) };
    let said = run(device(vec![]), &job);
    assert_eq!(said.result, Ok(()));
    assert!(matches!(said.events.first(), Some(Event::GroupStarted { cases: 0, .. })));
    assert!(matches!(said.events.last(), Some(Event::GroupFinished { .. })));
}

#[test]
fn a_search_drops_a_case_when_two_samples_are_above_its_limit() {
    let limited = |name: &str| {
        let mut job = copy(name);
        job.measure.drop_above = Some(1500.0);
        job
    };
    // The second kernel's second sample is short.
    let kernels = vec![
        ("good", timed(|_| 1000.0)),
        ("mixed", timed(|launch| if launch == 3 { 1400.0 } else { 2000.0 })),
        ("slow", timed(|_| 2000.0)),
    ];
    let job = GroupJob { baseline: None, ..group(["good", "mixed", "slow"].map(limited).to_vec()) };
    let said = run(device(kernels), &job);
    assert_eq!(samples(&said, "slow"), [2000.0, 2000.0]);
    assert!(samples(&said, "good").len() >= 10 && samples(&said, "mixed").len() >= 10);
}
