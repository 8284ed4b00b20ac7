//! Kernels that read an output before they write it, on a device that does not know what was written.

use super::rig::*;
use fake_backend::Call;
use runner_backend::DeviceError;
use runner_types::{Access, CheckPlan, ElementType, ExpectPlan, FillPlan, Outcome, Unchecked, Value, Verdict};

/// A kernel that adds `factor` times its first argument to its second.
fn adds(factor: f32) -> impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static {
    move |call| {
        let floats = |bytes: Vec<u8>| -> Vec<f32> {
            bytes.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default())).collect()
        };
        let (input, before) = (floats(call.read(0)?), floats(call.read(1)?));
        let sums = input.iter().zip(before).flat_map(|(x, y)| (factor * x + y).to_le_bytes());
        call.write(1, 0, &sums.collect::<Vec<u8>>())
    }
}

/// Adds its first argument to its second, for integers.
fn adds_integers(call: &mut Call<'_>) -> Result<(), DeviceError> {
    let integers = |bytes: Vec<u8>| -> Vec<i32> {
        bytes.chunks(4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap_or_default())).collect()
    };
    let (input, before) = (integers(call.read(0)?), integers(call.read(1)?));
    let sums = input.iter().zip(before).flat_map(|(x, y)| x.wrapping_add(y).to_le_bytes());
    call.write(1, 0, &sums.collect::<Vec<u8>>())
}

/// A group whose second case expects what the first, unchecked one computes.
fn pair(element: ElementType) -> [runner_types::CaseJob; 2] {
    let (mut plain, mut other) = (case("plain", element), case("other", element));
    plain.checks.clear();
    other.checks = vec![CheckPlan { expect: ExpectPlan::Variant("plain".to_owned()), ..copies(element) }];
    [plain, other]
}

const NAN: &str = "out: NaN, although no input is NaN or infinite; an output that a kernel reads before it writes it \
                   needs `access = \"inout\"`";

#[test]
fn two_kernels_that_read_their_poisoned_output_are_not_right_because_both_are_nan() {
    let kernels = vec![("plain", kernel(adds(1.0))), ("other", kernel(adds(2.0)))];
    let said = run(device(kernels), &group(pair(ElementType::F32).into()));
    let mismatch = said.mismatch("plain");
    assert!(mismatch.what.starts_with(NAN), "{}", mismatch.what);
    assert_eq!((mismatch.index, mismatch.wrong, mismatch.of, mismatch.got.as_str()), (0, N, N, "NaN"));
    assert!(matches!(said.outcome("other"), Outcome::NotRun { .. }), "{:?}", said.outcome("other"));
}

#[test]
fn a_kernel_without_a_check_that_reads_its_poisoned_output_is_wrong() {
    let [plain, _] = pair(ElementType::F32);
    let what = run(device(vec![("plain", kernel(adds(1.0)))]), &group(vec![plain.clone()])).mismatch("plain").what;
    assert!(what.starts_with(NAN), "{what}");
    let said = run(device(vec![("plain", kernel(right))]), &group(vec![plain]));
    assert_eq!(said.verdict("plain"), Some(&Verdict::Unchecked(Unchecked::NoCheck)));
}

#[test]
fn nan_in_an_input_may_be_in_the_result() {
    for special in [f64::NAN, f64::INFINITY] {
        let mut jobs = pair(ElementType::F32);
        for job in &mut jobs {
            let mut values = vec![Value::Float(1.0); N as usize];
            values[7] = Value::Float(special);
            job.buffers[0].fill = Some(FillPlan::List(values));
        }
        // Infinity minus itself is NaN.
        let cancels = |call: &mut Call<'_>| {
            let input = call.read(0)?;
            let zeros = input.chunks(4).flat_map(|bytes| {
                let x = f32::from_le_bytes(bytes.try_into().unwrap_or_default());
                (x - x).to_le_bytes()
            });
            call.write(1, 0, &zeros.collect::<Vec<u8>>())
        };
        let said = run(device(vec![("plain", kernel(cancels)), ("other", kernel(cancels))]), &group(jobs.into()));
        assert_eq!([said.outcome("plain"), said.outcome("other")], [Outcome::Measured, Outcome::Measured]);
    }
}

#[test]
fn integers_that_depend_on_the_poison_are_wrong_and_the_message_says_why() {
    let kernels = || vec![("plain", kernel(adds_integers)), ("other", kernel(adds_integers))];
    let what = run(device(kernels()), &group(pair(ElementType::I32).into())).mismatch("other").what;
    assert!(what.contains("in a second launch") && what.contains("read before it is written"), "{what}");
    // If inputs change, the further launches find what the previous one left, just as the reference's launches do.
    let mut jobs = pair(ElementType::I32);
    for job in &mut jobs {
        job.buffers[0].fill = Some(FillPlan::Uniform { low: Value::Int(0), high: Value::Int(1 << 30), seed: 5 });
    }
    let what = run(device(kernels()), &group(jobs.into())).mismatch("other").what;
    assert!(what.contains("in timed") && what.contains("read before it is written"), "{what}");
    // An `inout` buffer has the same content before every launch.
    let mut jobs = pair(ElementType::I32);
    for job in &mut jobs {
        job.buffers[1] = buffer("out", ElementType::I32, N, Access::InOut);
    }
    assert_eq!(run(device(kernels()), &group(jobs.into())).outcome("other"), Outcome::Measured);
}

#[test]
fn a_kernel_that_is_wrong_for_another_reason_gets_no_such_advice() {
    let late = |call: &mut Call<'_>| {
        if call.nth < 4 {
            return right(call);
        }
        call.write(1, 0, &[7; 4 * N as usize])
    };
    let what = run_one(late).mismatch("it").what;
    assert!(what.contains("in timed") && !what.contains("read before"), "{what}");
}
