//! Host functions are bound, checked, measured and moved to other buffers just as kernels are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::rig::{case, device, group, kernel, launch, right, run};
use fake_backend::Call;
use runner_backend::{BufferId, LaunchArg};
use runner_types::{BodyPlan, CaseJob, ElementType, HostPlan, Outcome, Regime, Verdict};

/// The variant `name` copies `input` to `out` with the host function of the same name.
fn calls(name: &str) -> CaseJob {
    let launch = launch(name, &["input", "out"]);
    let host = HostPlan { unit: launch.unit, compiled: launch.compiled, function: name.to_owned(), args: launch.args };
    CaseJob { body: BodyPlan::Host(Box::new(host)), ..case(name, ElementType::I32) }
}

#[test]
fn a_host_function_is_checked_and_measured_beside_a_kernel() {
    let cases = vec![case("kernel", ElementType::I32), calls("library"), calls("wrong")];
    let nothing = |_: &mut Call<'_>| Ok(());
    let kernels = vec![("kernel", kernel(right)), ("library", kernel(right)), ("wrong", kernel(nothing))];
    let said = run(device(kernels), &group(cases));
    assert_eq!(said.verdict("library"), Some(&Verdict::Pass));
    assert_eq!(said.outcome("library"), Outcome::Measured);
    let (own, baseline) = (said.measurement("library").unwrap(), said.measurement("kernel").unwrap());
    assert_eq!(own.rounds.len(), 10);
    let partner = |round: u32| baseline.rounds.iter().any(|other| other.round == round);
    assert!(own.rounds.iter().all(|round| partner(round.round)), "they are interleaved");
    let mismatch = said.mismatch("wrong");
    assert!(mismatch.got.ends_with("(never written)"), "{mismatch:?}");
}

#[test]
fn a_function_that_the_device_does_not_have_costs_its_own_row() {
    let cases = vec![case("kernel", ElementType::I32), calls("absent")];
    let said = run(device(vec![("kernel", kernel(right))]), &group(cases));
    assert_eq!(said.outcome("kernel"), Outcome::Measured);
    let message = "kernel: there is no kernel `absent`".to_owned();
    assert_eq!(said.outcome("absent"), Outcome::LaunchError { message });
}

#[test]
fn a_function_that_was_not_compiled_costs_its_own_row() {
    let mut job = calls("it");
    if let BodyPlan::Host(host) = &mut job.body {
        host.compiled = None;
    }
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::LaunchError { message: "`it` was not compiled".to_owned() });
}

#[test]
fn where_buffers_rotate_each_set_reaches_the_function_and_a_call_counts_as_eight_operations() {
    let seen: Arc<Mutex<BTreeSet<BufferId>>> = Arc::default();
    let body = {
        let seen = Arc::clone(&seen);
        move |call: &mut Call<'_>| {
            if let LaunchArg::Buffer(id) = call.args()[1] {
                seen.lock().unwrap().insert(id);
            }
            right(call)
        }
    };
    let mut job = calls("it");
    job.measure.regimes = vec![Regime::Rotate];
    let said = run(device(vec![("it", kernel(body).taking(|_| 100.0))]), &group(vec![job]));
    let measured = said.measurement("it").unwrap();
    // The fake L2 is one megabyte, and there are never more than 32 sets; 384 operations are 48 calls, half of which
    // are lead-in.
    assert_eq!((seen.lock().unwrap().len(), measured.sets), (32, 32));
    assert_eq!(measured.launches, 24);
}

#[test]
fn a_profiler_is_shown_nothing_of_what_a_host_function_launches() {
    let said = run(device(vec![("it", kernel(right))]).watched(), &group(vec![calls("it")]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
    assert!(said.device.counted().is_empty());
}
