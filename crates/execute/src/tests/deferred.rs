//! Cases that do not fit in memory together with the others of their group.

use super::rig::{buffer, case, device, group, kernel, right, run};
use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_backend::{Device, DeviceError};
use runner_types::{
    Access, ArgPlan, BodyPlan, Bytes, CaseJob, ElementType, ExpectPlan, Mismatch, Note, Outcome, RanAloneReason,
    Unchecked, Verdict,
};

/// Enough memory for two buffers of a few thousand bytes with their guard zones, but not for three.
const ROOM: u64 = 300_000;

fn small(kernels: Vec<(&str, FakeKernel)>) -> FakeDevice {
    with_memory(ROOM, kernels)
}

fn with_memory(bytes: u64, kernels: Vec<(&str, FakeKernel)>) -> FakeDevice {
    let mut info = device_info();
    info.memory_bytes = Bytes(bytes);
    kernels.into_iter().fold(FakeDevice::new(info), |device, (name, kernel)| device.with_kernel(name, kernel))
}

/// A case that copies arrays of `len` elements, so that no other length shares its buffers.
fn copy(name: &str, len: u64) -> CaseJob {
    let mut job = case(name, ElementType::I32);
    job.buffers.iter_mut().for_each(|buffer| buffer.len = len);
    job
}

const NO_ROOM: Note = Note::RanAlone { why: RanAloneReason::Memory, timed: true };

#[test]
fn a_case_that_fits_alone_only_runs_after_the_others_and_says_so() {
    let kernels = || ["a", "large", "c"].map(|name| (name, kernel(right))).to_vec();
    let said = run(small(kernels()), &group(vec![copy("a", 1000), copy("large", 1001), copy("c", 1000)]));
    for (name, alone, expected) in [("a", false, &[][..]), ("large", true, &[NO_ROOM]), ("c", false, &[])] {
        assert_eq!((said.outcome(name), said.notes(name)), (Outcome::Measured, expected.to_vec()), "{name}");
        assert_eq!(said.measurement(name).unwrap().alone, alone, "{name}");
    }
    let launched = said.device.launched();
    let first = launched.iter().position(|name| *name == "large").unwrap();
    assert!(launched[first..].iter().all(|name| *name == "large"), "{launched:?}");
    // Two launches that are checked, a warm-up and ten samples.
    assert_eq!(launched[first..].len(), 13);
    assert_eq!(said.device.memory_free(), Some(ROOM));
    // With enough memory no case runs alone.
    let roomy = run(device(kernels()), &group(vec![copy("a", 1000), copy("large", 1001), copy("c", 1000)]));
    assert_eq!((roomy.measurement("large").unwrap().alone, roomy.notes("large").len()), (false, 0));
}

#[test]
fn a_case_alone_is_checked_as_the_others_are() {
    let wrong = kernel(|call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 4 * 70, &[0; 4])
    });
    let jobs = vec![copy("a", 1000), copy("large", 1001)];
    let said = run(small(vec![("a", kernel(right)), ("large", wrong)]), &group(jobs));
    let Mismatch { index, expected, wrong, of, .. } = said.mismatch("large");
    assert_eq!((index, expected.as_str(), wrong, of), (70, "71", 1, 1001));
    assert_eq!(said.outcome("a"), Outcome::Measured);
}

#[test]
fn a_case_that_has_no_room_alone_either_ends_there() {
    let jobs = vec![copy("a", 1000), copy("large", 100_000)];
    let said = run(small(vec![("a", kernel(right)), ("large", kernel(right))]), &group(jobs));
    // 400,000 bytes and two guard zones of 65,536 each.
    assert_eq!(said.outcome("large"), Outcome::OutOfMemory { needed: 531_072, available: ROOM });
    assert_eq!((said.outcome("a"), said.notes("large")), (Outcome::Measured, vec![NO_ROOM]));
    assert_eq!(said.device.memory_free(), Some(ROOM));
}

#[test]
fn a_case_without_company_is_not_run_twice() {
    let said = run(small(vec![("large", kernel(right))]), &group(vec![copy("large", 100_000)]));
    assert!(matches!(said.outcome("large"), Outcome::OutOfMemory { .. }));
    assert!(said.notes("large").is_empty());
}

#[test]
fn several_that_have_no_room_each_run_alone() {
    let jobs = (0..4).map(|i| copy(["a", "b", "c", "d"][i], 1000 + i as u64)).collect();
    let said = run(small(["a", "b", "c", "d"].map(|name| (name, kernel(right))).to_vec()), &group(jobs));
    for name in ["b", "c", "d"] {
        assert_eq!((said.outcome(name), said.measurement(name).unwrap().alone), (Outcome::Measured, true));
        assert!(said.measurement(name).unwrap().control.is_empty());
    }
    assert_eq!(said.outcome("a"), Outcome::Measured);
    assert_eq!(said.device.memory_free(), Some(ROOM));
}

/// A kernel that runs out of local memory in its third launch, the first sample.
#[test]
fn memory_that_runs_out_while_samples_are_taken_is_tried_alone_too() {
    let needy = kernel(|call: &mut Call<'_>| match call.nth {
        2 => Err(DeviceError::OutOfMemory { needed: 9, available: 0 }),
        _ => right(call),
    });
    let jobs = vec![copy("a", 1000), copy("needy", 1000)];
    let said = run(small(vec![("a", kernel(right)), ("needy", needy)]), &group(jobs));
    assert_eq!((said.outcome("needy"), said.notes("needy")), (Outcome::Measured, vec![NO_ROOM]));
    let measurement = said.measurement("needy").unwrap();
    assert_eq!((measurement.alone, measurement.rounds.len()), (true, 10));
    assert_eq!((said.outcome("a"), said.measurement("a").unwrap().alone), (Outcome::Measured, false));
}

#[test]
fn those_that_are_compared_with_a_case_that_waits_wait_for_it() {
    let mut job = group(["a", "b", "naive"].map(|name| copy(name, 1000)).to_vec());
    // Both `a` and `naive` have a third buffer, and there is room for only one of them.
    for (place, own) in [(0, "for a"), (2, "for naive")] {
        let BodyPlan::Launches(launches) = &mut job.cases[place].body else { panic!() };
        launches[0].args.push(ArgPlan::Buffer(own.to_owned()));
        job.cases[place].buffers.push(buffer(own, ElementType::I32, 10, Access::Scratch));
    }
    for case in &mut job.cases[1..] {
        case.checks[0].expect = ExpectPlan::Variant("naive".to_owned());
    }
    let kernels = ["a", "b", "naive"].map(|name| (name, kernel(right))).to_vec();
    let said = run(with_memory(410_000, kernels), &job);
    assert_eq!(said.verdict("naive"), Some(&Verdict::Unchecked(Unchecked::IsReference)));
    assert_eq!(said.verdict("b"), Some(&Verdict::Pass));
    for name in ["a", "b", "naive"] {
        assert_eq!((said.outcome(name), said.measurement(name).unwrap().alone), (Outcome::Measured, name != "a"));
    }
    assert_eq!(said.notes("naive"), [NO_ROOM]);
    let why = RanAloneReason::Reference("naive".to_owned());
    assert_eq!(said.notes("b"), [Note::RanAlone { why, timed: true }]);
}
