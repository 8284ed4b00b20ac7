//! Outcomes, matching of cases, and incomparable cases.

use super::fixture::{case, change, compared, counted, ended, estimate, in_regime, records, timed};
use crate::analyse::compare::{Alone, CauseKind, Code, Comparison, DifferenceKind, Gate, Kind, Options};
use runner_types::{
    Acceptance, BackendKind, CaseRecord, Effect, ManifestChange, ManifestComparison, ManifestPart, ManifestState,
    Mutant, Note, Outcome, Records, Regime, Tolerance, WeakCheck, WholeTolerance,
};

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
    let not_run = Outcome::not_run("interrupted");
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
    // A failed case has no regime.
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

/// Adding a comment changes the hash of the source, but not the hash of the machine code.
#[test]
fn a_source_that_compiles_to_the_same_code_is_no_cause() {
    let causes = |source: &str, code: [Option<&str>; 2]| {
        let [base, new] = code.map(|code| {
            let mut case = timed(1, 1e6, 0.001);
            case.hashes.as_mut().unwrap().code = code.map(str::to_owned);
            case
        });
        let mut new = CaseRecord { result: timed(1, 2e6, 0.001).result, ..new };
        source.clone_into(&mut new.hashes.as_mut().unwrap().source);
        let found = change(base, new, &Options::default());
        assert_eq!(found.kind, Kind::Slower);
        (found.code, found.causes.iter().map(|cause| cause.what).collect::<Vec<_>>())
    };
    let same = timed(1, 1e6, 0.001).hashes.unwrap().source;
    assert_eq!(
        causes("other", [Some("a"), Some("a")]),
        (Some(Code::SameDespite { source: true, options: false }), vec![])
    );
    assert_eq!(causes("other", [Some("a"), Some("b")]), (Some(Code::Changed), vec![CauseKind::Source]));
    assert_eq!(causes(&same, [Some("a"), Some("b")]), (Some(Code::Changed), vec![CauseKind::Code]));
    assert_eq!(causes(&same, [Some("a"), Some("a")]), (Some(Code::Same), vec![]));
    assert_eq!(causes("other", [None, Some("a")]), (None, vec![CauseKind::Source]));
}

