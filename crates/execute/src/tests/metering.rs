//! Energy, measured in a separate pass after timing.

use super::rig::{Said, case, device, group, kernel, right, run};
use fake_backend::FakeDevice;
use runner_types::{ElementType, Energy, Event, Note, Outcome};

/// Runs two correct variants of 2 ms and 6 ms; `asks` names the cases that request energy.
fn said(asks: &[&str], change: impl Fn(FakeDevice) -> FakeDevice) -> Said {
    let kernels = vec![("base", kernel(right).taking(|_| 2e6)), ("other", kernel(right).taking(|_| 6e6))];
    let jobs = ["base", "other"].map(|name| {
        let mut job = case(name, ElementType::I32);
        job.measure.energy = asks.contains(&name);
        job
    });
    run(change(device(kernels)), &group(jobs.to_vec()))
}

fn energy(said: &Said, variant: &str) -> Option<Energy> {
    said.events.iter().find_map(|event| match event {
        Event::CaseMetered { case, energy } if case.key.variant == variant => Some(*energy),
        _ => None,
    })
}

#[test]
fn the_energy_of_a_run_is_the_power_for_as_long_as_it_takes() {
    let said = said(&["base", "other"], |device| device.with_energy(400.0, 0.1));
    for (variant, joules) in [("base", 0.8), ("other", 2.4)] {
        let found = energy(&said, variant).unwrap();
        assert!((found.per_run.0 / joules - 1.0).abs() < 0.01, "{variant}: {found:?}");
        assert!((found.power.0 / 400.0 - 1.0).abs() < 0.01, "{variant}: {found:?}");
        assert!(found.seconds >= 1.19 && found.uncertainty <= 0.1, "{variant}: {found:?}");
        assert_eq!(said.outcome(variant), Outcome::Measured);
    }
}

#[test]
fn no_sample_knows_of_the_pass() {
    let without = said(&[], |device| device.with_energy(400.0, 0.1));
    let with = said(&["other"], |device| device.with_energy(400.0, 0.1));
    assert!(energy(&without, "other").is_none() && energy(&with, "base").is_none());
    for variant in ["base", "other"] {
        assert_eq!(with.measurement(variant), without.measurement(variant), "{variant}");
    }
    let place = |wanted: fn(&Event) -> bool| with.events.iter().position(wanted).unwrap();
    let metered = place(|event| matches!(event, Event::CaseMetered { .. }));
    assert!(metered < place(|event| matches!(event, Event::CaseMeasured { .. })), "it belongs to the open cases");
}

#[test]
fn a_device_that_counts_no_energy_says_so_once_and_is_measured() {
    let said = said(&["base", "other"], |device| device);
    let missing: Vec<&Event> = said.events.iter().filter(|e| matches!(e, Event::EnergyMissing { .. })).collect();
    assert_eq!(missing, [&Event::EnergyMissing { why: "the fake device does not measure energy".to_owned() }]);
    assert_eq!((said.outcome("base"), said.outcome("other")), (Outcome::Measured, Outcome::Measured));
}

#[test]
fn a_counter_that_stands_still_is_given_up_and_told() {
    let said = said(&["other"], |device| device.with_energy(0.0, 0.1));
    let none = Note::NoEnergy { moved: 0, seconds: 20.0, needed: 10 };
    let is_reported = said
        .events
        .iter()
        .any(|event| matches!(event, Event::CaseNote { case, note } if case.key.variant == "other" && *note == none));
    assert!(is_reported && energy(&said, "other").is_none());
    assert_eq!(said.outcome("other"), Outcome::Measured);
}

#[test]
fn a_case_that_is_wrong_is_not_run_for_its_energy() {
    let kernels = vec![("base", kernel(right).taking(|_| 2e6)), ("other", kernel(|_| Ok(())).taking(|_| 2e6))];
    let jobs = ["base", "other"].map(|name| {
        let mut job = case(name, ElementType::I32);
        job.measure.energy = true;
        job
    });
    let said = run(device(kernels).with_energy(400.0, 0.1), &group(jobs.to_vec()));
    assert_eq!(said.outcome("other").name(), "wrong");
    assert!(energy(&said, "base").is_some() && energy(&said, "other").is_none());
}
