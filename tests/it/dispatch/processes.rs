//! Groups that several processes measure, one after the other.

use std::collections::BTreeSet;

use runner::model::{Event, GroupJob, Measurement, Spread};

use super::scripted::{group, spec};
use super::{Run, kind, run_prepared};

fn run(groups: Vec<GroupJob>, spread: Option<Spread>) -> Run {
    run_prepared(groups, |_, _| {}, spec, |pool| pool.spread_samples(spread))
}

fn of_processes(processes: u32, variants: &[&str]) -> GroupJob {
    let mut group = group(0, variants);
    group.cases.iter_mut().for_each(|case| case.measure.processes = Some(processes));
    group
}

impl Run {
    fn measurements(&self) -> Vec<(&str, &Measurement)> {
        let measured = self.events.iter().filter_map(|event| match event {
            Event::CaseMeasured { case, measurement } => Some((case.key.variant.as_str(), measurement)),
            _ => None,
        });
        measured.collect()
    }
}

#[test]
fn three_processes_measure_a_group_and_its_cases_have_one_result() {
    let run = run(vec![of_processes(3, &["tells_its_process", "a"])], None);
    assert_eq!(run.names(), [("tells_its_process", "measured"), ("a", "measured")]);
    assert_eq!(run.attempts, ["tells_its_process a of baseline Some(0)"; 3]);
    let measured = run.measurements();
    assert_eq!(measured.iter().map(|(variant, _)| *variant).collect::<Vec<_>>(), ["tells_its_process", "a"]);
    for (variant, measurement) in &measured {
        let rounds: Vec<(u32, u32)> = measurement.rounds.iter().map(|round| (round.process, round.round)).collect();
        assert_eq!(rounds, [(0, 0), (1, 1), (2, 2)], "{variant}");
    }
    let ids: BTreeSet<u64> = measured[0].1.rounds.iter().map(|round| round.whole as u64).collect();
    assert_eq!(ids.len(), 3, "each is a process of its own: {ids:?}");
    let of_group = run.events.iter().map(kind).filter(|kind| ["group_started", "group_finished"].contains(kind));
    assert_eq!(of_group.collect::<Vec<_>>(), ["group_started", "group_finished"]);
}

/// Samples of two nanoseconds need many more than five processes if these differ by 50 ns.
#[test]
fn without_a_number_short_kernels_are_measured_by_five_processes_and_by_one_if_their_difference_is_unknown() {
    let spread = Spread { nanoseconds: 50.0, relative: 0.0, processes: 5 };
    let count = |spread| run(vec![group(0, &["a", "b"])], spread).attempts.len();
    assert_eq!((count(Some(spread)), count(None)), (5, 1));
    let exact = Spread { nanoseconds: 1e-3, ..spread };
    assert_eq!(count(Some(exact)), 1);
}

#[test]
fn a_case_that_is_wrong_in_another_process_is_wrong_and_the_others_are_measured_by_all() {
    let run = run(vec![of_processes(2, &["a", "is_wrong_in_another_process"])], None);
    assert_eq!(run.names(), [("is_wrong_in_another_process", "wrong"), ("a", "measured")]);
    let counts: Vec<(&str, usize)> =
        run.measurements().into_iter().map(|(variant, measured)| (variant, measured.rounds.len())).collect();
    assert_eq!(counts, [("a", 2)]);
}

#[test]
fn a_worker_that_cannot_be_started_again_leaves_what_the_first_has_measured() {
    let run = run(vec![of_processes(2, &["a", "breaks_the_device_afterwards"])], None);
    assert_eq!(run.names(), [("a", "measured"), ("breaks_the_device_afterwards", "measured")]);
    assert!(run.measurements().iter().all(|(_, measured)| measured.rounds.len() == 1));
    assert!(matches!(run.end, runner::dispatch::RunEnd::Environment(_)), "{:?}", run.end);
}
