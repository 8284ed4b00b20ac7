//! Claims of a comparison that need attention, with the results of base and new.

use serde::Serialize;

use super::{Compared, words};
use crate::claims::detail;
use runner_results::analyse::ClaimState;
use runner_results::analyse::compare::{ClaimChange, ClaimKind, ReportComparison};
use runner_types::{ManifestComparison, ManifestPart};

/// Maximum number of claims to list; further ones are counted.
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
    /// How the results before the change were judged: `; before: 3,488 against 2,640`, or `, as before`.
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
        // A claim that could be judged before is worth a line.
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
    let [now, then] = [new, base].map(detail);
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
