//! What the device reports about itself between the rounds, and which samples count.

use super::rig::{Said, case, device, group, kernel, right, run};
use runner_types::{DeviceState, ElementType, Note, Outcome, Regime, Round, ThrottleReason};

fn state(sm_clock_mhz: u32, throttled_by: &[ThrottleReason]) -> DeviceState {
    DeviceState { sm_clock_mhz: Some(sm_clock_mhz), throttled_by: throttled_by.to_vec(), ..DeviceState::default() }
}

/// Two variants on a device that reports these states, one after another.
fn in_states(states: Vec<DeviceState>) -> Said {
    let kernels = vec![("base", kernel(right)), ("other", kernel(right))];
    let jobs = ["base", "other"].map(|name| {
        let mut job = case(name, ElementType::I32);
        job.measure.max_samples = 400;
        job
    });
    run(device(kernels).in_states(states), &group(jobs.to_vec()))
}

fn numbers(rounds: &[Round]) -> Vec<u32> {
    rounds.iter().map(|round| round.round).collect()
}

#[test]
fn every_sample_has_the_clock_of_the_look_after_it() {
    let said = in_states(vec![state(1980, &[])]);
    for variant in ["base", "other"] {
        let measurement = said.measurement(variant).unwrap();
        assert_eq!(measurement.sm_clocks(), vec![1980; measurement.rounds.len()], "{variant}");
        assert!(measurement.discarded.is_empty() && said.notes(variant).is_empty(), "{variant}");
    }
}

#[test]
fn without_a_monitor_nothing_is_reported() {
    let said = in_states(vec![]);
    let measurement = said.measurement("other").unwrap();
    assert!(measurement.looks.is_empty() && measurement.sm_clocks().is_empty());
    assert_eq!(numbers(&measurement.rounds), (0..10).collect::<Vec<_>>());
}

#[test]
fn samples_next_to_a_look_that_finds_the_device_throttled_are_taken_anew() {
    let said = in_states(vec![state(1200, &[ThrottleReason::PowerCap]), state(1980, &[])]);
    for variant in ["base", "other"] {
        let measurement = said.measurement(variant).unwrap();
        assert!(measurement.rounds.len() >= 10, "{variant}: {:?}", numbers(&measurement.rounds));
        assert_eq!(measurement.discarded.first().map(|round| round.round), Some(0), "{variant}");
        // All samples up to the second look are adjacent to the first look.
        let second = measurement.looks[1].after;
        assert_eq!(numbers(&measurement.discarded), (0..=second).collect::<Vec<_>>(), "{variant}");
        assert!(measurement.rounds.iter().all(|round| round.round > second), "{variant}");
        assert!(measurement.sm_clocks().iter().all(|clock| *clock == 1980), "{variant}");
        let (reasons, discarded) = (vec![ThrottleReason::PowerCap], measurement.discarded.len() as u64);
        let expected = Note::Throttled { regime: Regime::Cold, reasons, discarded, kept: 0 };
        assert_eq!(said.notes(variant), [expected]);
        assert_eq!(said.outcome(variant), Outcome::Measured);
    }
}

#[test]
fn what_lasts_is_measured_all_the_same_and_noted() {
    let said = in_states(vec![state(1200, &[ThrottleReason::PowerCap, ThrottleReason::Temperature])]);
    let measurement = said.measurement("other").unwrap();
    assert_eq!(said.outcome("other"), Outcome::Measured);
    assert!(measurement.rounds.len() >= 10 && measurement.sm_clocks().contains(&1200));
    let noted = said.notes("other");
    let [Note::Throttled { reasons, kept, .. }] = noted.as_slice() else { panic!("{noted:?}") };
    assert_eq!(*reasons, [ThrottleReason::PowerCap, ThrottleReason::Temperature]);
    assert!(*kept > 0, "{noted:?}");
}

#[test]
fn a_lower_clock_alone_discards_nothing() {
    let said = in_states(vec![state(1980, &[]), state(1200, &[])]);
    let measurement = said.measurement("other").unwrap();
    assert!(measurement.discarded.is_empty());
    assert!(measurement.sm_clocks().contains(&1980));
}
