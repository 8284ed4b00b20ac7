//! A case whose launches write no output is never right.

use super::rig::*;
use fake_backend::{Call, FakeDevice, device_info};
use runner_backend::DeviceError;
use runner_types::{
    Access, ArgPlan, BodyPlan, Capabilities, CaseJob, CounterName, Counters, ElementType, ExpectPlan, Outcome,
    Unchecked, Verdict,
};

/// A case that must leave `out` as it was, although it reads `input`.
fn keeps_inout() -> CaseJob {
    let mut job = case("it", ElementType::I32);
    job.buffers[1] = buffer("out", ElementType::I32, N, Access::InOut);
    job
}

/// A device that counts stores like the simulator.
fn counting(kernel_body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) -> FakeDevice {
    let capabilities = Capabilities { has_clock: false, has_counters: true };
    let device = FakeDevice::new(runner_types::DeviceInfo { capabilities, ..device_info() });
    device.with_kernel("it", kernel(kernel_body))
}

/// A kernel that reports stores but changes nothing.
fn counts(stores: f64) -> impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static {
    move |call| {
        let names = [("ptx_gst_requests", stores), ("ptx_global_atomics", 0.0)];
        call.counters = Counters(names.into_iter().map(|(name, count)| (CounterName::from(name), count)).collect());
        Ok(())
    }
}

#[test]
fn a_kernel_that_stores_nothing_is_wrong_even_if_its_outputs_hold_what_is_expected() {
    let mismatch = run(counting(counts(0.0)), &group(vec![keeps_inout()])).mismatch("it");
    assert!(mismatch.what.starts_with("no launch wrote to an output (`out`): choose sizes"), "{}", mismatch.what);
    assert!(mismatch.what.contains("--arg NAME=4"), "{}", mismatch.what);
    assert_eq!((mismatch.got.as_str(), mismatch.wrong, mismatch.of), ("none (never written)", N, N));
}

#[test]
fn a_kernel_that_stores_what_an_output_held_is_right() {
    let said = run(counting(counts(32.0)), &group(vec![keeps_inout()]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
}

#[test]
fn without_counts_a_kernel_that_changes_nothing_is_unchecked() {
    let said = run(device(vec![("it", kernel(|_| Ok(())))]), &group(vec![keeps_inout()]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Unchecked(Unchecked::NothingChanged)));
}

#[test]
fn two_variants_that_write_nothing_do_not_agree() {
    let variant = |name: &str| {
        let mut job = case(name, ElementType::I32);
        job.checks[0].expect = ExpectPlan::Variant("it".to_owned());
        job
    };
    let nothing = || kernel(|_| Ok(()));
    let said =
        run(device(vec![("it", nothing()), ("other", nothing())]), &group(vec![variant("it"), variant("other")]));
    assert!(said.mismatch("it").what.starts_with("no launch wrote to an output (`out`)"), "{:?}", said.mismatch("it"));
    assert!(matches!(said.outcome("other"), Outcome::NotRun { .. }), "{:?}", said.outcome("other"));
}

#[test]
fn an_output_that_differs_far_from_its_beginning_was_written() {
    let late = |call: &mut Call<'_>| call.write(1, 4 * 300_000, &7_i32.to_le_bytes());
    let mut job = case("it", ElementType::I32);
    job.buffers[1].len = 400_000;
    job.body = BodyPlan::Launches(vec![launch("it", &["input", "out"])]);
    job.checks.clear();
    let mut other = job.clone();
    other.case.key.variant = "other".to_owned();
    other.checks =
        vec![runner_types::CheckPlan { expect: ExpectPlan::Variant("it".to_owned()), ..copies(ElementType::I32) }];
    if let BodyPlan::Launches(launches) = &mut other.body {
        launches[0].args[0] = ArgPlan::Buffer("input".to_owned());
    }
    let said = run(device(vec![("it", kernel(late))]), &group(vec![job, other]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Unchecked(Unchecked::IsReference)));
}

#[test]
fn without_an_input_element_there_is_nothing_to_do() {
    let mut job = keeps_inout();
    job.buffers[0].len = 0;
    job.checks[0].expect = ExpectPlan::Reference(call(runner_types::RefFunction::Copy, "out"));
    let said = run(counting(counts(0.0)), &group(vec![job]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
}
