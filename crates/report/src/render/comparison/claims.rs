//! The claims of a comparison: those that are not simply held, with what base and new say.

use serde::Serialize;

use super::{Compared, words};
use crate::analyse::compare::{ClaimChange, ClaimKind, ReportComparison};
use crate::render::claims::detail;

/// More claims are counted, not named.
const MOST_CLAIMS: usize = 50;

/// The claims of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claims {
    /// The counts in words, which read like `1 newly broken, 3 held`.
    pub counts: String,
    /// The claims that are broken, undecided or repaired, the most important first.
    pub lines: Vec<Line>,
    /// How many of them are not named.
    pub left_out: usize,
}

/// What is shown of one claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Differs in shape, for those who see no colour.
    pub mark: &'static str,
    pub state: &'static str,
    /// Whether it fails a gate.
    pub fails: bool,
    /// Experiment and device, where there are several reports; may be empty.
    pub report: String,
    pub claim: String,
    /// May be empty.
    pub condition: String,
    /// What the new results say.
    pub new: String,
    /// What the base's results say.
    pub base: String,
}

/// `None` where the new reports claim nothing.
pub fn claims(compared: Compared<'_>) -> Option<Claims> {
    let reports = &compared.comparison.reports;
    let mut all: Vec<(&ReportComparison, &ClaimChange)> =
        reports.iter().flat_map(|report| report.claims.iter().map(move |claim| (report, claim))).collect();
    if all.is_empty() {
        return None;
    }
    let counts = words::claim_counts(all.iter().map(|(_, claim)| claim.kind));
    all.retain(|(_, claim)| claim.fails || !matches!(claim.kind, ClaimKind::Held | ClaimKind::NotApplicable));
    all.sort_by_key(|(_, claim)| claim.kind);
    let left_out = all.len().saturating_sub(MOST_CLAIMS);
    let several = reports.len() > 1;
    let lines = all.iter().take(MOST_CLAIMS).map(|(report, claim)| line(report, claim, several)).collect();
    Some(Claims { counts, lines, left_out })
}

fn line(report: &ReportComparison, ClaimChange { kind, base, new, fails }: &ClaimChange, several: bool) -> Line {
    let place = || format!("{}, {}", report.experiment, report.device);
    Line {
        mark: words::claim_mark(*kind),
        state: words::claim_state(*kind),
        fails: *fails,
        report: if several { place() } else { String::new() },
        claim: new.claim.text.clone(),
        condition: new.claim.condition.clone().unwrap_or_default(),
        new: detail(new),
        base: detail(base),
    }
}
