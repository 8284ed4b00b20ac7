//! Outcomes, matching and what cannot be compared.

use super::fixture::{case, change, compared, ended, estimate, in_regime, records, timed};
use crate::analyse::compare::{CauseKind, DifferenceKind, Gate, Kind, Options};
use crate::model::{BackendKind, CaseRecord, Outcome, Records, Regime};

fn trap() -> Outcome {
    Outcome::Trap { message: "read past the end".to_owned() }
}

fn excluded() -> Outcome {
    Outcome::Excluded { why: "too small".to_owned() }
}

fn kinds(base: Vec<CaseRecord>, new: Vec<CaseRecord>) -> Vec<(String, Kind)> {
    let comparison = compared(&records(base), &records(new), &Options::default());
    comparison.changes().map(|change| (change.case.key.to_string(), change.kind)).collect()
}

#[test]
fn each_pair_of_outcomes_has_its_kind() {
    let compare = |base: Outcome, new: Outcome| {
        let kinds = kinds(vec![ended(1, base)], vec![ended(1, new)]);
        kinds.first().map(|(_, kind)| *kind)
    };
    assert_eq!(compare(Outcome::Measured, trap()), Some(Kind::NewlyWrong));
    assert_eq!(compare(excluded(), trap()), Some(Kind::NewlyWrong));
    assert_eq!(compare(trap(), Outcome::Measured), Some(Kind::Fixed));
    assert_eq!(compare(trap(), trap()), Some(Kind::StillWrong));
    assert_eq!(compare(Outcome::Measured, excluded()), Some(Kind::Gone));
    assert_eq!(compare(excluded(), Outcome::Measured), Some(Kind::New));
    assert_eq!(compare(excluded(), excluded()), None);
    let not_run = Outcome::NotRun { why: "interrupted".to_owned() };
    assert_eq!(compare(Outcome::Measured, not_run), Some(Kind::Gone));
    let expected = || Outcome::FailedAsExpected { end: Box::new(trap()) };
    assert_eq!(compare(expected(), expected()), Some(Kind::Same));
    assert_eq!(compare(expected(), Outcome::DidNotFail { fails: Vec::new() }), Some(Kind::NewlyWrong));
}

#[test]
fn cases_are_matched_by_key_in_any_order_and_the_rest_is_new_or_gone() {
    let base = vec![timed(1, 1e6, 0.001), timed(2, 1e6, 0.001), timed(3, 1e6, 0.001)];
    let new = vec![timed(3, 1e6, 0.001), timed(4, 1e6, 0.001), timed(2, 1.2e6, 0.001)];
    let expected = [("v[n=3]", Kind::Same), ("v[n=4]", Kind::New), ("v[n=2]", Kind::Slower), ("v[n=1]", Kind::Gone)];
    let expected = expected.map(|(name, kind)| (name.to_owned(), kind));
    assert_eq!(kinds(base, new), expected);
    // A new case that fails is newly wrong.
    assert_eq!(kinds(Vec::new(), vec![ended(1, trap())]), [("v[n=1]".to_owned(), Kind::NewlyWrong)]);
}

#[test]
fn regimes_are_compared_each_with_its_own() {
    let regime = |regime, nanoseconds| in_regime(case(1), regime, estimate(nanoseconds, 0.001));
    let base = vec![regime(Regime::Cold, 1e6), regime(Regime::Warm, 5e5)];
    let new = vec![regime(Regime::Cold, 1e6), regime(Regime::Warm, 6e5)];
    let compare = |base: &[CaseRecord], new: &[CaseRecord]| -> Vec<Kind> {
        kinds(base.to_vec(), new.to_vec()).into_iter().map(|(_, kind)| kind).collect()
    };
    assert_eq!(compare(&base, &new), [Kind::Same, Kind::Slower]);
    assert_eq!(compare(&base, &new[..1]), [Kind::Same, Kind::Gone]);
    // One that failed has no regime.
    assert_eq!(compare(&base, &[ended(1, trap())]), [Kind::NewlyWrong]);
    let found = change(base[0].clone(), new[1].clone(), &Options::default());
    assert_eq!((found.kind, found.differences[0].what), (Kind::Incomparable, DifferenceKind::Regime));
}

