//! Claims of the new report, judged by the results of base and new.

use super::fixture::{compared, records, timed};
use crate::analyse::compare::{ClaimChange, ClaimKind, Comparison, Gate, Options};
use runner_types::{CaseRecord, Claim, Outcome, Records};

fn claim(text: &str) -> Claim {
    Claim { text: text.to_owned(), condition: None, regime: None, backend: None }
}

/// Records with one case that takes exactly this many nanoseconds.
fn taking(nanoseconds: f64, claims: &[&str]) -> Records {
    let mut records = records(vec![timed(1, nanoseconds, 0.0)]);
    records.header.claims = claims.iter().map(|text| claim(text)).collect();
    records
}

fn kinds(comparison: &Comparison) -> Vec<ClaimKind> {
    comparison.claims().map(|claim| claim.kind).collect()
}

/// A claim about the only variant's time in µs.
fn time_below(microseconds: f64) -> String {
    format!("time(\"v\") < {microseconds:?}")
}

/// The case takes 1000 µs in the base and 1100 µs in the new report.
#[test]
fn a_claim_is_newly_broken_still_broken_or_held() {
    let claims = [time_below(1050.0), time_below(900.0), time_below(2000.0)];
    let texts: Vec<&str> = claims.iter().map(String::as_str).collect();
    let (base, new) = (taking(1e6, &texts), taking(1.1e6, &texts));
    let found = compared(&base, &new, &Options::default());
    assert_eq!(kinds(&found), [ClaimKind::NewlyBroken, ClaimKind::StillBroken, ClaimKind::Held]);
    let fails: Vec<bool> = found.claims().map(ClaimChange::fails).collect();
    assert_eq!(fails, [true, true, false]);
    // The new report makes none of the claims.
    assert_eq!(kinds(&compared(&new, &taking(1e6, &[]), &Options::default())), [ClaimKind::Removed; 3]);
    let back = compared(&taking(1.1e6, &texts), &taking(1e6, &texts), &Options::default());
    assert_eq!(kinds(&back), [ClaimKind::Repaired, ClaimKind::StillBroken, ClaimKind::Held]);
}

#[test]
fn a_broken_claim_comes_after_what_is_newly_wrong_and_before_a_regression() {
    let text = time_below(1050.0);
    let (base, slower) = (taking(1e6, &[]), taking(1.1e6, &[&text]));
    assert_eq!(compared(&base, &slower, &Options::default()).gate(), Gate::BrokenClaim);
    assert_eq!(compared(&base, &taking(1.1e6, &[]), &Options::default()).gate(), Gate::Regression);
    // Add a second case, which crashes only in the new report.
    let with_second = |mut records: Records, outcome: Outcome| {
        records.cases.push(CaseRecord { outcome, result: None, ..timed(2, 1e6, 0.0) });
        records
    };
    let crashed = Outcome::Crashed { message: "gone".to_owned() };
    let (base, new) = (with_second(base, Outcome::Measured), with_second(slower, crashed));
    assert_eq!(compared(&base, &new, &Options::default()).gate(), Gate::NewlyWrong);
}

/// Both sides are judged by the new text. The base's results break the tightened claim, which the base did not make,
/// and support the loosened one.
#[test]
fn a_tightened_claim_is_newly_broken_a_loosened_one_is_held_and_none_is_removed() {
    let (before, after) = (time_below(2000.0), time_below(900.0));
    let found = compared(&taking(1e6, &[&before]), &taking(1e6, &[&after]), &Options::default());
    assert_eq!((kinds(&found), found.gate()), (vec![ClaimKind::NewlyBroken], Gate::BrokenClaim));
    let loosened = compared(&taking(1e6, &[&after]), &taking(1e6, &[&before]), &Options::default());
    assert_eq!((kinds(&loosened), loosened.gate()), (vec![ClaimKind::Held], Gate::Pass));
}

#[test]
fn undecided_and_unjudged_claims_fail_nothing() {
    // The interval of ±1 % includes 1000 µs; sectors were not counted.
    let mut new = records(vec![timed(1, 1e6, 0.01)]);
    new.header.claims = vec![claim(&time_below(1000.0)), claim("counter(\"gld_sectors\", \"v\") > 0")];
    let base = taking(0.9e6, &[]);
    for strict in [false, true] {
        let found = compared(&base, &new, &Options { threshold: Some(0.5), strict, ..Options::default() });
        assert_eq!(kinds(&found), [ClaimKind::NewlyUndecided, ClaimKind::NotApplicable]);
        assert_eq!(found.gate(), Gate::Pass);
    }
}

/// The new manifest drops a claim that the base makes.
#[test]
fn a_claim_that_was_removed_is_named_and_fails_where_the_caller_is_strict() {
    let (kept, removed) = (time_below(2000.0), "registers(\"v\") < 255".to_owned());
    let (base, new) = (taking(1e6, &[&kept, &removed]), taking(1e6, &[&kept]));
    let found = compared(&base, &new, &Options::default());
    assert_eq!((kinds(&found), found.gate()), (vec![ClaimKind::Held, ClaimKind::Removed], Gate::Pass));
    let strict = Options { strict: true, ..Options::default() };
    assert_eq!(compared(&base, &new, &strict).gate(), Gate::Incomparable);
}
