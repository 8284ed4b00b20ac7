//! Checks whether a node is fit for measuring. The check creates no context, so it does not use the GPU.

use runner_backend::cuda::Health;
use runner_lang::format::bytes;
use runner_types::ThrottleReason;

/// Fraction of a GPU's memory that must be free.
const LEAST_FREE: f64 = 0.9;

/// Reasons not to measure on a GPU. `name` is the expected model and `driver` the expected prefix of the driver
/// version. Values that NVML does not report are not faults.
pub fn faults(health: &Health, name: &str, driver: Option<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    if health.name != name {
        faults.push(format!("the GPU is {}, expected {name}", health.name));
    }
    let version = health.driver.as_deref().unwrap_or("of unknown version");
    if let Some(expected) = driver.filter(|expected| !version.starts_with(*expected)) {
        faults.push(format!("the driver is {version}, expected {expected}"));
    }
    if let Some((total, free)) = health.memory
        && (free.0 as f64) < LEAST_FREE * total.0 as f64
    {
        faults.push(format!("only {} of {} GPU memory is free", bytes(free.0), bytes(total.0)));
    }
    if let Some(processes) = health.processes.filter(|processes| *processes > 0) {
        faults.push(format!("other processes use the GPU: {processes}"));
    }
    if !health.throttled_by.is_empty() {
        let reasons: Vec<&str> = health.throttled_by.iter().copied().map(words).collect();
        faults.push(format!("the GPU is throttled: {}", reasons.join(", ")));
    }
    if let Some(errors) = health.uncorrected_errors.filter(|errors| *errors > 0) {
        faults.push(format!("its memory has had uncorrected errors: {errors}"));
    }
    faults
}

const fn words(reason: ThrottleReason) -> &'static str {
    match reason {
        ThrottleReason::PowerCap => "power limit",
        ThrottleReason::HardwareSlowdown => "hardware slowdown",
        ThrottleReason::SyncBoost => "boost clock synchronized with a slower GPU",
        ThrottleReason::Temperature | ThrottleReason::HardwareTemperature => "temperature",
        ThrottleReason::PowerBrake => "power brake",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Bytes;

    fn h100() -> Health {
        Health {
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            driver: Some("580.159.04".to_owned()),
            memory: Some((Bytes(80 << 30), Bytes(79 << 30))),
            processes: Some(0),
            throttled_by: Vec::new(),
            uncorrected_errors: Some(0),
        }
    }

    #[test]
    fn a_healthy_gpu_has_no_faults_and_neither_has_one_that_nothing_is_known_of() {
        assert_eq!(faults(&h100(), "NVIDIA H100 80GB HBM3", Some("580")), [""; 0]);
        let unknown = Health { memory: None, processes: None, uncorrected_errors: None, ..h100() };
        assert_eq!(faults(&unknown, "NVIDIA H100 80GB HBM3", None), [""; 0]);
    }

    #[test]
    fn every_fault_is_named() {
        let sick = Health {
            memory: Some((Bytes(80 << 30), Bytes(40 << 30))),
            processes: Some(2),
            throttled_by: vec![ThrottleReason::PowerBrake],
            uncorrected_errors: Some(3),
            ..h100()
        };
        let found = faults(&sick, "NVIDIA A100-SXM4-80GB", Some("570"));
        let expected = [
            "the GPU is NVIDIA H100 80GB HBM3, expected NVIDIA A100-SXM4-80GB",
            "the driver is 580.159.04, expected 570",
            "only 40 GiB of 80 GiB GPU memory is free",
            "other processes use the GPU: 2",
            "the GPU is throttled: power brake",
            "its memory has had uncorrected errors: 3",
        ];
        assert_eq!(found, expected);
    }
}
