//! Misbehaving kernels, run by the real group execution on the fake device, in a worker and in this process.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;

use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_backend::{Device, DeviceError};
use runner_types::{
    Access, ArgPlan, BlockPlan, BodyPlan, BufferPlan, CheckPlan, ElementType, Event, ExpectPlan, FillPlan, GroupJob,
    LaunchPlan, Outcome, RefExpr, RefFunction, Tolerance, Value, WholeTolerance,
};
use runner_workers::{Interrupt, RunEnd, inline, worker};

use super::scripted::{self, LIMIT, NEVER, as_worker, spec_of};
use super::{Run, message, run_with};

/// Every kernel of the device; a variant is named after its kernel.
const KERNELS: [&str; 7] =
    ["copies", "copies_too", "never_ends", "never_ends_when_timed", "aborts", "writes_nowhere", "writes_zeros"];

/// Behaviour of the kernels in worker number `generation`. A correct kernel copies its first argument to its second.
fn kernel(name: &'static str, generation: u32) -> FakeKernel {
    let body = move |call: &mut Call<'_>| -> Result<(), DeviceError> {
        match (name, call.nth) {
            // The first two launches are checked before anything is timed.
            ("never_ends", _) | ("never_ends_when_timed", 2..) => thread::sleep(NEVER),
            ("aborts", _) => std::process::abort(),
            ("writes_nowhere", _) => return call.write(1, 1 << 40, &[1]),
            ("writes_zeros", _) => return call.write(1, 0, &[0; 4]),
            _ => {}
        }
        let input = call.read(0)?;
        call.write(1, 0, &input)
    };
    // The time shows which worker a sample is from.
    FakeKernel::new(body).taking(move |_| f64::from(generation) * 1000.0)
}

fn device(generation: u32) -> FakeDevice {
    let add = |device: FakeDevice, name| device.with_kernel(name, kernel(name, generation));
    KERNELS.into_iter().fold(FakeDevice::new(device_info()), add)
}

/// Not a test on its own: the worker's main function, if the environment asks for it.
#[test]
fn worker_entry() {
    let Some(folder) = as_worker() else { return };
    let file = folder.join("generation");
    let generation = fs::read_to_string(&file).map_or(1, |text| text.parse::<u32>().unwrap() + 1);
    fs::write(&file, generation.to_string()).unwrap();
    let mut cache = runner_execute::GroupCache::default();
    let run_group = |device: &mut dyn Device, job: &GroupJob, emit: &mut dyn FnMut(Event)| {
        runner_execute::run_group(device, job, &mut cache, emit)
    };
    worker::serve(|| Ok(Box::new(device(generation))), run_group, runner_calibrate::survey).unwrap();
}

/// Runs a group with an empty cache.
fn run_alone(device: &mut dyn Device, job: &GroupJob, emit: &mut dyn FnMut(Event)) -> Result<(), runner_execute::Lost> {
    runner_execute::run_group(device, job, &mut runner_execute::GroupCache::default(), emit)
}

/// Runs groups in workers that start at the entry point above.
fn run_in_workers(groups: Vec<GroupJob>) -> Run {
    run_with(groups, |_, _| {}, |folder: &Path| spec_of("kernels::worker_entry", folder))
}

/// A group in which each variant copies eight integers with its kernel.
fn group(ordinal: u32, variants: &[&str]) -> GroupJob {
    let mut group = scripted::group(ordinal, variants);
    for case in &mut group.cases {
        case.buffers = vec![buffer("input", Access::In), buffer("out", Access::Out)];
        case.body = BodyPlan::Launches(vec![launch(&case.case.key.variant)]);
        case.checks = vec![CheckPlan {
            text: "out".into(),
            actual: RefExpr::Buffer("out".into()),
            expect: ExpectPlan::Reference(RefExpr::Call {
                function: RefFunction::Copy,
                buffers: vec![RefExpr::Buffer("input".into())],
                integers: Vec::new(),
            }),
            tolerance: Tolerance::default_for(ElementType::I32),
            whole: WholeTolerance::default(),
            mask: None,
            error: false,
        }];
        case.measure.min_samples = 10;
        case.measure.max_samples = 20;
    }
    group
}

fn buffer(name: &str, access: Access) -> BufferPlan {
    let fill = (access == Access::In).then_some(FillPlan::Iota { start: Value::Int(1), step: Value::Int(1) });
    BufferPlan { fill, ..fake_backend::buffer_plan(name, ElementType::I32, 8, access) }
}

fn launch(kernel: &str) -> LaunchPlan {
    LaunchPlan {
        block: BlockPlan::Fixed([8, 1, 1]),
        args: vec![ArgPlan::Buffer("input".into()), ArgPlan::Buffer("out".into())],
        ..fake_backend::ready_launch("kernels/faults.cu", kernel)
    }
}

