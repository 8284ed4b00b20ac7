//! Claims of a comparison that need attention, with the results of base and new.

use serde::Serialize;

use super::{Compared, notation, words};
use crate::claims::detail;
use runner_lang::claim::{Arithmetic, ClaimFunction, ClaimProgram, Measured, Quantity};
use runner_lang::format::rough;
use runner_results::analyse::compare::{ClaimChange, ClaimKind, ReportComparison};
use runner_results::analyse::{ClaimState, JudgedClaim};
use runner_types::{ManifestComparison, ManifestPart};

/// Maximum number of claims to list; further ones are only counted.
const MOST_CLAIMS: usize = 50;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claims {
    /// Counts in words, such as `1 newly broken, 3 held`.
    pub counts: String,
    /// Claims that are broken, undecided or repaired, most important first.
    pub lines: Vec<Line>,
    /// Number of such claims that are not listed.
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Mark whose shape differs by state, for readers who cannot distinguish colours.
    pub mark: &'static str,
    pub state: &'static str,
    pub fails: bool,
    /// Experiment and device, if there are several reports; otherwise empty.
    pub report: String,
    pub claim: String,
    /// May be empty.
    pub condition: String,
    /// Verdict on the new results.
    pub new: String,
    /// How the results before the change were judged: ``; before: `four` took …``, or `, as before`.
    pub before: String,
}

/// `None` if the new reports have no claims.
pub fn claims(compared: Compared<'_>) -> Option<Claims> {
    let reports = &compared.comparison.reports;
    let mut all: Vec<(&ReportComparison, &ClaimChange)> =
        reports.iter().flat_map(|report| report.claims.iter().map(move |claim| (report, claim))).collect();
    if all.is_empty() {
        return None;
    }
    let counts = words::claim_counts(all.iter().map(|(_, claim)| claim.kind));
    // The list of manifest changes already judges removed and loosened claims.
    let is_named = |report: &ReportComparison| {
        let of_report =
            compared.comparison.manifests.iter().filter(|manifest| manifest.experiment == report.experiment);
        of_report.flat_map(ManifestComparison::changes).any(|change| change.part == ManifestPart::Claim)
    };
    all.retain(|(report, claim)| match claim.kind {
        ClaimKind::Held => false,
        // A claim that the base could judge deserves a line.
        ClaimKind::NotApplicable => claim.base.state != ClaimState::NotApplicable,
        _ if claim.kind == ClaimKind::Removed || claim.former.is_some() => !is_named(report),
        _ => true,
    });
    all.sort_by_key(|(_, claim)| claim.kind);
    let left_out = all.len().saturating_sub(MOST_CLAIMS);
    let several = reports.len() > 1;
    let lines = all.iter().take(MOST_CLAIMS).map(|(report, claim)| line(report, claim, several)).collect();
    Some(Claims { counts, lines, left_out })
}

fn line(report: &ReportComparison, change: &ClaimChange, several: bool) -> Line {
    let ClaimChange { kind, base, new, .. } = change;
    let [now, then] = [new, base].map(result);
    let place = || format!("{}, {}", report.experiment, report.device);
    Line {
        mark: words::claim_mark(*kind),
        state: words::claim_state(*kind),
        fails: change.fails(),
        report: if several { place() } else { String::new() },
        claim: new.claim.text.clone(),
        condition: new.claim.condition.clone().unwrap_or_default(),
        before: if now == then { ", as before".to_owned() } else { format!("; before: {then}") },
        new: now,
    }
}

/// A claim that limits a count of one case to a share of another's: `counter(c, a) < 0.6 * counter(c, b)`.
struct Share {
    limit: f64,
    counter: String,
    this: String,
    base: String,
}

impl Share {
    fn of(text: &str) -> Option<Self> {
        let program = ClaimProgram::parse(text).ok()?;
        let (Quantity::Result(this), Quantity::Binary(Arithmetic::Multiply, sides)) = (program.left, program.right)
        else {
            return None;
        };
        let ([Quantity::Number(limit), Quantity::Result(base)] | [Quantity::Result(base), Quantity::Number(limit)]) =
            *sides
        else {
            return None;
        };
        let name = |counted: &Measured| counted.counter.as_ref().map(|counter| counter.name.clone());
        let (ClaimFunction::Counter, ClaimFunction::Counter) = (this.function, base.function) else { return None };
        let counter = name(&this).filter(|counter| limit > 0.0 && name(&base).as_ref() == Some(counter))?;
        let case = |counted: &Measured| Some(counted.cases.first()?.name.clone());
        Some(Self { limit, counter, this: case(&this)?, base: case(&base)? })
    }

    /// `` `four` takes 0.265 of `tree`'s instructions (`inst_executed`)``; `None` if not judged or in several groups.
    fn taken(&self, judged: &JudgedClaim) -> Option<String> {
        let [group] = &judged.groups[..] else { return None };
        if !(group.left.is_exact() && group.right.is_exact() && group.right.point > 0.0) {
            return None;
        }
        let Self { limit, counter, this, base } = self;
        let (shown, share) = (notation::counter_name(counter), limit * group.left.point / group.right.point);
        let counter =
            if shown == counter { notation::code(counter) } else { format!("{shown} ({})", notation::code(counter)) };
        Some(format!("{} takes {} of {}'s {counter}", notation::code(this), rough(share), notation::code(base)))
    }
}

/// The values that decided a claim: ``3.49 (3.49 to 3.52)``, or `` `four` takes 0.265 of `tree`'s instructions, limit 0.6``.
pub fn result(judged: &JudgedClaim) -> String {
    let of_share = || {
        let share = Share::of(&judged.claim.text)?;
        Some(format!("{}, limit {}", share.taken(judged)?, share.limit))
    };
    of_share().unwrap_or_else(|| detail(judged))
}

/// The values that decided a claim, without the limit.
pub fn value(judged: &JudgedClaim) -> String {
    Share::of(&judged.claim.text).and_then(|share| share.taken(judged)).unwrap_or_else(|| detail(judged))
}

/// Limits of two versions of a claim that differ in nothing else: `limit 0.6 → 0.2`.
pub fn limits(base: &str, new: &str) -> Option<String> {
    let [former, now] = [base, new].map(Share::of);
    let (former, now) = (former?, now?);
    let is_same = (&former.counter, &former.this, &former.base) == (&now.counter, &now.this, &now.base);
    // The relation and the condition may differ too.
    let without = |text: &str, limit: f64| text.replacen(&limit.to_string(), "", 1);
    let is_same = is_same && without(base, former.limit) == without(new, now.limit);
    is_same.then(|| format!("limit {} → {}", former.limit, now.limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_where_two_claims_differ_in_nothing_else() {
        let claim = |relation: &str, limit: f64, base: &str| {
            format!("counter(\"inst_executed\", \"four\") {relation} {limit} * counter(\"inst_executed\", \"{base}\")")
        };
        let now = claim("<", 0.2, "tree");
        assert_eq!(limits(&claim("<", 0.6, "tree"), &now).as_deref(), Some("limit 0.6 → 0.2"));
        assert_eq!(limits(&claim("<=", 0.6, "tree"), &now), None);
        assert_eq!(limits(&claim("<", 0.6, "two"), &now), None);
        assert_eq!(limits("time(\"four\") < 0.6 * time(\"tree\")", &now), None);
    }
}