#[test]
fn what_is_not_of_the_same_thing_is_named_and_can_be_allowed() {
    type Differ = fn(&mut Records);
    let base = records(vec![timed(1, 1e6, 0.001)]);
    let differing: [(DifferenceKind, Differ); 6] = [
        (DifferenceKind::Device, |records| records.environment.device.name.push('X')),
        (DifferenceKind::Driver, |records| records.environment.driver = Some("1".to_owned())),
        (DifferenceKind::Timing, |records| records.environment.machine.clock = None),
        (DifferenceKind::Work, |records| records.cases[0].work.bytes = Some(1)),
        (DifferenceKind::Check, |records| records.cases[0].hashes.as_mut().unwrap().check = "x".to_owned()),
        (DifferenceKind::Inputs, |records| records.cases[0].hashes.as_mut().unwrap().inputs = "x".to_owned()),
    ];
    for (what, differ) in differing {
        let mut new = base.clone();
        differ(&mut new);
        let refused = compared(&base, &new, &Options::default());
        let report = &refused.reports[0];
        let named: Vec<DifferenceKind> =
            report.differences.iter().chain(&report.changes[0].differences).map(|d| d.what).collect();
        assert_eq!(named, [what]);
        assert_eq!((refused.gate(), refused.tests), (Gate::Incomparable, 0));
        let allowed = compared(&base, &new, &Options { allow: vec![what], ..Options::default() });
        assert_eq!(allowed.changes().next().unwrap().kind, Kind::Same, "{what:?}");
    }
}

#[test]
fn the_simulator_is_never_compared_with_a_device() {
    let base = records(vec![timed(1, 1e6, 0.001)]);
    let mut new = base.clone();
    new.environment.device.backend = BackendKind::Sim;
    let comparison = compared(&base, &new, &Options::default());
    assert_eq!(comparison.reports[0].differences[0].what, DifferenceKind::Backend);
    assert_eq!(comparison.gate(), Gate::Incomparable);
}

#[test]
fn a_case_that_is_newly_wrong_is_so_on_another_device_too() {
    let base = records(vec![timed(1, 1e6, 0.001)]);
    let mut new = records(vec![ended(1, trap())]);
    new.environment.device.name.push('X');
    assert_eq!(compared(&base, &new, &Options::default()).gate(), Gate::NewlyWrong);
}

#[test]
fn records_without_hashes_are_compared_and_counted() {
    let mut base = records(vec![timed(1, 1e6, 0.001)]);
    base.cases[0].hashes = None;
    base.cases[0].fingerprint = Some(crate::model::Fingerprint("0".repeat(64)));
    let comparison = compared(&base, &records(vec![timed(1, 1e6, 0.001)]), &Options::default());
    let report = &comparison.reports[0];
    assert_eq!(report.limits.each_ref().map(|limits| limits.without_hashes), [1, 0]);
    assert_eq!(report.changes[0].kind, Kind::Same);
    assert_eq!(report.changes[0].causes[0].what, CauseKind::Fingerprint);
}

#[test]
fn a_case_that_loses_its_precision_is_newly_unstable_unless_its_time_is_decided() {
    let unstable = |nanoseconds: f64, half: f64| CaseRecord {
        outcome: Outcome::Unstable { reached: half },
        ..timed(1, nanoseconds, half)
    };
    let kind = |base, new| change(base, new, &Options::default()).kind;
    assert_eq!(kind(timed(1, 1e6, 0.001), unstable(1e6, 0.05)), Kind::NewlyUnstable);
    assert_eq!(kind(timed(1, 1e6, 0.001), unstable(2e6, 0.05)), Kind::Slower);
    assert_eq!(kind(unstable(1e6, 0.05), unstable(1e6, 0.05)), Kind::Ambiguous);
}

#[test]
fn the_gate_takes_the_worst() {
    let gate = |base: Vec<CaseRecord>, new: Vec<CaseRecord>| {
        compared(&records(base), &records(new), &Options::default()).gate()
    };
    let slower = |n| (timed(n, 1e6, 0.001), timed(n, 1.5e6, 0.001));
    let other_work = |n| {
        let mut new = timed(n, 1e6, 0.001);
        new.work.bytes = None;
        (timed(n, 1e6, 0.001), new)
    };
    let wrong = |n| (timed(n, 1e6, 0.001), ended(n, trap()));
    assert_eq!(gate(vec![timed(1, 1e6, 0.001)], vec![timed(1, 5e5, 0.001)]), Gate::Pass);
    let (base, new): (Vec<_>, Vec<_>) = [other_work(1)].into_iter().unzip();
    assert_eq!(gate(base, new), Gate::Incomparable);
    let (base, new): (Vec<_>, Vec<_>) = [other_work(1), slower(2)].into_iter().unzip();
    assert_eq!(gate(base, new), Gate::Regression);
    let (base, new): (Vec<_>, Vec<_>) = [other_work(1), slower(2), wrong(3)].into_iter().unzip();
    assert_eq!(gate(base, new), Gate::NewlyWrong);
}