/// Measured variants and the workers that their samples come from, in event order.
fn sampled(events: &[Event]) -> Vec<(&str, Vec<f64>)> {
    let mut sampled = Vec::new();
    for event in events {
        if let Event::CaseMeasured { case, measurement } = event {
            let mut workers: Vec<f64> = measurement.rounds.iter().map(|round| round.whole / 1000.0).collect();
            workers.dedup();
            sampled.push((case.key.variant.as_str(), workers));
        }
    }
    sampled
}

#[test]
fn a_matrix_with_every_fault_in_it_measures_every_right_row_in_one_worker() {
    let all =
        ["copies", "never_ends", "aborts", "writes_nowhere", "writes_zeros", "never_ends_when_timed", "copies_too"];
    let run = run_in_workers(vec![group(0, &all), group(1, &["copies", "copies_too"])]);
    assert_eq!(run.end, RunEnd::Complete);
    let expected = [
        ("never_ends", "timed_out"),
        ("aborts", "crashed"),
        ("writes_nowhere", "launch_error"),
        ("writes_zeros", "wrong"),
        ("never_ends_when_timed", "timed_out"),
        ("copies", "measured"),
        ("copies_too", "measured"),
        ("copies", "measured"),
        ("copies_too", "measured"),
    ];
    assert_eq!(run.names(), expected);
    assert_eq!(run.outcome("never_ends"), &Outcome::TimedOut { limit_seconds: LIMIT, message: None });
    assert!(message(run.outcome("aborts")).starts_with("the worker was killed by SIGABRT (it aborted itself)"));
    // Four cases end their worker, so the fifth worker finishes the group and runs the next one.
    let fifth = vec![5.0];
    let samples = ["copies", "copies_too", "copies", "copies_too"].map(|variant| (variant, fifth.clone()));
    assert_eq!(sampled(&run.events), samples);
}

#[test]
fn a_group_that_cannot_be_sent_says_why() {
    let mut odd = group(0, &["copies"]);
    odd.cases[0].buffers[0].fill = Some(FillPlan::Npy(OsStr::from_bytes(b"od\xffd.npy").into()));
    let run = run_in_workers(vec![odd, group(1, &["copies_too"])]);
    assert_eq!(run.names(), [("copies", "crashed"), ("copies_too", "measured")]);
    let said = message(run.outcome("copies"));
    assert!(said.contains("the group was not sent") && said.contains("UTF-8"), "{said}");
}

#[test]
fn in_this_process_a_group_runs_as_in_a_worker() {
    let mut events = Vec::new();
    let groups = [group(0, &["copies", "writes_zeros"])];
    let emit = &mut |event| events.push(event);
    let end = inline::run(&mut device(1), groups, emit, &Interrupt::new(), run_alone);
    assert_eq!(end, RunEnd::Complete);
    assert_eq!(outcomes(&events), [("writes_zeros", "wrong"), ("copies", "measured")]);
    let borders = |event: &&Event| matches!(event, Event::GroupStarted { .. } | Event::GroupFinished { .. });
    assert_eq!(events.iter().filter(borders).count(), 2, "a group begins and ends once");
}

#[test]
fn in_this_process_a_lost_device_ends_the_run_with_every_case_accounted_for() {
    let mut events = Vec::new();
    let groups = [group(0, &["writes_nowhere", "copies"]), group(1, &["copies_too"])];
    let emit = &mut |event| events.push(event);
    let end = inline::run(&mut device(1), groups, emit, &Interrupt::new(), run_alone);
    assert!(matches!(&end, RunEnd::Environment(why) if why.starts_with("the device is lost: ")), "{end:?}");
    let rows = [("writes_nowhere", "launch_error"), ("copies", "not_run"), ("copies_too", "not_run")];
    assert_eq!(outcomes(&events), rows);
}

#[test]
fn in_this_process_an_interrupt_stops_before_the_next_group() {
    let (interrupt, mut events) = (Interrupt::new(), Vec::new());
    let groups = [group(0, &["copies"]), group(1, &["copies_too"])];
    let emit = &mut |event| {
        interrupt.request();
        events.push(event);
    };
    let end = inline::run(&mut device(1), groups, emit, &interrupt, run_alone);
    assert_eq!(end, RunEnd::Interrupted);
    assert_eq!(outcomes(&events), [("copies", "measured"), ("copies_too", "not_run")]);
}

/// Variant and outcome of every case, in the order in which they were settled.
fn outcomes(events: &[Event]) -> Vec<(&str, &str)> {
    let mut settled = Vec::new();
    for event in events {
        if let Event::CaseSettled { case, outcome, .. } = event {
            settled.push((case.key.variant.as_str(), outcome.name()));
        }
    }
    settled
}
