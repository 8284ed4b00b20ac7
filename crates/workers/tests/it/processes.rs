//! Groups that several processes measure, one after another.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use runner_types::{Event, GroupJob, Measurement, Spread};
use runner_workers::Interrupt;

use super::scripted::{group, spec, spec_with_memory};
use super::{Run, kind, run_prepared};

fn run(groups: Vec<GroupJob>, spread: Option<Spread>) -> Run {
    run_prepared(groups, |_, _| {}, spec, |pool| pool.spread_samples(spread))
}

fn of_processes(processes: u32, variants: &[&str]) -> GroupJob {
    numbered(0, processes, variants)
}

fn numbered(ordinal: u32, processes: u32, variants: &[&str]) -> GroupJob {
    let mut group = group(ordinal, variants);
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

/// Process id of each round, by group. The run must be complete.
fn processes_of_groups(groups: Vec<GroupJob>, memory: u64) -> Vec<Vec<u64>> {
    let run =
        run_prepared(groups, |_, _| {}, |folder| spec_with_memory(folder, memory), |pool| pool.spread_samples(None));
    assert_eq!(run.end, runner_workers::RunEnd::Complete);
    let ids = run.measurements().into_iter().filter(|(variant, _)| *variant == "tells_its_process");
    ids.map(|(_, measurement)| measurement.rounds.iter().map(|round| round.whole as u64).collect()).collect()
}

fn all(processes: &[Vec<u64>]) -> BTreeSet<u64> {
    processes.iter().flatten().copied().collect()
}

/// A context takes 600 MiB, and idle workers may take a sixteenth of 80 GiB in total.
#[test]
fn the_processes_of_a_group_measure_the_next_groups_too_each_once() {
    let groups = (0..3).map(|ordinal| numbered(ordinal, 3, &["tells_its_process"])).collect();
    let found = processes_of_groups(groups, 80 << 30);
    assert_eq!(found.iter().map(|ids| ids.iter().collect::<BTreeSet<_>>().len()).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(all(&found).len(), 3, "{found:?}");
}

#[test]
fn a_group_of_more_processes_starts_those_that_are_missing() {
    let group = |ordinal, processes| numbered(ordinal, processes, &["tells_its_process"]);
    let found = processes_of_groups(vec![group(0, 2), group(1, 4), group(2, 3)], 80 << 30);
    assert_eq!(found.iter().map(|ids| ids.iter().collect::<BTreeSet<_>>().len()).collect::<Vec<_>>(), [2, 4, 3]);
    assert_eq!(all(&found).len(), 4, "{found:?}");
}

/// A sixteenth of 16 GiB holds the context of one worker, but of three processes, two would stay idle.
#[test]
fn no_worker_rests_where_its_context_takes_much_of_the_memory() {
    let groups = (0..2).map(|ordinal| numbered(ordinal, 3, &["tells_its_process"])).collect();
    let found = processes_of_groups(groups, 16 << 30);
    // The last process of a group is the first of the next one.
    assert_eq!(all(&found).len(), 5, "{found:?}");
}

#[test]
fn a_worker_that_dies_while_it_rests_costs_no_case_its_result() {
    let run = run_prepared(
        vec![numbered(0, 2, &["a"]), numbered(1, 2, &["kills_those_that_rest"])],
        |_, _| {},
        |folder| spec_with_memory(folder, 80 << 30),
        |pool| pool.spread_samples(None),
    );
    assert_eq!(run.names(), [("a", "measured"), ("kills_those_that_rest", "measured")]);
    assert!(run.measurements().iter().all(|(_, measured)| measured.rounds.len() == 2));
}

/// The time that a case reports is its process id, which is small compared with a spread of a millisecond.
#[test]
fn workers_for_later_groups_start_while_the_first_one_is_prepared() {
    let spread = Spread { nanoseconds: 1e6, relative: 0.0, processes: 5 };
    let first = numbered(0, 1, &["waits_until_five_workers_have_started", "tells_its_process"]);
    let later = group(1, &["tells_its_process"]);
    let run = run_prepared(
        vec![first.clone(), later.clone()],
        |_, _| {},
        |folder| spec_with_memory(folder, 80 << 30),
        |pool| {
            pool.spread_samples(Some(spread));
            pool.start_early([(&first, 1e12), (&later, 1e4)].into_iter(), &Interrupt::new());
        },
    );
    let ids = run.measurements().into_iter().filter(|(variant, _)| *variant == "tells_its_process");
    let ids: Vec<BTreeSet<u64>> =
        ids.map(|(_, measured)| measured.rounds.iter().map(|round| round.whole as u64).collect()).collect();
    assert_eq!(run.names()[0], ("waits_until_five_workers_have_started", "measured"));
    assert_eq!(ids.iter().map(BTreeSet::len).collect::<Vec<_>>(), [1, 5]);
    assert!(ids[1].is_superset(&ids[0]), "{ids:?}");
}

/// If processes differ by 50 ns, samples of two nanoseconds would need many more than five processes.
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
    // It is retried until the limit, whatever that is.
    let impatient = |folder: &Path| {
        let mut spec = spec(folder);
        spec.limits.restart = Duration::from_secs(2);
        spec
    };
    let groups = vec![of_processes(2, &["a", "breaks_the_device_afterwards"])];
    let run = run_prepared(groups, |_, _| {}, impatient, |pool| pool.spread_samples(None));
    assert_eq!(run.names(), [("a", "measured"), ("breaks_the_device_afterwards", "measured")]);
    assert!(run.measurements().iter().all(|(_, measured)| measured.rounds.len() == 1));
    assert!(matches!(run.end, runner_workers::RunEnd::Environment(_)), "{:?}", run.end);
}
