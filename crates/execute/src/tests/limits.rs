//! How long a step may take, and who ends it.

use std::time::Duration;

use super::rig::{Said, case, device, group, kernel, right, run};
use runner_backend::DeviceError;
use runner_types::{Activity, ElementType, Event, Outcome};

/// Time limits of all measuring steps in seconds, as reported to the dispatcher.
fn reported_limits(said: &Said) -> Vec<f64> {
    let limit = |event: &Event| match event {
        Event::CaseActive { activity: Activity::Measuring, limit, .. } => Some(*limit),
        _ => None,
    };
    said.events.iter().filter_map(limit).collect()
}

#[test]
fn a_device_that_ends_its_kernels_has_the_limit_and_its_dispatcher_a_later_one() {
    let job = || {
        let mut job = case("it", ElementType::I32);
        job.measure.timeout = 2.0;
        group(vec![job])
    };
    let said = run(device(vec![("it", kernel(right))]).that_ends_kernels(), &job());
    // A warm-up and ten samples.
    assert_eq!(reported_limits(&said), [7.0; 11]);
    let kept = said.device.limits().iter().filter(|limit| **limit == Duration::from_secs(2));
    assert_eq!(kept.count(), 2 + 11, "both launches of the check have the limit too: {:?}", said.device.limits());
    let other = run(device(vec![("it", kernel(right))]), &job());
    assert_eq!((reported_limits(&other), other.device.limits()), (vec![2.0; 11], &[][..]));
}

#[test]
fn a_kernel_that_the_device_ends_costs_its_own_row_and_says_where_it_was() {
    let endless = kernel(|_| {
        let message = "warp 2 runs in kernel `endless` at k.cu:9".to_owned();
        Err(DeviceError::TimedOut { limit: Duration::from_millis(1500), message, printed: String::new() })
    });
    let jobs = ["a", "endless", "b"].map(|name| case(name, ElementType::I32)).to_vec();
    let kernels = vec![("a", kernel(right)), ("endless", endless), ("b", kernel(right))];
    let said = run(device(kernels).that_ends_kernels(), &group(jobs));
    let message = Some("warp 2 runs in kernel `endless` at k.cu:9".to_owned());
    assert_eq!(said.outcome("endless"), Outcome::TimedOut { limit_seconds: 1.5, message });
    assert_eq!((said.outcome("a"), said.outcome("b")), (Outcome::Measured, Outcome::Measured));
}