#[test]
fn records_without_hashes_are_compared_and_counted() {
    let mut base = records(vec![timed(1, 1e6, 0.001)]);
    base.cases[0].hashes = None;
    base.cases[0].fingerprint = Some(runner_types::Fingerprint("0".repeat(64)));
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
    assert_eq!(kind(unstable(1e6, 0.05), unstable(1.001e6, 0.05)), Kind::Ambiguous);
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

/// A case of a variant that launches a kernel of this name.
fn of_variant(variant: &str, kernel: &str, n: i64) -> CaseRecord {
    let mut case = timed(n, 1e6, 0.001);
    variant.clone_into(&mut case.case.key.variant);
    kernel.clone_into(&mut case.launches[0].label);
    case
}

/// `old` was renamed to `fresh`. `twin_a` and `twin_b` are the same kernel, so either could be `twin_c`. `other` has a
/// different source.
#[test]
fn a_renamed_variant_is_matched_by_what_it_runs() {
    let with_source = |mut case: CaseRecord| {
        "another".clone_into(&mut case.hashes.as_mut().unwrap().source);
        case
    };
    let base = [("old", "k", 1), ("old", "k", 2), ("twin_a", "t", 1), ("twin_b", "t", 1), ("other", "o", 1)];
    let base = base.map(|(variant, kernel, n)| of_variant(variant, kernel, n)).to_vec();
    let mut new = vec![of_variant("fresh", "k", 1), of_variant("fresh", "k", 2), of_variant("twin_c", "t", 1)];
    new.push(with_source(of_variant("different", "o", 1)));
    let comparison = compared(&records(base.clone()), &records(new.clone()), &Options::default());
    let found: Vec<(String, Kind)> =
        comparison.changes().map(|change| (change.case.key.to_string(), change.kind)).collect();
    let expected = [
        ("fresh[n=1]", Kind::Same),
        ("fresh[n=2]", Kind::Same),
        ("twin_c[n=1]", Kind::New),
        ("different[n=1]", Kind::New),
        ("twin_a[n=1]", Kind::Gone),
        ("twin_b[n=1]", Kind::Gone),
        ("other[n=1]", Kind::Gone),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    let first = comparison.changes().next().unwrap();
    assert_eq!(first.causes.iter().map(|cause| cause.what).collect::<Vec<_>>(), [CauseKind::Variant]);
    // With a different block size in one of its cases, it is a different variant.
    new[1].launches[0].block.x = 64;
    assert_eq!(kinds(base, new)[0].1, Kind::New);
}

#[test]
fn what_is_no_longer_proved_fails_where_the_caller_is_strict_and_nothing_else_does() {
    let both = || vec![timed(1, 1e6, 0.001), timed(2, 1e6, 0.001)];
    let alone = || Alone::new("reports/e/h100", &records(both()));
    let judged = |new: Vec<CaseRecord>| {
        let base = records(both());
        let options = Options { strict: true, allow: vec![DifferenceKind::Check], ..Options::default() };
        compared(&base, &records(new), &options)
    };
    let mut weak_check = both();
    weak_check[1].notes.push(Note::Weak(WeakCheck {
        check: "y".to_owned(),
        accepts: vec![Mutant::Zeros],
        greatest: 0.001,
        tolerance: Tolerance { abs: 0.01, rel: 0.0, ulp: 0, derived: false },
        whole: WholeTolerance::default(),
    }));
    let mut other_check = both();
    other_check[1].hashes.as_mut().unwrap().check = "another".to_owned();
    let of_manifest = |state: ManifestState| {
        let manifests = vec![ManifestComparison::new("e".to_owned(), state)];
        Comparison { manifests, ..judged(both()) }
    };
    let changed = |part: ManifestPart, effect: Effect| {
        let [base, new] = ["rel 1e-5", "rel 1e-2"].map(|text| Some(text.to_owned()));
        let change =
            ManifestChange { effect, part, name: "y".to_owned(), variants: Vec::new(), base, new, unchecked: None };
        of_manifest(ManifestState::Changed(vec![change]))
    };
    for (mut found, strict) in [
        (judged(both()), Gate::Pass),
        (judged(both()[..1].to_vec()), Gate::Incomparable),
        (judged(weak_check), Gate::Incomparable),
        // A different check may be equally strict.
        (judged(other_check), Gate::Pass),
        (of_manifest(ManifestState::Deleted), Gate::Incomparable),
        (of_manifest(ManifestState::Added), Gate::Pass),
        (of_manifest(ManifestState::Unknown("a file is gone".to_owned())), Gate::Pass),
        (changed(ManifestPart::Tolerance, Effect::Loosened), Gate::Incomparable),
        (changed(ManifestPart::Tolerance, Effect::Tightened), Gate::Pass),
        (changed(ManifestPart::Buffer, Effect::Unordered), Gate::Incomparable),
        (changed(ManifestPart::Let, Effect::Unordered), Gate::Incomparable),
        (changed(ManifestPart::Let, Effect::Neutral), Gate::Pass),
        (changed(ManifestPart::Acceptance, Effect::Loosened), Gate::Pass),
        (changed(ManifestPart::Claim, Effect::Loosened), Gate::Pass),
        (changed(ManifestPart::Baseline, Effect::Neutral), Gate::Pass),
        (Comparison { alone: [vec![alone()], Vec::new()], ..judged(both()) }, Gate::Incomparable),
        (Comparison { alone: [Vec::new(), vec![alone()]], ..judged(both()) }, Gate::Pass),
    ] {
        assert_eq!(found.gate(), strict, "{:?}", found.manifests);
        found.is_strict = false;
        assert_eq!(found.gate(), Gate::Pass, "{:?}", found.manifests);
    }
}

/// A case that takes 1.5 times as long with a different driver.
#[test]
fn times_of_another_driver_are_shown_and_fail_only_if_they_are_allowed() {
    let base = records(vec![timed(1, 1e6, 0.001)]);
    let mut new = records(vec![timed(1, 1.5e6, 0.001)]);
    new.environment.driver = Some("1".to_owned());
    let judged = |options: &Options| {
        let found = compared(&base, &new, options);
        let change = found.changes().next().unwrap();
        (found.gate(), change.kind, change.time.as_ref().map(|time| time.ratio))
    };
    let driver = vec![DifferenceKind::Driver];
    assert_eq!(judged(&Options::default()), (Gate::Incomparable, Kind::Incomparable, Some(1.5)));
    let inform = Options { inform: driver.clone(), ..Options::default() };
    assert_eq!(judged(&inform), (Gate::Pass, Kind::Slower, Some(1.5)));
    let allow = Options { allow: driver, ..Options::default() };
    assert_eq!(judged(&allow), (Gate::Regression, Kind::Slower, Some(1.5)));
    // A newly wrong case fails the gate regardless of other differences.
    new.cases[0] = ended(1, trap());
    assert_eq!(compared(&base, &new, &inform).gate(), Gate::NewlyWrong);
}

/// A group with times of 2, 3 and 4 µs, where the 3 µs case is new; and a new case that counts half as many
/// instructions as the baseline.
#[test]
fn a_new_case_has_its_place_in_its_group() {
    let member = |variant: &str, nanoseconds: f64| {
        let mut case = timed(1, nanoseconds, 0.001);
        variant.clone_into(&mut case.case.key.variant);
        case
    };
    let base = vec![member("a", 2e3), member("c", 4e3)];
    let mut new = base.clone();
    new.push(member("b", 3e3));
    let newcomer = |base: &Records, new: &Records| {
        let found = compared(base, new, &Options::default());
        found.changes().find(|change| change.kind == Kind::New).unwrap().newcomer.clone().unwrap()
    };
    let found = newcomer(&records(base), &records(new));
    assert_eq!((found.time.unwrap().point.to_bits(), found.place), (3e3_f64.to_bits(), Some((2, 3))));

    let counted = |variant: &str, count: f64| {
        let mut case = counted(1, &[("inst_executed", count), ("branch", 5.0), ("barriers", 0.0)]);
        variant.clone_into(&mut case.case.key.variant);
        case
    };
    let mut base = records(vec![counted("a", 1000.0)]);
    base.header.baseline = Some(("a".to_owned(), Vec::new()));
    let mut new = base.clone();
    new.cases.push(counted("b", 500.0));
    assert_eq!(newcomer(&base, &new).counts, [("inst_executed".to_owned(), 500.0, Some(0.5))]);
}

/// `v` takes 8 % longer. Up to 10 % is accepted for n = 1, unless the base has the same acceptance.
#[test]
fn an_accepted_slowdown_passes_until_it_goes_further_or_is_in_the_base() {
    let acceptance = |condition: Option<&str>, variant: &str| Acceptance {
        variant: Some(variant.to_owned()),
        condition: condition.map(str::to_owned),
        reason: "bounds are checked".to_owned(),
        commit: "1a2b3c4".to_owned(),
        by: 0.1,
    };
    let report = |factor: f64, accept: &[Acceptance]| {
        let mut records = records(vec![timed(1, 1e6 * factor, 0.001)]);
        records.header.comparison.accept = accept.to_vec();
        records
    };
    let judged = |factor: f64, of_base: &[Acceptance], of_new: &[Acceptance]| {
        let found = compared(&report(1.0, of_base), &report(factor, of_new), &Options::default());
        assert_eq!(found.changes().next().unwrap().kind, Kind::Slower);
        found.gate()
    };
    let fitting = [acceptance(Some("n == 1"), "v")];
    assert_eq!(judged(1.08, &[], &fitting), Gate::Pass);
    assert_eq!(judged(1.12, &[], &fitting), Gate::Regression);
    assert_eq!(judged(1.08, &fitting, &fitting), Gate::Regression);
    assert_eq!(judged(1.08, &[], &[acceptance(Some("n == 2"), "v")]), Gate::Regression);
    assert_eq!(judged(1.08, &[], &[acceptance(None, "w")]), Gate::Regression);
    assert_eq!(judged(1.08, &[], &[acceptance(None, "v")]), Gate::Pass);
}

#[test]
fn an_experiment_has_a_threshold_that_the_command_line_replaces() {
    let base = records(vec![timed(1, 1e6, 0.001)]);
    let mut new = records(vec![timed(1, 1.08e6, 0.001)]);
    new.header.comparison.threshold = Some(0.1);
    let kind = |threshold: Option<f64>| {
        compared(&base, &new, &Options { threshold, ..Options::default() }).changes().next().unwrap().kind
    };
    assert_eq!(kind(None), Kind::Same);
    assert_eq!(kind(Some(0.02)), Kind::Slower);
}
